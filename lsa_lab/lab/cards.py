"""The commands ``card`` and ``fetch``: a report card of a model, and files of language models."""

import dataclasses
import pkgutil
import shlex
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsa_lab.files import cache_folder
from lsa_lab.lab import settings
from lsa_lab.lab.arguments import Flag, Names
from lsa_lab.lab.catalogue import UsageError, add_to_path, check_known, relative

_EXAMPLE = "lsa-lab card my_package:forward my_package:init --name mine"


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
    ablate: tuple[str, ...] = ()  # LABEL=MODULE:FORWARD of models without a part
    query: Flag = False  # the model answers the query alone, of tokens [x, y]
    out: Path = Path("figures/cards")  # folder of cards

    def carry_out(self) -> int:
        name, start = self.name, time.monotonic()
        if len(self.names) != 2 or any(":" not in word for word in self.names):
            raise UsageError(
                f"card takes two addresses, MODULE:FORWARD and MODULE:INIT: {_EXAMPLE}"
            )
        if Path(name).name != name or name.startswith("."):
            raise UsageError(f"--name {name}: a name is that of one folder, without a path")
        ablate = [word.partition("=") for word in self.ablate]
        if any(":" not in address for _, _, address in ablate):
            raise UsageError("--ablate takes LABEL=MODULE:FORWARD, as 'no gate=my_package:ungated'")
        settings.configure(self.tier)
        import jax

        from lsa_lab.card import UnfitError, leaderboard, report_card
        from lsa_lab.training.status import DivergedError

        jax.config.update("jax_enable_x64", False)  # layers are trained in float32

        def log(text: str) -> None:
            print(f"{time.monotonic() - start:5.0f} s  {text}", flush=True)

        forward, init = map(find_object, self.names)
        options: dict[str, Any] = {
            field: getattr(self, field) for field in ("tier", "seeds", "task", "d", "n")
        }
        checkpoints = cache_folder() / "cards" / "-".join(map(str, (name, *options.values())))
        options |= {"causal": not self.query, "states": find_states(self.names[0])}
        options["ablate"] = {label: find_object(address) for label, _, address in ablate}
        try:
            report = report_card(forward, init, **options, folder=checkpoints, log=log)
        except UnfitError as error:
            raise UsageError(f"{name}: {error}") from None
        except DivergedError as error:
            print(f"error: {name}: {error}", file=sys.stderr)
            return 1
        facts = {"name": name, "code": shlex.join(self.names)}
        report = dataclasses.replace(report, facts=report.facts | facts)
        folder = report.save(self.out / name)
        shutil.rmtree(checkpoints, ignore_errors=True)
        index = leaderboard.write_leaderboard(folder.parent)
        page = relative(folder.resolve() / "index.html")
        print(f"{report!r}\n{page}, table: {relative(index)}")
        return 0


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """Download a language model and texts into the cache, once."""

    names: Names = ()  # sources; else all

    def carry_out(self) -> int:
        from lsa_lab.lm import sources

        for name in self.names:
            check_known("source", name, sources.SOURCES)
        failed = 0
        for name in self.names or sources.SOURCES:
            print(f"{name}, {sources.SOURCES[name].download}: ", end="", flush=True)
            try:
                print(sources.fetch(name), flush=True)
            except (OSError, ValueError) as error:
                failed = 1
                print(f"not fetched: {error}", flush=True)
        return failed


def find_object(address: str) -> Any:
    """Return the object with an address MODULE:NAME or MODULE:NAME.ATTRIBUTE."""
    add_to_path(Path.cwd())
    try:
        return pkgutil.resolve_name(address)
    except Exception as error:  # the module's own code runs, and may raise anything
        raise UsageError(f"{address} cannot be imported: {error}") from None


def find_states(address: str) -> Any:
    """Return the function ``states`` beside MODULE:OBJECT.forward, None if there is none."""
    owner, _, _ = address.rpartition(".")
    return getattr(find_object(owner), "states", None) if ":" in owner else None
