"""``--config.KEY VALUE``: a tier's Config with numbers and words replaced, or a clear refusal."""

import contextlib
import dataclasses
import math
import re
from collections.abc import Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.checks import declared_type, nearest

PREFIX = "--config."
_PLAIN = {bool, int, float, str}


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """(the rest, the overrides): a key's values are the words up to the next option."""
    rest: list[str] = []
    overrides: list[str] = []
    target = rest
    for word in arguments:
        if word.startswith("--"):
            target = overrides if word.startswith(PREFIX) else rest
        target.append(word)
    return rest, overrides


def apply(default: Any, arguments: Sequence[str]) -> Any:
    """``default``, a Config, with the values of ``--config.KEY VALUE ...`` in their place; a key of
    one of its parts, a Config of its own, is ``--config.PART.KEY``."""
    given: dict[str, list[str]] = {}
    for word in arguments:
        if word.startswith(PREFIX):
            key, equals, value = word.removeprefix(PREFIX).partition("=")
            given[key] = values = [value] if equals else []
        else:
            values.append(word)
    return _apply(default, given, PREFIX)


def _apply(default: Any, given: dict[str, list[str]], prefix: str) -> Any:
    own: dict[str, list[str]] = {}
    parts: dict[str, dict[str, list[str]]] = {}
    for word, values in given.items():
        name, _, key = word.replace("-", "_").partition(".")
        if key and dataclasses.is_dataclass(getattr(default, name, None)):
            parts.setdefault(name, {})[key] = values
        else:
            _check(default, word, values, prefix)
            own[name] = values
    changes = {
        name: _apply(getattr(default, name), theirs, f"{prefix}{name}.")
        for name, theirs in parts.items()
    }
    types = get_type_hints(type(default))
    for key, values in own.items():
        try:
            changes[key] = _value(types[key], values)
        except (ValueError, KeyError):
            said = f"{prefix}{key} {' '.join(values)} cannot be read"
            raise RefusalError(f"{said}: nearest is {_words(getattr(default, key))}") from None
    try:
        return dataclasses.replace(default, **changes)
    except ValueError as error:
        key = re.split(r"\W", str(error))[0]
        if key in changes or key not in vars(default):
            raise RefusalError(f"{prefix}{error}") from None
        words = " ".join(f"{prefix}{name} {' '.join(values)}" for name, values in own.items())
        raise RefusalError(f"with {words}, {error}; or set {prefix}{key} as well") from None


def _value(kind: Any, words: list[str]) -> Any:
    """Words as a value of a declared type; ValueError or KeyError where they are none."""
    inner = get_args(kind)
    if get_origin(kind) is tuple:
        kinds = inner[:1] * len(words) if inner[1:] == (...,) else inner
        return tuple(_value(each, [word]) for each, word in zip(kinds, words, strict=True))
    if get_origin(kind) in (Union, UnionType):
        other = next(each for each in inner if each is not NoneType)
        return None if words == ["None"] else _value(other, words)
    (word,) = words
    if inner:  # Literal
        return inner[inner.index(word)]
    return {"True": True, "False": False}[word] if kind is bool else kind(word)


def _check(default: Any, word: str, values: list[str], prefix: str) -> None:
    """Refuse an unknown key and words that are no numbers, each with the nearest valid one."""
    keys, key = [field.name for field in dataclasses.fields(default)], word.replace("-", "_")
    field = key.partition(".")[0]
    if field in keys and not _is_plain(default, field):
        raise RefusalError(
            f"{prefix}{key} is more than a number, a word or a tuple of them: change it in "
            f"{type(default).__module__}, or where that takes it from"
        )
    if key not in keys:
        best, listed, said = nearest(key, keys), ", ".join(keys), " ".join([word, *values[:1]])
        raise RefusalError(
            f"unknown key {prefix}{said}: nearest {prefix}{best}; the keys are {listed}"
        )
    if not values:
        raise RefusalError(f"{prefix}{word} lacks a value; nearest {_words(getattr(default, key))}")
    kind = declared_type(default, key)
    for value in values if kind in (int, float) else ():
        _check_number(f"{prefix}{key}", value, kind, getattr(default, key))


def _is_plain(config: Any, name: str) -> bool:
    value = getattr(config, name)
    if value in ((), None):  # tells nothing of what it would hold
        kind = declared_type(config, name)
        return {*get_args(kind)} - {NoneType} <= _PLAIN if get_args(kind) else kind in _PLAIN
    entries = value if isinstance(value, tuple) else (value,)
    return all(entry is None or isinstance(entry, bool | int | float | str) for entry in entries)


def _check_number(key: str, word: str, kind: type, default: Any) -> None:
    number = math.nan
    with contextlib.suppress(ValueError):
        number = float(word)
        kind(word)
        if math.isfinite(number):
            return
    best = round(number) if math.isfinite(number) else _words(default)
    wanted = "a whole number" if kind is int else "a finite number"
    if isinstance(default, tuple):
        wanted += ", and a space before the next"
    raise RefusalError(f"{key} {word}: choose {wanted}; nearest {best}")


def _words(default: Any) -> str:
    """A value as a command line has it."""
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
