"""Families over the data sets of a config: their words, their cells, and the ids of these."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lsa_lab.judging.statements import Statement

FIRST = "rotten_tomatoes"  # the data set whose ids are written out
Cells = Mapping[str, Mapping[str, Any]]


def families(config, answers: str = "", texts=None, **shared) -> Callable[..., Statement]:
    """``Statement`` for families with an axis ``data``, and the fields that these share.

    The sentence and the message of one come after the model and its data sets: "{where}: ...".
    These are those of the config, or of the part of it that is ``texts``.
    """
    tasks = (texts or config).tasks
    where = {name: f"{config.model_name}, on {task.title}{answers}" for name, task in tasks}
    *titles, last = (task.title for _, task in tasks)
    titles = f"{', '.join(titles)} and {last}" if titles else last
    everywhere = f"{config.model_name}, on {titles}{answers}"

    def family(id, source, says, measured, *statistic, cells, words=None, message="", **fields):
        def named(data, **axes):
            return {"where": where[data]} | dict(words(**axes) if words else {})

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


def _cells_of_tasks(tasks, cells: Cells) -> Cells:
    """Those of every data set, whose name stands in their ids in the place of the first's."""
    return {
        id.replace(FIRST, name): {"data": name, **case}
        for name, _ in tasks
        for id, case in cells.items()
    }
