"""``list``: experiments and their verdicts."""

import argparse
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli import terminal
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import needs, records
from lsa_lab.harness.run.clock import short_clock_word
from lsa_lab.harness.run.folders import changed_folders, folder_of
from lsa_lab.harness.run.laboratory import TIERS, Experiment
from lsa_lab.harness.run.outcomes import VERDICTS, counts, numbered
from lsa_lab.lm import sources

_WIDEST = 150  # columns that a line may take, where there are so many
_KEY = "H/F/U: how many statements hold, fail and are undecided"
_HEAD = ("EXPERIMENT", "TIER", "TIME", "MEMORY", "H/F/U", "QUESTION")


class Row(NamedTuple):
    """One result: its tier or what was changed, its record, and its verdicts; none where they were
    given by other criteria than today's."""

    tier: str
    folder: Path
    facts: dict
    verdicts: dict[str, str] | None

    @property
    def cells(self) -> tuple[str, str, str]:
        """Time, memory, and as "3/1/0" what holds, fails and is undecided; "?" where that has to be
        judged again."""
        seconds, memory = self.facts.get("wall_time"), self.facts.get("memory")
        time = "" if seconds is None else short_clock_word(seconds)
        verdicts = list((self.verdicts or {}).values())
        counts = "/".join(str(verdicts.count(verdict)) for verdict in VERDICTS)
        counts = "?" if self.verdicts is None else counts
        return time, "" if memory is None else f"{memory / 1e9:.1f} GB", counts


def obey(options: argparse.Namespace) -> int:
    """The experiments by theme, one a line, each with its largest tier that has run: the time and
    the memory of the run that computed it (in a series with what earlier experiments left in the
    process), and how many statements hold, fail and are undecided. With a NAME all there is to know
    of that experiment."""
    experiments = command_options.choose(options)
    errors: dict[Path, str] = {}  # folder of a record or a result that cannot be read: why
    rows = {each.name: _rows(each, options.out, errors) for each in experiments}
    if options.names:
        print("\n\n".join(_whole(each, rows[each.name], errors, options) for each in experiments))
    else:
        print("\n".join(_overview(experiments, rows, errors, options)))
        program, package = options.program, command_options.package_words(options)
        print(f"{program} list NAME{package} tells more of one, {program} -h what else to type")
    for error in errors.values():
        print(f"error: {error}", file=sys.stderr)
    return 1 if errors else 0


def _overview(
    experiments: list[Experiment],
    rows_of: dict[str, list[Row]],
    errors: Mapping[Path, str],
    options: argparse.Namespace,
) -> list[str]:
    lines: list[tuple[str, ...]] = [_HEAD]
    themes: dict[str, list[tuple[str, ...]]] = {}
    lacking: dict[str, list[str]] = {}  # what each theme reads and is not there
    verdicts: list[str] = []
    stale: list[str] = []
    for experiment in experiments:
        rows = rows_of[experiment.name]
        of_its_own = {folder_of(experiment, tier, options.out) for tier in experiment.tiers}
        cells: tuple[str, ...] = ("damaged" if of_its_own & {*errors} else "not run", "", "", "")
        of_tiers = [row for row in rows if row.tier in TIERS]
        if of_tiers:
            cells = (of_tiers[-1].tier, *of_tiers[-1].cells)
            verdicts += (of_tiers[-1].verdicts or {}).values()
            stale += [experiment.name] * (of_tiers[-1].verdicts is None)
        changed = len(rows) - len(of_tiers)
        name = experiment.name + f" +{changed}" * (changed > 0)
        lines.append((name, *cells, experiment.question))
        themes.setdefault(experiment.theme, []).append(lines[-1])
        lacking.setdefault(experiment.theme, []).extend(needs.needs_of(experiment))
    widths = [max(len(cells[i]) for cells in lines) for i in range(5)]
    text = [terminal.faint(_line(_HEAD, widths))]
    for theme, of_theme in themes.items():
        names = needs.not_fetched(lacking[theme])
        fetching = f"first {needs.fetch_command(names, options.program)}" if names else ""
        if theme or fetching:
            text.append(" ".join(filter(None, (terminal.bold(theme), terminal.faint(fetching)))))
        text += [_line(cells, widths) for cells in of_theme]
    many = numbered(len(experiments), "experiment")
    text.append(f"{many}; H/F/U: of their statements {counts(verdicts)}")
    if stale:
        text.append(
            f"?: {', '.join(stale)}: criteria have changed; {options.program} report judges"
        )
    return text


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    name, tier, time, memory, verdicts, question = cells
    head = f"  {name:{widths[0]}}  {tier:{widths[1]}}  {time:>{widths[2]}}  {memory:>{widths[3]}}"
    head += f"  {verdicts:>{widths[4]}}  "
    question = " ".join(question.split())
    if not sys.stdout.isatty():  # a pipe or a file has room
        return f"{head}{question}"
    room = terminal.width(_WIDEST) - len(head)
    return (head + textwrap.shorten(question, room, placeholder=" …")).rstrip()


