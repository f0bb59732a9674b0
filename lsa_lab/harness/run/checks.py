"""Checks for ``Config.__post_init__``: each says the key, the value, and the nearest valid one.

This module and the configurations import nothing heavy, so that a wrong value is refused at once.
"""

import difflib
import functools
import math
import types
from collections.abc import Callable, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

# The types of a dataclass's fields by name, which take long to be read out of its text.
types_of: Callable[[type], dict[str, Any]] = functools.cache(get_type_hints)
_KINDS = {int: "a whole number", float: "a finite number", bool: "True or False", str: "a word"}
_LONGEST_VALUE = 80  # characters of one in a sentence
_FAR = 10_000  # a divisor that is farther away is not looked for
LARGEST_SEED = 2**63 - 1  # what a jax.random key takes


def kinds(config: Any) -> None:
    """Every value is of the type that its field declares; what comes after may rely on it."""
    for name, kind in types_of(type(config)).items():
        value = getattr(config, name)
        if not _is_of(value, kind):
            wanted = _KINDS.get(kind, kind.__name__ if isinstance(kind, type) else kind)
            usual = repr(getattr(type(config), name, None))[:_LONGEST_VALUE]
            given = repr(value)[:_LONGEST_VALUE]
            raise ValueError(f"{name} = {given}: choose {wanted}; nearest {usual}")


def between(config: Any, name: str, low: float | None = None, high: float | None = None) -> None:
    """low <= value <= high, finite, and whole if the field is declared ``int``; so is every entry
    of a tuple, which may not be empty."""
    for label, value in _labelled(config, name):
        _between(label, value, low, high, _is_whole(config, name))


each_between = between  # of a tuple


def positive(config: Any, name: str) -> None:
    """0 < value < ∞, for a rate or a tolerance, or for every entry of a tuple."""
    for label, value in _labelled(config, name):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            # There is no nearest number above zero: name one that is small for any use.
            best = 1e300 if value == math.inf else 1e-6
            raise ValueError(f"{label} = {value!r}: choose a finite number above 0; nearest {best}")


def increasing(config: Any, name: str) -> None:
    """Every entry of a tuple is larger than the one before it."""
    values = _entries(config, name)
    wanted = tuple(sorted({*values}))
    if tuple(values) != wanted:
        raise ValueError(f"{name} = {values!r}: choose increasing numbers; nearest {wanted}")


def one_of(config: Any, name: str, choices: Sequence) -> None:
    """The value, or every entry of a tuple, is among the choices."""
    values = getattr(config, name)
    for value in values if isinstance(values, tuple | list) else (values,):
        if value in choices:
            continue
        listed = ", ".join(map(repr, choices))
        raise ValueError(f"{name} = {value!r}: choose {listed}; nearest {nearest(value, choices)}")


def divides(config: Any, name: str, whole: str) -> None:
    """The value is at least 1 and divides another field of the config."""
    value, total = getattr(config, name), getattr(config, whole)
    between(config, name, 1, total)
    if total % value:
        near = (k for step in range(1, _FAR) for k in (value - step, value + step))
        best = next((k for k in near if k > 0 and total % k == 0), 1)
        raise ValueError(f"{name} = {value}: choose a divisor of {whole} = {total}; nearest {best}")


def seed(config: Any, name: str = "seed") -> None:
    """0 <= value <= 2^63 - 1: one number is one stream of random numbers."""
    between(config, name, 0, LARGEST_SEED)


def nearest(value: Any, choices: Sequence) -> Any:
    """The choice that is closest: in size for numbers, in spelling for words."""
    numbers = [c for c in choices if isinstance(c, int | float)]
    if isinstance(value, int | float) and numbers:
        return min(numbers, key=lambda c: abs(c - value))
    words = [str(c) for c in choices]
    close = difflib.get_close_matches(str(value), words, n=1, cutoff=0.0)
    return close[0] if close else "none"


def declared_type(config: Any, name: str) -> Any:
    """The type of a field or, for a tuple, of its entries."""
    kind = types_of(type(config))[name]
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


def _between(name: str, value: Any, low: float | None, high: float | None, whole: bool) -> None:
    ends = (f"at least {low}" * (low is not None), f"at most {high}" * (high is not None))
    kind = "a whole number" if whole else "a finite number"
    wanted = " and ".join(filter(None, (kind, *ends)))
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or math.isnan(value):
        best = next((end for end in (low, high) if end is not None), 0)
    else:
        # An infinite value without a bound on its side falls back to the bound it has.
        best = value if low is None else max(value, low)
        best = best if high is None else min(best, high)
        if math.isinf(best):
            best = low if low is not None else high if high is not None else 0
        elif whole and best != int(best):
            best = math.floor(best) if low is None or math.floor(best) >= low else math.ceil(best)
    if not number or best != value or (whole and not isinstance(value, int)):
        raise ValueError(f"{name} = {value!r}: choose {wanted}; nearest {best}")


def _labelled(config: Any, name: str) -> list[tuple[str, Any]]:
    """A value by its key, or the entries of a tuple by theirs, "lengths[1]"."""
    if not isinstance(value := getattr(config, name), tuple | list):
        return [(name, value)]
    return [(f"{name}[{i}]", entry) for i, entry in enumerate(_entries(config, name))]


def _entries(config: Any, name: str) -> Sequence:
    values = getattr(config, name)
    if not isinstance(values, tuple | list) or not values:  # JSON gives a list back
        raise ValueError(f"{name} = {values!r}: choose a tuple of at least one number")
    return values


def _is_of(value: Any, kind: Any) -> bool:
    """Whether a value is of a declared type; entry by entry in tuples, for which JSON has lists."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(_is_of(value, each) for each in inside)
    if origin is Literal:
        return value in inside
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return False
        if inside[-1] is Ellipsis:
            inside = (inside[0],) * len(value)
        return len(value) == len(inside) and all(map(_is_of, value, inside))
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return not isinstance(kind, type) or isinstance(value, kind)


def _is_whole(config: Any, name: str) -> bool:
    kind = declared_type(config, name)
    return kind is int or {*get_args(kind)} == {int, types.NoneType}
