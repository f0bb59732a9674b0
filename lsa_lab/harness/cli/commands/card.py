"""``card``: a report on one sequence model, yours or one of the house."""

import argparse
import dataclasses
import importlib
import json
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import process
from lsa_lab.harness.run.folders import FIGURES
from lsa_lab.store.cache import cache

_EXAMPLE = "card my_package:forward my_package:init --name mine"


def obey(options: argparse.Namespace) -> int:
    """Two addresses MODULE:NAME, of forward(params, tokens) and of init(key) -> params, in this
    folder or installed. Three seeds (eight of the paper tier) are trained by a fixed recipe, in
    float32, and asked; the card goes to figures/cards/NAME, and the table of all cards beside it.
    docs/card.md says what each number means. Such as: card my_package:forward my_package:init
    --name mine."""
    if options.unknown:
        raise RefusalError(f"unknown option {' '.join(options.unknown)}: write {_EXAMPLE}")
    if options.check:
        return _check(options.names)
    name = options.name
    if len(options.names) != 2 or not name or any(":" not in word for word in options.names):
        raise RefusalError(f"card needs two addresses and a name: {_EXAMPLE}")
    if Path(name).name != name or name.startswith("."):
        raise RefusalError(f"--name {name}: a name is that of one folder, without a path")
    process.configure()
    import jax

    from lsa_lab.card import UnfitError, report_card, shelf
    from lsa_lab.harness.run.series import DIVERGED
    from lsa_lab.training.status import DivergedError

    jax.config.update("jax_enable_x64", False)  # layers are trained in float32 everywhere
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {line}", flush=True)

    forward, init = map(_object, options.names)
    tier = options.tier or "laptop"
    seeds = options.seeds
    work = cache() / "cards" / f"{name}-{tier}-{seeds}"  # where a killed training resumes
    try:
        card = report_card(forward, init, tier=tier, seeds=seeds, causal=not options.query,
                           folder=work, say=say)  # fmt: skip
    except UnfitError as error:
        raise RefusalError(str(error)) from None
    except DivergedError as error:
        print(f"error: {name}: {error}", file=sys.stderr)
        return DIVERGED
    except ValueError as error:
        if not any(work.glob("*.ckpt*")):
            raise
        advice = f"if the model has changed since, delete {work}, from which it would resume"
        raise RefusalError(f"{error}; {advice}") from None
    card = dataclasses.replace(card, facts=card.facts | {"code": shlex.join(options.names)})
    folder = card.save((options.out or FIGURES / "cards") / name)
    shutil.rmtree(work, ignore_errors=True)
    index = shelf.write_index(folder.parent)
    print(f"{card.headline}\n{folder / 'index.html'}, beside others in {index}")
    return 0


def _check(names: list[str]) -> int:
    """Schema and sum of every card; of those with weights and code also the risks, anew."""
    process.configure()
    from lsa_lab.card import shelf

    if not names:
        raise RefusalError("card --check needs a FOLDER with a card.json")
    wrong, again, left = [], [], []
    for folder in map(Path, names):
        faults = shelf.faults(folder)
        body = {} if faults else json.loads((folder / "card.json").read_text("utf-8"))
        code = shlex.split(str(body.get("code", "")))
        if len(code) == 2 and (folder / "weights.npz").is_file():
            again.append(folder.name)
            faults = shelf.unlike(folder, *map(_object, code))
        elif not faults:
            left.append(folder.name)
        wrong += faults
    anew = f"; risks computed anew are the same: {', '.join(again)}" if again else ""
    if left:
        anew += f"; no risk was computed anew, without weights and two addresses: {', '.join(left)}"
    print("\n".join(wrong) if wrong else f"{', '.join(names)}: schema and sum are right{anew}")
    return 1 if wrong else 0


def _object(address: str) -> Any:
    """What an address MODULE:NAME, or MODULE:NAME.ATTRIBUTE, stands for."""
    module, _, names = address.partition(":")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        value: Any = importlib.import_module(module)
    except Exception as error:  # its own code runs, and may raise anything
        what = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        said = f"{address}: the module {module} cannot be imported: {what}{error}"
        raise RefusalError(f"{said}; an address is MODULE:NAME, as in my_package:forward") from None
    for part in names.split("."):
        if not hasattr(value, part):
            raise RefusalError(f"{address}: there is no {part} in {module}")
        value = getattr(value, part)
    return value
