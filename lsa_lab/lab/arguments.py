"""The command line: commands as dataclasses, parsed by tyro, and refusals in one sentence."""

import contextlib
import io
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from lsa_lab.lab.catalogue import TIERS, UsageError, check_known, choose, find, find_near

PREFIX = "--config."
HELP = ("-h", "--help")

Names = tyro.conf.Positional[tuple[str, ...]]
Flag = tyro.conf.FlagCreatePairsOff[bool]


@dataclass(frozen=True, kw_only=True)
class InPackage:
    """A command on the experiments of a package."""

    package: str = "experiments"  # folder of scripts, here or above


@dataclass(frozen=True, kw_only=True)
class List(InPackage):
    """List the experiments, their questions, and the verdicts of the committed results."""


@dataclass(frozen=True, kw_only=True)
class Run(InPackage):
    """Compute, judge and draw experiments; the same command resumes after an interruption.

    Results go to .cache/figures. --config.FIELD VALUE changes a field of the configuration;
    lsa-lab run NAME -h lists the fields.
    """

    names: Names = ()  # experiments, or all
    tier: str = "quick"  # smoke (seconds), quick (half a minute) or full
    sweep: str = ""  # one field and its values, as n=8,16,32
    claim: str = ""  # id of the claim that a sweep plots; else the first
    jobs: int = 1  # experiments at a time, each in a process of its own
    out: Path | None = None  # folder of results, in place of .cache/figures
    publish: Flag = False  # write the full tier to figures/NAME, to be committed


@dataclass(frozen=True, kw_only=True)
class Draw(InPackage):
    """Judge and draw results again from their result.nc, without computing."""

    names: Names = ()  # experiments, or all
    panel: str = ""  # letter of one panel, written as panel_LETTER.pdf and .png
    out: Path | None = None  # folder of results, in place of the committed ones


@dataclass(frozen=True, kw_only=True)
class Compare(InPackage):
    """Print the claims of two results side by side."""

    names: Names = ()  # two experiments or folders of results; of one, cached and committed


@dataclass(frozen=True, kw_only=True)
class Report(InPackage):
    """Write CLAIMS.md, claims.csv and index.html from the committed results."""


@dataclass(frozen=True, kw_only=True)
class Register(InPackage):
    """Write down the claims and the full configuration of experiments before their full run."""

    names: Names = ()  # experiments


@dataclass(frozen=True, kw_only=True)
class New:
    """Write a small experiment that works, to be changed."""

    names: Names = ()  # PACKAGE/NAME or PACKAGE/THEME/NAME, such as my_lab/question


@dataclass(frozen=True, kw_only=True)
class Card:
    """Train and examine a sequence model of your own, and write its report card."""

    names: Names = ()  # MODULE:FORWARD and MODULE:INIT
    name: str  # of the card and of its folder
    tier: str = "laptop"  # smoke, laptop or paper
    seeds: int | None = None  # trainings; else those of the tier
    task: str = "regression"  # or drift, recall, nested, bigrams
    d: int = 8  # covariates; tokens have 2d + 1 numbers
    n: int | None = None  # demonstrations in training; else 8d
    query: Flag = False  # the model answers the query alone, of tokens [x, y]
    out: Path = Path("figures/cards")  # folder of cards


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """Download a language model and texts into the cache, once."""

    names: Names = ()  # sources; else all


@dataclass(frozen=True, kw_only=True)
class Submit(InPackage):
    """Run the full tier of experiments as jobs of a cluster, by submitit."""

    names: Names = ()  # experiments, or all
    tier: str = "full"  # smoke, quick or full
    nodes: int = 1  # machines that share the runs of one experiment
    tasks_per_node: int = 1  # processes on each machine
    hours: float = 12.0  # limit of a job
    cluster: str = "slurm"  # or local: processes of this machine
    partition: str = ""  # of SLURM
    publish: Flag = False  # write to figures/NAME


COMMANDS: dict[str, type] = {
    kind.__name__.lower(): kind
    for kind in (List, Run, Draw, Compare, Report, Register, New, Card, Fetch, Submit)
}


