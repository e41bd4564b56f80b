"""Contexts: threads, instruction set, workspace."""

from __future__ import annotations

import atexit
import os
import threading
from typing import NamedTuple, Optional, Tuple

from . import _native


class ContextFacts(NamedTuple):
    num_threads: int
    isa: str
    workspace_bytes: int


class Context:
    """Threads and memory for calls, one at a time; a second call at the same time raises RuntimeError.

    num_threads: with the calling thread; 0: MLAP_NUM_THREADS, or the CPUs the process may run on.
    max_isa: the best instruction set to use ("avx2", ...); None: MLAP_MAX_ISA, or the best there is.

    >>> with Context(num_threads=1) as context:
    ...     context.num_threads
    1
    """

    __slots__ = ("native",)

    def __init__(self, num_threads: int = 0, max_isa: Optional[str] = None) -> None:
        self.native = _native.Context(num_threads, max_isa)

    @property
    def facts(self) -> ContextFacts:
        return ContextFacts(*self.native.facts())

    @property
    def num_threads(self) -> int:
        return self.facts.num_threads

    @property
    def isa(self) -> str:
        return self.facts.isa

    def close(self) -> None:
        """Ends the threads. RuntimeError while a call runs in the context; calls afterwards are refused."""
        self.native.close()

    def __enter__(self) -> "Context":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Shared:
    """The process's context. Calls of several threads take turns in it, so that each has all threads to itself."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.context: Optional[Context] = None
        # The threads do not exist in a forked child, and the lock may be held by one of them.
        self.forgotten: Tuple[object, ...] = ()

    def end(self) -> None:
        with self.lock:
            self.context = None

    def forget(self) -> None:
        self.forgotten += (self.context,)
        self.context = None
        self.lock = threading.Lock()


_shared = _Shared()
atexit.register(_shared.end)
os.register_at_fork(after_in_child=_shared.forget)


def default_context() -> Context:
    """The context of calls that are given none; made by the first one."""
    with _shared.lock:
        return _default_in_lock()


def _default_in_lock() -> Context:
    if _shared.context is None:
        _shared.context = Context()
    return _shared.context


def set_default_context(context: Optional[Context]) -> None:
    """Takes `context` for calls that are given none, after those that run. None: a new one, by the next call."""
    if context is not None and not isinstance(context, Context):
        raise TypeError(f"context: expected a mlaprolog.Context, found {type(context).__name__}")
    with _shared.lock:
        _shared.context = context


def run_in_default(weights: _native.Weights, tensors: tuple, modes: tuple, numbers: tuple) -> None:
    with _shared.lock:
        _native.run(_default_in_lock().native, weights, tensors, modes, numbers)
