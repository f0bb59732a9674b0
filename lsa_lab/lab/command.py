"""The program ``lsa-lab``; nothing heavy is imported before a command needs it."""

import contextlib
import dataclasses
import errno
import io
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsa_lab.lab import cards, cluster, commands
from lsa_lab.lab.arguments import parse_dataclass, split_config
from lsa_lab.lab.catalogue import TIERS, UsageError, check_known, find_script

HELP = ("-h", "--help")
COMMANDS: dict[str, type] = {
    kind.__name__.lower(): kind
    for kind in (
        *(commands.List, commands.Run, commands.Draw, commands.Compare, commands.Report),
        *(commands.Register, commands.New, cards.Card, cards.Fetch, cluster.Submit),
    )
}
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EPIPE}
_NOT_WRITABLE |= {errno.ENOTDIR, errno.EEXIST}


def main(script: str) -> None:
    """Run the experiment of a script with the words of the command line, then exit.

    The last line of a script is ``main(__file__)``. The process starts anew: settings of jax and of
    linear algebra are made before these are imported.
    """
    experiment = find_script(script)
    words = ["run", experiment.name, *sys.argv[1:], "--package", experiment.package]
    os.chdir(experiment.root)
    os.execv(sys.executable, [sys.executable, "-m", "lsa_lab.lab.command", *words])


def program() -> int:
    """Carry out the command line; return 0, 1 if a part failed, 2 if the call is wrong."""
    words = sys.argv[1:]
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # signs that a terminal does not have
        os.environ["PYTHONIOENCODING"] = f"{sys.stdout.encoding}:replace"  # of other processes
    try:
        status = run_command(words)
        sys.stdout.flush()
        return status
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\ninterrupted; to resume: lsa-lab {shlex.join(words)}", file=sys.stderr)
        return 130  # as of a program that Ctrl-C ends
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left to print
        if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
            return 0
        advice = "; --out and LSA_LAB_CACHE choose other folders" if error.filename else ""
        place = error.filename or "the output"
        print(f"error: {place}: {error.strerror}{advice}", file=sys.stderr)
        return 1


def run_command(words: Sequence[str]) -> int:
    """Carry out the words of a command line."""
    if list(words[:1]) in (["-h"], ["--help"], ["help"]):
        print("usage: lsa-lab COMMAND [WORDS]; lsa-lab COMMAND -h explains one\n")
        for name, kind in COMMANDS.items():
            print(f"  {name:10}{(kind.__doc__ or '').partition(chr(10))[0]}")
        print("\nBegin with: lsa-lab list, then lsa-lab run NAME")
        return 0
    if list(words) == ["--version"]:
        from lsa_lab import __version__

        print(f"lsa_lab {__version__}")
        return 0
    others = [word for word in words if word not in HELP]
    if others[:1] == ["run"] and len(others) < len(words):
        command = parse(others)
        if command.names:
            return command.show_fields()
    return parse(words).carry_out() or 0


def parse(words: Sequence[str]) -> Any:
    """Return the command of a command line.

    Raises UsageError in one sentence if a word is wrong; ``-h`` prints help and exits.
    """
    name, *others = words or ["list"]
    if name not in COMMANDS and _name_experiments(words):
        raise UsageError(f"unknown command {name!r}: did you mean lsa-lab run {shlex.join(words)}?")
    check_known("command", name, COMMANDS)
    config, others = split_config(others)
    if config and name != "run":
        raise UsageError(f"{config[0]} changes a configuration: it is for lsa-lab run")
    # A shell leaves ~ as it is in --out=~/results.
    others = [re.sub("=~(?=/|$)", f"={Path.home()}", word) for word in others]
    command = parse_dataclass(COMMANDS[name], others, f"lsa-lab {name}")
    if name in ("run", "submit"):
        check_known("tier", command.tier, TIERS)
    return dataclasses.replace(command, config=tuple(config)) if config else command


def _name_experiments(words: Sequence[str]) -> bool:
    """Return whether words would be right after ``lsa-lab run``."""
    with contextlib.suppress(UsageError):
        return bool(parse(["run", *(word for word in words if word not in HELP)]).experiments)
    return False


if __name__ == "__main__":
    sys.exit(program())
