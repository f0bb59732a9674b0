"""The program: ``lsa-lab``, and ``python -m experiments`` in this repository.

A command line is judged before jax is imported: a wrong one costs no time and leaves no file.
"""

import importlib
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from lsa_lab import __version__
from lsa_lab.harness.cli import options as command_options
from lsa_lab.harness.cli.help import explain
from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process


def main(
    arguments: Sequence[str] | None = None,
    *,
    package: str = "experiments",
    program: str | None = None,
) -> int:
    """The exit status: 0, 1 if a result could not be judged, 2 if refused, 3 if a training
    diverged, 130 after Ctrl-C."""
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
    except KeyboardInterrupt as interrupt:
        advice = _advice(program, getattr(interrupt, "words", words), str(interrupt))
        print(advice, file=sys.stderr)
        return 130


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
