"""``-h``: the words of the program or of one command, and the keys of an experiment."""

import argparse
import importlib
import inspect
import textwrap
from operator import attrgetter

from lsa_lab.harness.cli import terminal
from lsa_lab.harness.cli.keys import keys_of, type_word, value_word
from lsa_lab.harness.cli.options import OPTIONS, STATUS, USAGE, choose, package_words
from lsa_lab.harness.run.laboratory import Experiment

_WIDEST = 9  # a value that is longer stands on a line of its own
_LEGEND = """\
TYPE... takes one value or more: --config.KEY 1 2 3. "fixed" is changed in the config's file alone.
A tier's values are those of --tier; the result of other values has a folder of its own."""


def explain(options: argparse.Namespace) -> int:
    """What ``-h`` asks for: the program, a command, or the keys of the experiments named."""
    if options.command != "run" or not options.names:
        print(help_text(options, options.command), end="")
        return 0
    program, package = options.program, package_words(options)
    texts = [keys_text(experiment, program, package) for experiment in choose(options)]
    print("\n\n".join(texts), end="")
    return 0


def help_text(options: argparse.Namespace, command: str | None = None) -> str:
    """The words of one command or of all, and what they mean."""
    program = options.program
    commands = (command,) if command in USAGE else tuple(USAGE)
    rows = [(f"{program} {name} {USAGE[name][0]}".rstrip(), USAGE[name][1]) for name in commands]
    lines = [line for row in terminal.columns(rows) for line in row]
    if command in USAGE:
        module = importlib.import_module(f"lsa_lab.harness.cli.commands.{command}")
        lines += ["", *textwrap.wrap(inspect.getdoc(module.obey) or "", terminal.width())]
    meanings = [
        (f"  {option.word} {option.value}", option.meaning.format_map(vars(options)))
        for option in OPTIONS
        if set(option.commands) & set(commands)
    ]
    meanings.append(("  -h, --help", "this; run NAME -h lists the keys of an experiment"))
    for part in (meanings, STATUS):
        lines += ["", *(line for row in terminal.columns(part) for line in row)]
    return "\n".join(lines) + "\n"


def keys_text(experiment: Experiment, program: str, package: str) -> str:
    """Every key of an experiment's Config: its type, its value at each tier, its meaning."""
    wide, kind = terminal.width(), type(next(iter(experiment.tiers.values())))
    title = textwrap.wrap(f"{experiment.name}: {' '.join(experiment.question.split())}", wide)
    lines = [terminal.bold(line) for line in title]
    for paragraph in (inspect.getdoc(kind) or "").split("\n\n"):
        lines += ["", *textwrap.wrap(paragraph, wide)]
    lines += ["", f"{program} run {experiment.name} --config.KEY VALUE...{package}", ""]
    return "\n".join([*lines, *_table(experiment, kind), "", _LEGEND]) + "\n"


def _table(experiment: Experiment, kind: type) -> list[str]:
    tiers = experiment.tiers
    rows: list[tuple[str, ...]] = [("KEY", "TYPE", *tiers, "MEANING")]
    above: dict[int, str] = {}  # what stands above a row
    below: dict[int, list[str]] = {}
    for key in keys_of(kind):
        values = [value_word(attrgetter(key.name)(config)) for config in tiers.values()]
        if key.heading:
            above[len(rows)] = key.heading
        if max(map(len, values)) > _WIDEST:
            below[len(rows)] = _each_tier(list(tiers), values)
            values = [""] * len(values)
        rows.append((key.name, type_word(kind, key.name), *values, key.meaning))
    lines: list[str] = []
    for i, row in enumerate(terminal.columns(rows)):
        if i in above:
            lines += ["", *textwrap.wrap(above[i], terminal.width())]
        lines += [terminal.bold(line) if i == 0 else line for line in row]
        lines += below.get(i, [])
    return lines


def _each_tier(tiers: list[str], values: list[str]) -> list[str]:
    """Long values on lines of their own, each with the tiers that have it."""
    lines = []
    for value in dict.fromkeys(values):
        names = [tier for tier, own in zip(tiers, values, strict=True) if own == value]
        words = "every tier" if len(names) == len(tiers) else ", ".join(names)
        lines += textwrap.wrap(
            f"{words}: {value}",
            terminal.width(),
            initial_indent="    ",
            subsequent_indent="        ",
        )
    return lines
