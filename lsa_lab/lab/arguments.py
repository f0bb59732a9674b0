"""The parts of a command line: fields of commands, configurations, and refusals in one sentence."""

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tyro

from lsa_lab.lab.catalogue import Experiment, UsageError, choose, find, find_near

PREFIX = "--config."

Names = tyro.conf.Positional[tuple[str, ...]]
Flag = tyro.conf.FlagCreatePairsOff[bool]


@dataclass(frozen=True, kw_only=True)
class InPackage:
    """A command on the experiments of a package."""

    package: str = "experiments"  # folder of scripts, here or above


@dataclass(frozen=True, kw_only=True)
class OnExperiments(InPackage):
    """A command on some experiments of a package."""

    names: Names = ()  # experiments, or all

    @property
    def experiments(self) -> list[Experiment]:
        """The experiments with these names; raise UsageError if there are none."""
        return choose(self.names, find(self.package))


def split_config(words: Sequence[str]) -> tuple[list[str], list[str]]:
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
