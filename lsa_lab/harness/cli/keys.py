"""What the keys of a Config mean: the comments beside its fields, read from the source."""

import ast
import dataclasses
import inspect
import io
import itertools
import shlex
import tokenize
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from lsa_lab.harness.run.bounds import bounds_of

# Keys that mean the same in every experiment, where a field has no comment of its own.
HOUSE_WORDS = {
    "n": "demonstrations in a prompt",
    "d": "covariates of a demonstration",
    "m": "demonstrations in the pool",
    "depth": "layers",
    "heads": "heads of a layer",
    "runs": "runs, each with a seed of its own",
    "steps": "training steps",
    "batch": "prompts in a training step",
    "learning_rate": "learning rate of the training",
    "init_scale": "size of the weights at the start of training",
    "noise_std": "standard deviation of the labels' noise",
    "test_prompts": "fresh prompts on which risks are measured",
    "seed": "one number is one stream of random numbers",
    "model": "the decoder: a source that has been fetched, or the path of another",
}


class Key(NamedTuple):
    """One field of a Config; ``heading`` is what stands above it and those that follow."""

    name: str
    meaning: str  # with its bounds, "prompts of each run (>= 2)"
    heading: str


def keys_of(kind: type) -> list[Key]:
    """The fields of a Config in their order, those that it inherits among them; in the place of a
    part, a Config of its own, its fields, "part.key"."""
    notes: dict[str, tuple[str, str]] = {}
    for parent in reversed(kind.__mro__):
        if dataclasses.is_dataclass(parent):
            notes |= _notes(parent)
    keys = []
    for field in dataclasses.fields(kind):
        meaning, heading = notes.get(field.name, ("", ""))
        meaning = meaning or HOUSE_WORDS.get(field.name, "")
        limits = ", ".join(bound.words for bound in bounds_of(kind, field.name))
        meaning = f"{meaning} ({limits})".strip() if limits else meaning
        part = get_type_hints(kind)[field.name]
        if dataclasses.is_dataclass(part) and isinstance(part, type):
            title = f"{field.name}: {meaning}"
            for key in keys_of(part):
                keys.append(Key(f"{field.name}.{key.name}", key.meaning, title or key.heading))
                title = ""
        else:
            keys.append(Key(field.name, meaning, heading))
    return keys


def type_word(kind: type, name: str) -> str:
    """The type as a command line has it: "int", "float...", or "fixed" for what it cannot say."""
    part, _, key = name.partition(".")
    hint = get_type_hints(kind)[part]
    if key:
        return type_word(hint, key)
    several = get_origin(hint) is tuple
    inner = get_args(hint)[0] if several else hint
    words = {bool: "bool", int: "int", float: "float", str: "word"}
    parts = (
        set(get_args(inner)) - {NoneType} if get_origin(inner) in (Union, UnionType) else {inner}
    )
    word = words.get(parts.pop(), "fixed") if len(parts) == 1 else "fixed"
    return word + "..." * (several and word != "fixed")


def value_word(value: Any) -> str:
    """A value as a command line has it; of named groups of fields their names."""
    if isinstance(value, tuple):
        if value and all(isinstance(entry, tuple) for entry in value):
            return ", ".join(str(name) for name, *_ in value)
        return " ".join(shlex.quote(value_word(entry)) for entry in value) or "none"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else str(value)
    return str(value)


def _notes(kind: type) -> dict[str, tuple[str, str]]:
    """{field: (meaning, heading)} of the fields that a class itself declares.

    The meaning is the comment on the field's own lines or the docstring under it; a comment above
    it is a heading if there is one of these, the meaning if not.
    """
    try:
        source = inspect.cleandoc("\n" + inspect.getsource(kind))
    except (OSError, TypeError):  # declared at a prompt
        return {}
    tokens = [*tokenize.generate_tokens(io.StringIO(source).readline)]
    comments = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    alone = {row for row, line in enumerate(source.splitlines(), 1) if line.strip()[:1] == "#"}
    fields = next(node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef))
    notes = {}
    for node, following in itertools.zip_longest(fields, fields[1:]):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        rows = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        beside = [comments[row] for row in rows if row in comments]
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            beside.append(str(following.value.value))
        before = itertools.takewhile(alone.__contains__, range(node.lineno - 1, 0, -1))
        above = [comments[row] for row in before][::-1]
        texts = [" ".join(" ".join(part).split()) for part in (beside, above)]
        notes[node.target.id] = (texts[0] or texts[1], texts[1] if texts[0] else "")
    return notes
