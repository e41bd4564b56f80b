"""Comparisons by named standards."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, overload

from . import _names, _native
from ._arrays import Array, describe

_STANDARDS: Dict[str, int] = _native.standards()


def standards() -> Tuple[str, ...]:
    """The names of the standards that `compare` takes (docs/comparison.md)."""
    return tuple(_STANDARDS)


class Comparison(Mapping[str, Any]):
    """The measures of one comparison by name, `passed` and `verdict` among them. True if it passed."""

    def __init__(self, measures: Dict[str, Any]) -> None:
        self._measures = measures

    def __getitem__(self, name: str) -> Any:
        return self._measures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._measures)

    def __len__(self) -> int:
        return len(self._measures)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def passed(self) -> bool:
        return self["passed"]

    @property
    def verdict(self) -> str:
        return self["verdict"]

    def __str__(self) -> str:
        return (
            f"{'passed' if self else 'FAILED'}: relF {self['relative_norm']:.2e}, largest/row RMS "
            f"{self['max_row_rms']:.2e}, cosine {self['cosine']:.6f}, largest {self['max_abs']:.2e}, different "
            f"{self['num_different']}/{self['num_elements']}" + ("" if self else f"; {self.verdict}")
        )


class ComparisonTable(Mapping[str, Comparison]):
    """Comparisons by the names of the tensors. True if all passed; `str` is a table."""

    def __init__(self, comparisons: Dict[str, Comparison]) -> None:
        self._comparisons = comparisons

    def __getitem__(self, name: str) -> Comparison:
        return self._comparisons[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._comparisons)

    def __len__(self) -> int:
        return len(self._comparisons)

    def __bool__(self) -> bool:
        return self.passed

    @property
    def passed(self) -> bool:
        return all(comparison.passed for comparison in self.values())

    def to_json(self) -> str:
        tensors = {name: dict(comparison) for name, comparison in self.items()}
        return json.dumps({"passed": self.passed, "tensors": tensors}, indent=1)

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:<{width}}  {comparison}" for name, comparison in self.items())


@overload
def compare(
    actual: Array, golden: Array, benchmark: Optional[Array] = None, standard: str = "mixed-tolerance"
) -> Comparison: ...


@overload
def compare(
    actual: Mapping[str, Array],
    golden: Mapping[str, Array],
    benchmark: Optional[Mapping[str, Array]] = None,
    standard: str = "mixed-tolerance",
) -> ComparisonTable: ...


def compare(actual: Any, golden: Any, benchmark: Any = None, standard: str = "mixed-tolerance") -> Any:
    """Compares arrays of equal shapes, or mappings of them by name, by one of `standards()`.

    The types may differ, as those of a bf16 result and a float64 golden. `benchmark` is another implementation's result,
    which the standards "dual-*" require.

    >>> import numpy
    >>> bool(compare(numpy.float32([1, 2]), numpy.float64([1, 2]), standard="mixed-tolerance"))
    True
    """
    if isinstance(actual, Mapping) and isinstance(golden, Mapping):
        missing = set(actual) ^ set(golden)
        if missing:
            raise ValueError(f"actual, golden: expected the same names, found only in one: {', '.join(sorted(missing))}")
        table = {}
        for name in golden:
            other = None if benchmark is None else benchmark[name]
            table[name] = _compare_arrays(actual[name], golden[name], other, standard)
        return ComparisonTable(table)
    return _compare_arrays(actual, golden, benchmark, standard)


def _compare_arrays(actual: Array, golden: Array, benchmark: Optional[Array], standard: str) -> Comparison:
    if actual is None or golden is None:
        raise TypeError("actual, golden: expected two arrays, found None")
    code = _names.code_of("standard", _STANDARDS, standard)
    measures = _native.compare(
        describe("actual", actual), describe("golden", golden), describe("benchmark", benchmark), code
    )
    return Comparison(measures)