def parse(words: Sequence[str]) -> tuple[Any, list[str]]:
    """Return the command of a command line, and the words of its ``--config`` options.

    Raises UsageError in one sentence if a word is wrong; ``-h`` prints help and exits.
    """
    name, *others = words or ["list"]
    if name not in COMMANDS and _name_experiments(words):
        raise UsageError(f"unknown command {name!r}: did you mean lsa-lab run {shlex.join(words)}?")
    check_known("command", name, COMMANDS)
    config, others = _split_config(others)
    if config and name != "run":
        raise UsageError(f"{config[0]} changes a configuration: it is for lsa-lab run")
    # A shell leaves ~ as it is in --out=~/results.
    others = [re.sub("=~(?=/|$)", f"={Path.home()}", word) for word in others]
    command = parse_dataclass(COMMANDS[name], others, f"lsa-lab {name}")
    if name != "card" and hasattr(command, "tier"):
        check_known("tier", command.tier, TIERS)
    return command, config


def _name_experiments(words: Sequence[str]) -> bool:
    """Return whether words would be right after ``lsa-lab run``."""
    others = [word for word in _split_config(words)[1] if word not in HELP]
    with contextlib.suppress(UsageError):
        command = parse_dataclass(Run, others, "lsa-lab run")
        return bool(choose(command.names, find(command.package)))
    return False


def _split_config(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options that begin with --config. with their values, and all other words."""
    config: list[str] = []
    others: list[str] = []
    into = others
    for word in words:
        if word.startswith("-") and not re.match(r"-\d", word):
            into = config if word.startswith(PREFIX) else others
        into.append(word)
    return config, others


def parse_config(module: Any, tier: str, words: Sequence[str], name: str) -> Any:
    """Return the configuration of a tier with the changes of ``--config.FIELD VALUE`` words."""
    usual = module.TIERS[tier]
    if not words:
        return usual
    plain = [re.sub(f"^{re.escape(PREFIX)}", "--", word) for word in words]
    try:
        return parse_dataclass(module.Config, plain, f"lsa-lab run {name}", usual, PREFIX)
    except ValueError as error:  # a check of the script
        raise UsageError(f"{name}: {error}") from None


def parse_dataclass(
    kind: type, words: Sequence[str], prog: str, default: Any = None, prefix: str = "--"
) -> Any:
    """Return an instance of a dataclass from words; raise UsageError in one sentence."""
    message = io.StringIO()
    more = {} if default is None else {"default": default}
    try:
        with contextlib.redirect_stderr(message):
            return tyro.cli(kind, args=list(words), prog=prog, **more)
    except SystemExit as end:
        if not end.code:
            raise
        raise UsageError(_shorten(message.getvalue(), prefix, prog)) from None


def _shorten(text: str, prefix: str, prog: str) -> str:
    """Return in one sentence what tyro's box says."""
    joined = " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())
    help_advice = f"{prog} -h shows a call"
    if unknown := re.search(r"Unrecognized (?:options|arguments): ([^\s,]+)", joined):
        if not unknown[1].startswith("-"):
            return f"{prog} does not take {unknown[1]!r}: {help_advice}"
        word = unknown[1].removeprefix("--")
        options = set(re.findall(r"(?<= )--([\w.-]+)", joined)) - {word}
        near = find_near(word, sorted(options))
        advice = f"did you mean {prefix}{near}?" if near else f"{prog} -h lists them"
        return f"unknown option {prefix}{word}: {advice}"
    if wrong := re.search(r"Error parsing --([\w.-]+): (.*?)(?: Argument|$)", joined):
        metavar = re.search(rf"--{re.escape(wrong[1])} ([A-Z|\[\]{{}}. ]+?) [a-z(]", joined)
        usual = re.search(r"\(default: (.*?)\)", joined)
        kind = f", expected {metavar[1]}" if metavar else ""
        advice = f"; the usual value is {usual[1]}" if usual else ""
        return f"{prefix}{wrong[1]}: {wrong[2]}{kind}{advice}"
    if empty := re.search(r"Missing value for argument '--([\w.-]+)", joined):
        return f"{prefix}{empty[1]} has no value: {help_advice}"
    if missing := re.search(r"[Rr]equired options? .*?--([\w.-]+)", joined):
        return f"{prefix}{missing[1]} is missing; {help_advice}"
    return f"{joined[:200]}; {help_advice}"
