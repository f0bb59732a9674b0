"""Families over the data sets of a config: their words, their cells, and the ids of these."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lsa_lab.judging.statements import Statement, grid

Cells = Mapping[str, Mapping[str, Any]]
# Sets of demonstrations, and sentences of their own, below which no row has a verdict: of nine or
# twelve, three times as many rows as chance would lay apart from those of more, and four turned.
FEWEST = 30
_BOUNDS = ("at_least", "at_most", "margin")


def families(
    config, texts=None, fresh: Mapping[str, str] | None = None, **shared
) -> Callable[..., Statement]:
    """``Statement`` for families with an axis ``data``, and the fields that these share.

    The sentence and the message of one come after the model and its data sets: "{where}: ...".
    These are those of the config, or of the part of it that is ``texts``. With fewer than
    ``FEWEST`` sets it is a pilot, which says so in the place of its bounds. "{fresh}" stands for
    what ``fresh`` says of a data set, or for nothing.
    """
    tasks = (texts or config).tasks
    where = {name: f"{config.model_name}, on {task.title}" for name, task in tasks}
    *titles, last = (task.title for _, task in tasks)
    titles = f"{', '.join(titles)} and {last}" if titles else last
    everywhere = f"{config.model_name}, on {titles}"

    def family(id, source, says, measured, *statistic, cells, words=None, message="", **fields):
        fields = bounds_or_pilot(texts or config, **fields)

        def named(data, **axes):
            own = {"where": where[data], "fresh": (fresh or {}).get(data, "")}
            return own | dict(words(**axes) if words else {})

        statement = Statement(
            id,
            source,
            f"{everywhere}: {says}",
            measured,
            *statistic,
            cells=_cells_of_tasks(tasks, cells),
            words=named,
            **shared | fields,
        )
        whole = f"{everywhere}: {message}" if message else statement.whole.says
        return replace(statement, says=f"{{where}}: {says}", message=whole)

    return family


def bounds_or_pilot(config, **fields) -> dict[str, Any]:
    """Fields of a statement; with fewer than ``FEWEST`` sets of demonstrations without its bounds,
    and that it is a pilot in their place."""
    if config.runs >= FEWEST:
        return fields
    pilot = f"a pilot of {config.runs} sets, and a verdict takes {FEWEST}"
    return {"unjudged": pilot} | {k: v for k, v in fields.items() if k not in _BOUNDS}


def data_grid(*data: str) -> Callable[..., Cells]:
    """``grid`` with the axis ``data`` before the others."""
    return lambda ids, **axes: grid(ids, data=data, **axes)


def _cells_of_tasks(tasks, cells: Cells) -> Cells:
    """Those of the data sets that there are. A data set without cells has those of the first,
    its own name in the place of that one's in their ids."""
    first = next(iter(cells.values()))["data"]
    kept: dict[str, Mapping[str, Any]] = {}
    for name, _ in tasks:
        own = {id: case for id, case in cells.items() if case["data"] == name}
        kept |= own or {
            id.replace(first, name): {**case, "data": name}
            for id, case in cells.items()
            if case["data"] == first
        }
    return kept
