"""The words of a command line: what each command is for, the options it takes, and its help."""

import argparse
import difflib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lsa_lab.harness.cli import overrides
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run.checks import nearest
from lsa_lab.harness.run.laboratory import TIERS, Experiment, constant_of, experiments_of

_LONGEST_NAME, _LONGEST_PATH = 255, 3500  # bytes that file systems take; room for what is inside


class Option(NamedTuple):
    """One option: its word, what follows it, what that means, and the commands that take it."""

    word: str
    value: str
    meaning: str
    commands: tuple[str, ...]
    kind: type


# The words after a command, and what it does.
USAGE = {
    "list": ("[NAME...]", "list experiments and their verdicts; with a NAME all of it"),
    "run": ("NAME...", "compute, judge, save and draw; NAME may be all"),
    "submit": ("NAME...", "run as tasks of a cluster, or of this machine; --status, --again"),
    "draw": ("[NAME...]", "draw again from the files"),
    "report": ("", "the tables of claims and index.html"),
    "compare": (
        "A [B]",
        "two results: keys, verdicts, numbers that differ; or all of experiment A",
    ),
    "fetch": ("[SOURCE...]", "download a language model and texts, once; all if none is named"),
    "card": ("MODULE:FORWARD MODULE:INIT", "a report on your sequence model; --check FOLDER"),
    "new": ("PACKAGE/THEME/NAME", "write a small experiment that works, to be changed"),
}

_KINDS: dict[str, type] = {"": bool, "N": int, "K": int, "DIR": Path}
_KINDS |= {"KEY=VALUE": list, "KEY=V,V": list}
_TABLE = """
--tier TIER | run submit draw card | smoke (a minute the first time, then seconds), \
laptop (minutes), some paper (hours, a night)
--seeds N | run submit card | so many runs (the config's runs or seeds); of a card, trainings
--sweep KEY=V,V | run | one NAME at each of these values, n=5,10,20; said twice, at all pairs
--model PATH | run submit | a decoder of your own, GGUF or folder: short for the config's model
--config.KEY VALUE... | run submit | another value, for one NAME, in a folder; run NAME -h has all
--out DIR | list run submit draw report compare card | folder of results; else figures, .cache/smoke
--beside | run | into .cache/reproduced; says how each result stands to the committed one
--together N | run | so many experiments at a time, each in a process of its own; else one
--engine ENGINE | submit | slurm, which is the default, or local: this machine
--shares K | submit | K tasks for each experiment, its runs split among them, at once or in turn
--slurm KEY=VALUE | submit | a flag of sbatch, as often as there are: time=12:00:00
--status | submit | where the tasks stand; with a NAME, its tasks
--again | submit | submit those anew that failed or died, alone
--panel LETTER | draw | one panel of one NAME, cut out as pdf, svg and png
--with-caption | draw | the figure with its caption below it, for a slide, as files of their own
--package PACKAGE | list run submit draw report | the package of experiments, else {home}
--theorem | new | the test of a small theorem with a control, tests/theorems/test_NAME.py
--name NAME | card | the folder of the card, and what its page calls the model
--query | card | the model answers the query alone, of tokens [x, y]; else every x, of bound tokens
--check | card | whether the card of each FOLDER is whole, and its weights have its risks
--list | fetch | what can be fetched, and whether it is in the cache
"""


def _option(row: str) -> Option:
    what, commands, meaning = row.split(" | ")
    word, _, value = what.partition(" ")
    kind = _KINDS.get(value, str)
    return Option(word, value, meaning, tuple(commands.split()), kind)


OPTIONS = tuple(map(_option, _TABLE.strip().splitlines()))