def _rows(experiment: Experiment, out: Path | None, errors: dict[Path, str]) -> list[Row]:
    """The results there are, those of the tiers first, from the smallest to the largest; of records
    that cannot be read, why, in ``errors``."""
    tiers = {folder_of(experiment, tier, out): tier for tier in experiment.tiers}
    rows = []
    for folder in [*tiers, *changed_folders(experiment, out)]:
        try:
            facts = records.record_of(experiment, folder)
        except RefusalError as error:
            errors[folder] = str(error)
            continue
        if facts is None:
            continue
        tier = facts["tier"]  # in ``out`` two tiers share a folder
        label = tier if folder in tiers else f"{tier}, {folder.name}"
        verdicts = facts["verdicts"] if records.is_current(experiment, facts) else None
        rows.append(Row(label, folder, facts, verdicts))
    return rows


def _whole(
    experiment: Experiment,
    of_experiment: list[Row],
    errors: Mapping[Path, str],
    options: argparse.Namespace,
) -> str:
    """Every tier of an experiment and every changed configuration, and the verdicts by name; what
    it reads that is fetched."""
    rows, program = {row.tier: row for row in of_experiment}, options.program
    head = ("TIER", "TIME", "START", "MEMORY", "H/F/U", "FOLDER")
    table = [head]
    for tier in dict.fromkeys([*experiment.tiers, *rows]):
        row = rows.get(tier)
        if row is None:
            is_damaged = folder_of(experiment, tier, options.out) in errors
            table.append((tier, "", "", "", "", "damaged" if is_damaged else "not run yet"))
        else:
            (time, memory, verdicts), start = row.cells, row.facts.get("start") or ""
            table.append((tier, time, start, memory, verdicts, str(row.folder)))
    lines = [terminal.bold(f"{experiment.name}: {experiment.question}")]
    lines += ["", *terminal.table(table), _KEY, *_sources(experiment, program)]
    for tier, row in rows.items():
        if row.verdicts is None:
            lines += ["", f"{tier}: criteria have changed; {program} report judges again"]
        elif tier in TIERS:
            lines += ["", f"{tier}:", *_by_verdict(row.verdicts)]
    return "\n".join(lines)


def _sources(experiment: Experiment, program: str) -> list[str]:
    """What it reads, a line each: what that is, and whether it is there."""
    names = needs.needs_of(experiment)
    absent = {
        name: f": {needs.fetch_command([name], program)}" for name in needs.not_fetched(names)
    }
    rows = [
        (f"  {name}", f"{sources.SOURCES[name].about}{absent.get(name, ', which is there')}")
        for name in names
    ]
    return ["", "reads what is fetched once:", *terminal.table(rows)] if names else []


def _by_verdict(verdicts: dict[str, str]) -> list[str]:
    rows = []
    for verdict in VERDICTS:
        ids = [key.partition(".")[2] for key, own in verdicts.items() if own == verdict]
        rows.append((f"  {verdict}", ", ".join(ids) or "none"))
    return terminal.table(rows)
