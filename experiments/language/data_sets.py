"""Statements on a model: its name before each, a pilot where runs are few, a cell a data set."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from lsa_lab.judging.statements import Statement

# Sets of demonstrations, and sentences of their own, below which no row has a verdict: of nine or
# twelve, three times as many rows as chance would lay apart from those of more, and four turned.
FEWEST = 30
FIRST = "rotten_tomatoes"  # ids are written out for this data set; another's name takes its place


def short(name: str) -> str:
    """What stands before a comma: "SmolLM2-135M" of "SmolLM2-135M, Q4_1", "Reuters R8"."""
    return name.partition(",")[0]


def called(name: str) -> str:
    """A model's name with its bits and no comma: "SmolLM2-135M-Q4_1"."""
    return name.replace(", ", "-")


def about(config, sets: int, **shared) -> Callable[..., Statement]:
    """``Statement`` of the model by so many sets of demonstrations, with fields that rows share.

    With fewer than ``FEWEST`` sets it is a pilot, which says so in the place of its bounds.
    """
    return partial(_about, called(config.model_name), sets, shared)


def _about(model, sets, shared, id, source, says, *measured, message="", **fields):
    if sets < FEWEST:
        pilot = {"unjudged": f"a pilot of {sets} sets, and a verdict takes {FEWEST}"}
        bounds = ("at_least", "at_most", "margin")
        fields = pilot | {name: value for name, value in fields.items() if name not in bounds}
    message = message and f"{model}: {message}"
    return Statement(id, source, f"{model}: {says}", *measured, message=message, **shared | fields)


def families(
    config, texts=None, fresh: Mapping[str, str] | None = None, **shared
) -> Callable[..., Statement]:
    """``about`` for families with a cell for each data set of the config, or of its part ``texts``.

    Cells are those of the data set ``FIRST``, with the axis ``data`` before theirs; those that
    others are given are written out for whoever looks for an id.
    "{fresh}" stands for what ``fresh`` says of a data set, or for nothing.
    """
    tasks, fresh = dict((texts or config).tasks), fresh or {}
    state = about(config, (texts or config).runs, **shared)

    def family(id, source, says, *measured, cells, words=None, **fields):
        def named(data, **axes) -> dict[str, Any]:
            own = {"title": tasks[data].title, "fresh": fresh.get(data, "")}
            return own | dict(words(**axes) if words else {})

        every = {
            id.replace(FIRST, data): {"data": data}
            | {axis: value for axis, value in case.items() if axis != "data"}
            for data in tasks
            for id, case in cells.items()
            if case.get("data", FIRST) == FIRST
        }
        row = state(id, source, says, *measured, cells=every, words=named, **fields)
        says = f"{called(config.model_name)} on {{title}}: {says}"
        return replace(row, says=says, message=row.whole.says)

    return family
