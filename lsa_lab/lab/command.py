"""The program ``lsa-lab``; nothing heavy is imported before a command needs it."""

import errno
import importlib
import io
import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from lsa_lab.lab import arguments
from lsa_lab.lab.arguments import COMMANDS
from lsa_lab.lab.catalogue import (
    UsageError,
    choose,
    find,
    find_script,
    relative,
)

INTERRUPTED = 130
NOT_WRITABLE = {
    getattr(errno, name)
    for name in ("EACCES", "EPERM", "EROFS", "ENOSPC", "EDQUOT", "ENOTDIR", "EEXIST")
}


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
    """Obey the command line; return 0, 1 if a part failed, 2 if the call is wrong."""
    words = sys.argv[1:]
    if sys.stdout is None:
        print("error: the output is closed: send it to a file or to /dev/null", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # signs that a terminal does not have
        os.environ["PYTHONIOENCODING"] = f"{sys.stdout.encoding}:replace"  # of other processes
    try:
        try:
            return obey(words)
        finally:
            sys.stdout.flush()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\ninterrupted; to resume: lsa-lab {shlex.join(words)}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, such as head, has seen enough
        discard_output()
        return 0
    except OSError as error:
        if error.errno not in NOT_WRITABLE:
            raise
        discard_output()
        print(f"error: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        return 1


def discard_output() -> None:
    """Send what is left to be printed nowhere, so that the end of the process does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def obey(words: Sequence[str]) -> int:
    """Carry out the words of a command line."""
    if list(words[:1]) in (["-h"], ["--help"], ["help"]):
        print(describe_commands())
        return 0
    if list(words) == ["--version"]:
        from lsa_lab import __version__

        print(f"lsa_lab {__version__}")
        return 0
    others = [word for word in words if word not in arguments.HELP]
    if others[:1] == ["run"] and len(others) < len(words):
        asked, _ = arguments.parse(others)
        if asked.names:
            return show_fields(asked)
    command, config = arguments.parse(words)
    name = type(command).__name__.lower()
    if name in ("card", "fetch", "submit"):
        module = importlib.import_module(f"lsa_lab.lab.{_MODULES[name]}")
        return getattr(module, name)(command)
    return globals()[f"{name}_"](command, *([config] if name == "run" else []))


_MODULES = {"card": "cards", "fetch": "cards", "submit": "cluster"}


def describe_commands() -> str:
    """Return the help of the program: a line for each command."""
    lines = ["usage: lsa-lab COMMAND [WORDS]; lsa-lab COMMAND -h explains one", ""]
    for name, kind in COMMANDS.items():
        first = (kind.__doc__ or "").partition("\n")[0]
        lines.append(f"  {name:10}{first}")
    lines += ["", "Begin with: lsa-lab list, then lsa-lab run NAME"]
    return "\n".join(lines)


def show_fields(command: arguments.Run) -> int:
    """Print the fields of the configuration of an experiment, with the values of quick."""
    experiment, *_ = choose(command.names, find(command.package))
    module, name = experiment.load(), experiment.name
    print(textwrap.fill(f"{name}: {experiment.question}", 100))
    print(f"\nlsa-lab run {name} --config.FIELD VALUE, with these fields and values of quick:")
    arguments.parse_dataclass(module.Config, ["-h"], f"lsa-lab run {name}", module.TIERS["quick"])
    return 0


def list_(command: arguments.List) -> int:
    """Print the experiments by theme, with seconds and verdicts of the committed results."""
    from lsa_lab.lab.listing import list_experiments

    print(list_experiments(find(command.package)))
    return 0


def run_(command: arguments.Run, config: list[str]) -> int:
    """Run the experiments, one after the other or several at a time."""
    experiments = choose(command.names, find(command.package))
    if not experiments:
        raise UsageError("no experiment is named: lsa-lab list shows them")
    if len(experiments) > 1 and (config or command.sweep):
        raise UsageError("--config and --sweep change one experiment: name one")
    if command.publish and (command.tier != "full" or config or command.sweep):
        raise UsageError("--publish takes --tier full without changes: leave it out of this run")
    if command.jobs < 1:
        raise UsageError(f"--jobs {command.jobs}: choose 1 or more")
    from lsa_lab.lab import batch

    if command.sweep:
        from lsa_lab.lab.sweep import run_sweep

        return run_sweep(experiments[0], command, config)
    return batch.run_all(experiments, command, config)


def draw_(command: arguments.Draw) -> int:
    """Judge and draw results again, or write one panel."""
    from lsa_lab.lab import results, settings
    from lsa_lab.lab.run import write_panel, write_result

    settings.configure()
    for experiment in choose(command.names, find(command.package)):
        folder = command.out / experiment.name if command.out else experiment.figures
        module = experiment.load()
        result = results.load(folder)
        if command.panel:
            write_panel(module, result, command.panel, folder)
        else:
            content = (folder / "result.nc").read_bytes()
            print(write_result(experiment, module, content, folder)["caption"])
        print(relative(folder))
    return 0


def compare_(command: arguments.Compare) -> int:
    """Print the claims of two results side by side."""
    from lsa_lab.lab.listing import compare_records, find_record

    names = command.names * (3 - len(command.names)) if len(command.names) == 1 else command.names
    if len(names) != 2:
        raise UsageError("compare takes two results: lsa-lab compare A B, or one experiment")
    experiments = find(command.package)
    cached = [True, False] if len(command.names) == 1 else [False, False]
    records = [find_record(name, experiments, c) for name, c in zip(names, cached, strict=True)]
    print(compare_records(*records))
    return 0


def report_(command: arguments.Report) -> int:
    """Write the pages of all committed results."""
    from lsa_lab.lab.pages import report

    for path in report(command.package):
        print(relative(path))
    return 0


def register_(command: arguments.Register) -> int:
    """Register experiments, and say what to do next."""
    from lsa_lab.lab import registration, settings

    settings.set_environment()
    chosen = choose(command.names, find(command.package))
    for experiment in chosen:
        new = registration.register(experiment)
        seeds = ", ".join(f"{k} = {v}" for k, v in registration.seeds_in(new["config"]))
        print(f"{experiment.name}: {len(new['claims'])} claims, {seeds or 'no seed'}")
    names = " ".join(experiment.name for experiment in chosen)
    print(f"commit this, then: lsa-lab run {names} --tier full --publish")
    return 0


def new_(command: arguments.New) -> int:
    """Write the template of an experiment into a package."""
    if len(command.names) != 1:
        raise UsageError("name one experiment: lsa-lab new my_lab/question")
    path = Path(command.names[0].removesuffix(".py"))
    parts = path.parts
    if path.is_absolute() or not 2 <= len(parts) <= 3 or not all(map(str.isidentifier, parts)):
        raise UsageError(f"{command.names[0]!r}: write PACKAGE/NAME, as my_lab/question")
    script = path.with_suffix(".py")
    if script.exists():
        raise UsageError(f"{script} exists: choose another name")
    script.parent.mkdir(parents=True, exist_ok=True)
    template = Path(__file__).parent / "templates" / "experiment.py"
    script.write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
    package = "" if parts[0] == "experiments" else f" --package {parts[0]}"
    print(f"{script}; run it: lsa-lab run {path.name}{package}")
    return 0


if __name__ == "__main__":
    sys.exit(program())
