"""Programs that are killed at every call, whose disk fails from any call on, or loses its power."""

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

from tools.chaos.calls import Call, Killed, watched
from tools.chaos.disk import Log, crash_states, lay, tree
from tools.chaos.lost import Lost
from tools.chaos.writers import Program

_FAILING = ("create", "write", "fsync", "fsync folder", "rename", "mkdir")


def recorded(program: Program, folder: Path) -> tuple[Log, tuple]:
    """The calls of a program that nobody disturbs, and what it ends with."""
    program.prepare(_empty(folder))
    log = Log(folder, tree(folder))
    with watched(folder, log.see):
        for _ in program.steps(folder):
            log.promise()
    return log, contents(program, folder)


def failpoints(log: Log) -> Iterator[tuple[str, int]]:
    """Each place where a program can be killed, by name, and how many are before it: before,
    during and after each write and truncation, before and after any other call."""
    number = 0
    for index, call in enumerate(log.calls):
        for moment in ("before", "during", "after"):
            if moment != "during" or call.kind == "write":
                yield f"{moment} call {index}, {call}", number
            number += 1


def killed(program: Program, folder: Path, end: tuple, place: int) -> None:
    """Kill the program at a failpoint, read what is there, and let it run again to its end."""
    count, kept = 0, 0

    def see(moment: str, call: Call) -> None:
        nonlocal count
        count += 1
        if count > place:
            raise Killed

    program.prepare(_empty(folder))
    try:
        with watched(folder, see):
            for _ in program.steps(folder):
                kept += 1
    except Killed:
        pass
    check(program, folder, kept, end)


def failed(program: Program, folder: Path, end: tuple, place: int) -> None:
    """The same with a disk that is full from a call on: the program ends with OSError."""
    count, kept = 0, 0

    def see(moment: str, call: Call) -> None:
        nonlocal count
        if moment == "during":
            count += 1
            if count > place and call.kind in _FAILING:
                raise OSError(errno.ENOSPC, "No space left on device")

    program.prepare(_empty(folder))
    try:
        with watched(folder, see):
            for _ in program.steps(folder):
                kept += 1
    except OSError:
        pass
    left = [path.name for path in folder.rglob("*.tmp")]
    if left:
        raise Lost(f"{program.name}: {left} stays when the disk is full")
    check(program, folder, kept, end)


def power_cuts(
    program: Program, folder: Path, log: Log, end: tuple, most: int, every: int = 1
) -> int:
    """The program after every state that a power cut can leave, or every so manieth, and their
    number."""
    states = list(crash_states(log, most))[::every]
    for cut, state in states:
        lay(state, _empty(folder))
        check(program, folder, log.kept(cut), end)
    return len(states)


def check(program: Program, folder: Path, kept: int, end: tuple) -> None:
    """Raise Lost unless the last version that was promised, or the next one, is there, and the
    program, begun again, ends with what it ends with when nobody disturbs it."""
    try:
        version = program.read(folder)
    except (ValueError, OSError, AssertionError) as error:
        raise Lost(f"{program.name}: {kept} were promised, and {error}") from error
    if version is not None and version not in (kept, kept + 1):
        raise Lost(f"{program.name}: {kept} were promised, and version {version} is there")
    for _ in program.steps(folder):
        pass
    if contents(program, folder) != end:
        raise Lost(f"{program.name}: other contents than without the end")


def contents(program: Program, folder: Path) -> tuple:
    """The last version, and the names of all files: nothing is left over."""
    return program.read(folder), frozenset(tree(folder))


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