STATUS = (
    ("exit status 0", "done"),
    ("exit status 1", "something could not be judged, drawn or fetched; the rest is in place"),
    ("exit status 2", "refused before anything was computed; the sentence says what would do"),
    ("exit status 3", "a training diverged in every run; the last finite checkpoint is kept"),
    ("exit status 130", "interrupted; the same words go on from the last checkpoint"),
    ("exit status 143", "the same of a training that SIGTERM has asked to end"),
)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Command, names and options of a command line; ``changes`` are its ``--config.KEY VALUE``."""
    rest, changes = overrides.split(words)
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("command", nargs="?")
    parser.add_argument("names", nargs="*")
    for option in OPTIONS:
        if option.kind is bool:
            parser.add_argument(option.word, action="store_true", default=None)
        elif option.kind is list:
            parser.add_argument(option.word, action="append")
        elif "." not in option.word:
            parser.add_argument(option.word, type=option.kind)
    parser.add_argument("-h", "--help", action="store_true")
    try:
        options, unknown = parser.parse_known_intermixed_args(rest)
    except argparse.ArgumentError as error:
        raise RefusalError(_not_a_value(error)) from None
    return argparse.Namespace(**vars(options), unknown=unknown, changes=changes)


def check(options: argparse.Namespace) -> None:
    """Refuse an unknown command, and an option or a value that the command does not take."""
    if options.command is not None:
        more = f"; {options.program} -h says what they do"
        check_known("command", options.command, list(USAGE), more)
    command = options.command or "list"
    given = [option for option in OPTIONS if _value(options, option) not in (None, [])]
    for option in given:
        if command not in option.commands:
            word = options.changes[0] if option.word == "--config.KEY" else option.word
            raise RefusalError(
                f"{word} is for {' and '.join(option.commands)}: leave it out of {command}"
            )
    if options.tier is not None:
        check_known("tier", options.tier, TIERS)
    _check_folder(options.out)


def check_known(kind: str, word: str, choices: Sequence[str], more: str = "") -> None:
    """Refuse a word that is none of the choices, with the nearest of them."""
    if word not in choices:
        best, listed = nearest(word, choices), ", ".join(choices)
        raise RefusalError(f"unknown {kind} {word!r}: nearest {best!r}; there are {listed}{more}")


def find_named(options: argparse.Namespace) -> dict[str, Experiment]:
    """The experiments of the package; refuses unknown options and names, with the nearest."""
    experiments = experiments_of(options.package)
    if options.unknown:
        keys = [
            key
            for name in options.names
            if name in experiments
            for key in vars(next(iter(experiments[name].tiers.values())))
        ]
        command = options.command or "list"
        words = [option.word for option in OPTIONS if command in option.commands]
        best = nearest(options.unknown[0], [*words, *(f"{overrides.PREFIX}{key}" for key in keys)])
        raise RefusalError(f"unknown option {' '.join(options.unknown)}: nearest {best}")
    # Where names of earlier versions are now: that of another experiment, or a sentence.
    moved: dict[str, str] = constant_of(options.package, "moved", "MOVED", {})
    names = [*experiments, "all"]
    for name in options.names:
        if name in moved:
            now = moved[name]
            again = f"{options.program} {options.command} {now}"
            whereabouts = f"is part of {now} now: {again}" if now in experiments else now
            raise RefusalError(f"{name} {whereabouts}")
        if name not in names:
            close = " or ".join(difflib.get_close_matches(name, names, n=3, cutoff=0.0))
            raise RefusalError(
                f"unknown experiment {name!r} in the package {options.package}: nearest {close}; "
                f"{options.program} list has all {len(experiments)}"
            )
    return experiments


def package_words(options: argparse.Namespace) -> str:
    """What a command needs at its end for the same package."""
    return "" if options.package == options.home else f" --package {options.package}"


def choose(options: argparse.Namespace) -> list[Experiment]:
    """The experiments meant, each once, in the order given; all of them if none is named."""
    experiments = find_named(options)
    names = experiments if "all" in options.names or not options.names else options.names
    return [experiments[name] for name in dict.fromkeys(names)]


def _not_a_value(error: argparse.ArgumentError) -> str:
    kinds = {int: "a whole number", float: "a number"}
    for option in OPTIONS:
        if option.word == error.argument_name:
            kind = kinds.get(option.kind, "a word")
            return f"write {option.word} {option.value}: {option.value} is {kind}"
    return str(error)


def _value(options: argparse.Namespace, option: Option) -> Any:
    if option.word == "--config.KEY":
        return options.changes
    return getattr(options, option.word.removeprefix("--").replace("-", "_"))


def _check_folder(out: Path | None) -> None:
    """Refuse a folder that cannot be written to before anything is computed for it."""
    if out is None:
        return
    if "\0" in str(out):
        raise RefusalError(f"--out {str(out)!r}: a name holds no null character: leave it out")
    longest = max(out.parts, key=len, default="")
    if len(longest.encode()) > _LONGEST_NAME or len(str(out.absolute())) > _LONGEST_PATH:
        raise RefusalError(f"--out {longest[:40]}...: the name is too long: name another folder")
    if out.exists() and not out.is_dir():
        raise RefusalError(f"--out {out} is a file: name a folder")
    above = next(path for path in (out, *out.absolute().parents) if path.exists())
    try:  # what the rights allow, the disk may still refuse
        tempfile.TemporaryFile(dir=above).close()
    except OSError:
        refusal = f"--out {out}: {above} cannot be written to: name another folder"
        raise RefusalError(refusal) from None
