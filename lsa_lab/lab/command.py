"""The program ``lsa-lab``; nothing heavy is imported before a command needs it."""

import errno
import importlib
import io
import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from lsa_lab.lab import arguments
from lsa_lab.lab.catalogue import UsageError, choose, find, find_root, find_script, relative

INTERRUPTED = 130
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EPIPE}
_NOT_WRITABLE |= {errno.ENOTDIR, errno.EEXIST}
_MODULES = {"card": "cards", "fetch": "cards", "submit": "cluster"}  # of other commands


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
        return INTERRUPTED
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is left to print
        if isinstance(error, BrokenPipeError):  # the reader, such as head, has seen enough
            return 0
        print(f"error: {error.filename or 'the output'}: {error.strerror}", file=sys.stderr)
        return 1


def run_command(words: Sequence[str]) -> int:
    """Carry out the words of a command line."""
    if list(words[:1]) in (["-h"], ["--help"], ["help"]):
        print("usage: lsa-lab COMMAND [WORDS]; lsa-lab COMMAND -h explains one\n")
        for name, kind in arguments.COMMANDS.items():
            print(f"  {name:10}{(kind.__doc__ or '').partition(chr(10))[0]}")
        print("\nBegin with: lsa-lab list, then lsa-lab run NAME")
        return 0
    if list(words) == ["--version"]:
        from lsa_lab import __version__

        print(f"lsa_lab {__version__}")
        return 0
    others = [word for word in words if word not in arguments.HELP]
    if others[:1] == ["run"] and len(others) < len(words):
        command, _ = arguments.parse(others)
        if command.names:
            return show_fields(command)
    command, config = arguments.parse(words)
    name = type(command).__name__.lower()
    if name == "run":
        return run_(command, config)
    module = f"lsa_lab.lab.{_MODULES[name]}" if name in _MODULES else __name__
    function = name if name in _MODULES else f"{name}_"
    return getattr(importlib.import_module(module), function)(command) or 0


def show_fields(command: arguments.Run) -> int:
    """Print the fields of the configuration of an experiment, with the values of quick."""
    experiment, *_ = choose(command.names, find(command.package))
    module, call = experiment.load(), f"lsa-lab run {experiment.name}"
    print(textwrap.fill(f"{experiment.name}: {experiment.question}", 100))
    print(f"\n{call} --config.FIELD VALUE, with these fields and values of quick:")
    arguments.parse_dataclass(module.Config, ["-h"], call, module.TIERS["quick"])
    return 0


def list_(command: arguments.List) -> None:
    """Print the experiments by theme, with seconds and verdicts of the committed results."""
    from lsa_lab.lab import pages
    from lsa_lab.lab.listing import list_experiments

    try:
        root = find_root(command.package)
    except UsageError as error:  # as in an empty folder, after pip install
        if command.package != arguments.List.package:
            raise
        print(textwrap.fill(f"{pages.ABOUT} There is {error}.", 100))
        return
    papers = pages.load_papers(command.package, root)
    print(list_experiments(find(command.package), papers))


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
    from lsa_lab.lab import batch, sweep

    if command.sweep:
        return sweep.run_sweep(experiments[0], command, config)
    return batch.run_all(experiments, command, config)


def draw_(command: arguments.Draw) -> None:
    """Judge and draw results again, or write one panel."""
    from lsa_lab.lab import results, run, settings

    settings.configure()
    for experiment in choose(command.names, find(command.package)):
        folder = command.out / experiment.name if command.out else experiment.figures
        module, result = experiment.load(), results.load(folder)
        if command.panel:
            run.write_panel(module, result, command.panel, folder)
        else:
            content = (folder / "result.nc").read_bytes()
            print(run.write_result(experiment, module, content, folder)["caption"])
        print(relative(folder))


def compare_(command: arguments.Compare) -> None:
    """Print the claims of two results side by side."""
    from lsa_lab.lab.listing import compare_records, find_record

    names, is_one = command.names, len(command.names) == 1
    if len(names) not in (1, 2):
        raise UsageError("compare takes two results: lsa-lab compare A B, or one experiment")
    experiments = find(command.package)
    left = find_record(names[0], experiments, cached=is_one)
    print(compare_records(left, find_record(names[-1], experiments, cached=False)))


def report_(command: arguments.Report) -> None:
    """Write the pages of all committed results."""
    from lsa_lab.lab import pages

    root = find_root(command.package)
    papers = pages.load_papers(command.package, root)
    print(*map(relative, pages.write_report(root / "figures", papers)), sep="\n")


def register_(command: arguments.Register) -> None:
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


def new_(command: arguments.New) -> None:
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
    shutil.copyfile(Path(__file__).parent / "templates" / "experiment.py", script)
    package = "" if parts[0] == "experiments" else f" --package {parts[0]}"
    print(f"{script}; run it: lsa-lab run {path.name}{package}")


if __name__ == "__main__":
    sys.exit(program())
