"""The commands ``card`` and ``fetch``: a report card of a model, and files of language models."""

import dataclasses
import pkgutil
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from lsa_lab.files import cache_folder
from lsa_lab.lab import arguments, settings
from lsa_lab.lab.catalogue import UsageError, check_known, relative

_EXAMPLE = "lsa-lab card my_package:forward my_package:init --name mine"


def card(command: arguments.Card) -> int:
    """Train a model, examine it, and write its card."""
    name, start = command.name, time.monotonic()
    if len(command.names) != 2 or any(":" not in word for word in command.names):
        raise UsageError(f"card takes two addresses, MODULE:FORWARD and MODULE:INIT: {_EXAMPLE}")
    if Path(name).name != name or name.startswith("."):
        raise UsageError(f"--name {name}: a name is that of one folder, without a path")
    settings.configure(command.tier)
    import jax

    from lsa_lab.card import UnfitError, leaderboard, report_card
    from lsa_lab.training.status import DivergedError

    jax.config.update("jax_enable_x64", False)  # layers are trained in float32

    def log(text: str) -> None:
        print(f"{time.monotonic() - start:5.0f} s  {text}", flush=True)

    forward, init = map(find_object, command.names)
    options: dict[str, Any] = {
        field: getattr(command, field) for field in ("tier", "seeds", "task", "d", "n")
    }
    checkpoints = cache_folder() / "cards" / "-".join(map(str, (name, *options.values())))
    try:
        report = report_card(
            forward,
            init,
            **options,
            causal=not command.query,
            states=find_states(command.names[0]),
            folder=checkpoints,
            log=log,
        )
    except UnfitError as error:
        raise UsageError(str(error)) from None
    except DivergedError as error:
        print(f"error: {name}: {error}", file=sys.stderr)
        return 1
    facts = {"name": name, "code": shlex.join(command.names)}
    report = dataclasses.replace(report, facts=report.facts | facts)
    folder = report.save(command.out / name)
    shutil.rmtree(checkpoints, ignore_errors=True)
    index = leaderboard.write_leaderboard(folder.parent)
    page = relative(folder.resolve() / "index.html")
    print(f"{report!r}\n{page}, table: {relative(index)}")
    return 0


def find_object(address: str) -> Any:
    """Return the object with an address MODULE:NAME or MODULE:NAME.ATTRIBUTE."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return pkgutil.resolve_name(address)
    except Exception as error:  # the module's own code runs, and may raise anything
        raise UsageError(f"{address} cannot be imported: {error}") from None


def find_states(address: str) -> Any:
    """Return the function ``states`` beside MODULE:OBJECT.forward, None if there is none."""
    owner, _, _ = address.rpartition(".")
    return getattr(find_object(owner), "states", None) if ":" in owner else None


def fetch(command: arguments.Fetch) -> int:
    """Download sources into the cache; what is there is not downloaded again."""
    from lsa_lab.lm import sources

    for name in command.names:
        check_known("source", name, sources.SOURCES)
    failed = 0
    for name in command.names or sources.SOURCES:
        source = sources.SOURCES[name]
        print(f"{name}, {source.download}: ", end="", flush=True)
        try:
            print(sources.fetch(name), flush=True)
        except (OSError, ValueError) as error:
            failed = 1
            print(f"not fetched: {error}", flush=True)
    return failed
