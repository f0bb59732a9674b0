"""The program: ``lsa-lab``, and ``python -m experiments`` in this repository.

A command line is judged before jax is imported: a wrong one costs no time and leaves no file.
"""

import argparse
import importlib
import inspect
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from operator import attrgetter
from pathlib import Path

from lsa_lab import __version__
from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli import terminal
from lsa_lab.harness.cli.keys import keys_of, type_word, value_word
from lsa_lab.harness.cli.options import OPTIONS, STATUS, USAGE, choose, package_words
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.harness.run.laboratory import Experiment


def main(
    arguments: Sequence[str] | None = None,
    *,
    package: str = "experiments",
    program: str | None = None,
) -> int:
    """The exit status: 0, 1 if a result could not be judged, 2 if refused, 3 if a training
    diverged, 130 after Ctrl-C, 143 after a request to end that has been obeyed."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    program = program or program_name(sys.argv[0])
    if words == ["--version"]:
        print(f"lsa_lab {__version__}")
        return 0
    if words[:1] == ["help"]:
        words = [*words[1:], "-h"]
    try:
        with process.interrupts_end(_advice(program, words)):
            status = _obey(words, package, program)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader, ``head`` for one, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except RefusalError as refusal:
        print(f"error: {refusal}", file=sys.stderr)
        return 2
    except (KeyboardInterrupt, SystemExit) as end:
        code = getattr(end, "code", process.INTERRUPTED[0])
        if code not in process.INTERRUPTED:
            raise
        what = "" if isinstance(end, SystemExit) else str(end)
        print(_advice(program, getattr(end, "words", words), what), file=sys.stderr)
        return code


def _advice(program: str, words: list[str], what: str = "") -> str:
    command = f"{program} {shlex.join(words)}"
    return f"\n{what or 'interrupted'}; to go on from the last checkpoint: {command}"


def program_name(path: str) -> str:
    """The program as a person has to type it: ``.venv/bin/lsa-lab`` where no shell finds it."""
    if Path(path).name != "lsa-lab":
        return "lsa-lab"
    first = shutil.which("lsa-lab")
    return "lsa-lab" if first and Path(first).samefile(path) else shlex.quote(path)


def _obey(words: list[str], package: str, program: str) -> int:
    options = command_options.parse(words)
    options.program, options.home = program, package
    if not options.help:
        command_options.check(options)
    options.package = options.package or package
    if options.help:
        return explain(options)
    process.set_environment()  # before a command imports numpy, whose threads are counted once
    command = importlib.import_module(f"lsa_lab.harness.cli.commands.{options.command or 'list'}")
    return command.obey(options)


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
    lines = terminal.table(rows)
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
        lines += ["", *terminal.table(part)]
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
