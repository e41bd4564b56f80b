"""Exceptions beside Python's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:

    class CacheIndexError(IndexError, ValueError):
        """A cache index beyond the cache; nothing was written."""

else:
    from ._native import CacheIndexError

__all__ = ["CacheIndexError"]
