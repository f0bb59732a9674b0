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
    splits = (word.split("=", 1) if word.startswith(PREFIX) else [word] for word in arguments)
    words = [part for parts in splits for part in parts]
    own, of_parts = _by_part(words, default)
    for name, theirs in of_parts.items():
        try:
            changed = apply(getattr(default, name), theirs)
        except RefusalError as error:
            raise RefusalError(f"{error}".replace(PREFIX, f"{PREFIX}{name}.")) from None
        default = dataclasses.replace(default, **{name: changed})
    return _apply(default, own) if own else default


def _by_part(words: list[str], default: Any) -> tuple[list[str], dict[str, list[str]]]:
    """The words of the Config's own keys, and those of each part without its name."""
    own: list[str] = []
    parts: dict[str, list[str]] = {}
    target = own
    for word in words:
        if word.startswith(PREFIX):
            name, _, key = word.removeprefix(PREFIX).replace("-", "_").partition(".")
            is_part = key and dataclasses.is_dataclass(getattr(default, name, None))
            target = parts.setdefault(name, []) if is_part else own
            word = f"{PREFIX}{key}" if is_part else word
        target.append(word)
    return own, parts


def _apply(default: Any, words: list[str]) -> Any:
    _check(words, default)
    kind, given = type(default), dict[str, list[str]]()
    for word in words:
        if word.startswith(PREFIX):
            given[word.removeprefix(PREFIX).replace("-", "_")] = values = []
        else:
            values.append(word)
    types, changes = get_type_hints(kind), {}
    for key, values in given.items():
        try:
            changes[key] = _value(types[key], values)
        except (ValueError, KeyError):
            said = f"{PREFIX}{key} {' '.join(values)} cannot be read"
            raise RefusalError(f"{said}: nearest is {_words(getattr(default, key))}") from None
    try:
        return kind(**vars(default) | changes)
    except ValueError as error:
        key = re.split(r"\W", str(error))[0]
        if key in changes or key not in vars(default):
            raise RefusalError(f"{PREFIX}{error}") from None
        cause = f"with {' '.join(words)}, {error}"
        raise RefusalError(f"{cause}; or set {PREFIX}{key} as well") from None


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


def _check(words: list[str], default: Any) -> None:
    """Refuse unknown keys and words that are no numbers, each with the nearest valid one."""
    keys = [field.name for field in dataclasses.fields(default)]
    key = ""
    for word, following in zip(words, [*words[1:], PREFIX], strict=True):
        if word.startswith(PREFIX):
            key = word.removeprefix(PREFIX).replace("-", "_")
            value = "" if following.startswith(PREFIX) else f" {following}"
            field = key.partition(".")[0]
            if field in keys and not _is_plain(default, field):
                raise RefusalError(
                    f"{PREFIX}{key} is more than a number, a word or a tuple of them: change it in "
                    f"{type(default).__module__}, or where that takes it from"
                )
            if key not in keys:
                best, listed = nearest(key, keys), ", ".join(keys)
                raise RefusalError(
                    f"unknown key {word}{value}: nearest {PREFIX}{best}; the keys are {listed}"
                )
            if not value:
                raise RefusalError(f"{word} lacks a value; nearest {_words(getattr(default, key))}")
        elif declared_type(default, key) in (int, float):
            _check_number(key, word, declared_type(default, key), getattr(default, key))


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
    raise RefusalError(f"{PREFIX}{key} {word}: choose {wanted}; nearest {best}")


def _words(default: Any) -> str:
    """A value as a command line has it."""
    return " ".join(map(str, default)) if isinstance(default, tuple) else str(default)
