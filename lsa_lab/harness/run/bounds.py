"""Bounds beside the fields of a Config: ``d: Annotated[int, at_least(1)]``.

A Config that inherits ``Bounded`` is refused where a value breaks a bound, by a sentence that says
the key, the value, what would do and the nearest value that does; ``--help`` shows the bounds. The
bound of a tuple is that of each of its entries. An end may name another field: ``between(1, "m")``.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from lsa_lab.harness.run import checks

End = float | str | None  # a number, the name of a field, or no end
_hints: Callable[[type], dict[str, Any]] = functools.cache(
    functools.partial(get_type_hints, include_extras=True)
)


@dataclass(frozen=True)
class Bound:
    """What a value has to keep: its words, and the check ``(config, name)`` that raises."""

    words: str
    check: Callable[[Any, str], None]


def at_least(low: End) -> Bound:
    return between(low, None)


def at_most(high: End) -> Bound:
    return between(None, high)


def between(low: End, high: End) -> Bound:
    """low <= value <= high, finite, and whole if the field is declared ``int``."""
    first, last = (end if isinstance(end, str | None) else f"{end:g}" for end in (low, high))
    words = {(True, False): f">= {first}", (False, True): f"<= {last}"}
    said = words.get((low is not None, high is not None), f"{first} to {last}")

    def check(config: Any, name: str) -> None:
        ends = (getattr(config, end) if isinstance(end, str) else end for end in (low, high))
        checks.between(config, name, *ends)

    return Bound(said, check)


def one_of(*choices: Any) -> Bound:
    """The value, or every entry of a tuple, is among the choices."""
    return Bound(
        f"one of {', '.join(map(str, choices))}", lambda c, n: checks.one_of(c, n, choices)
    )


def divides(whole: str) -> Bound:
    """The value divides that of another field."""
    return Bound(f"divides {whole}", lambda config, name: checks.divides(config, name, whole))


POSITIVE = Bound("> 0", checks.positive)  # for a rate or a scale
INCREASING = Bound("increasing", checks.increasing)  # each entry above the one before
Seed = Annotated[int, Bound(">= 0", checks.seed)]  # one number is one stream of random numbers


@dataclass(frozen=True)
class Bounded:
    """A Config whose fields keep their types and the bounds that stand beside them.

    What ties several fields together is checked after ``super().__post_init__()``.
    """

    def __post_init__(self) -> None:
        checks.kinds(self)
        for field in fields(self):
            if getattr(self, field.name) is not None:
                for bound in bounds_of(type(self), field.name):
                    bound.check(self, field.name)


def bounds_of(kind: type, name: str) -> tuple[Bound, ...]:
    """The bounds beside a field; of ``Annotated[...] | None`` those of its values."""
    hint = _hints(kind)[name]
    hints = [hint] if get_origin(hint) is Annotated else [*get_args(hint)]
    return tuple(
        extra
        for each in hints
        if get_origin(each) is Annotated
        for extra in each.__metadata__
        if isinstance(extra, Bound)
    )
