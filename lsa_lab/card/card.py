"""A card: the recipe, the probes, and what is kept of them."""

import dataclasses
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.arguments import check_at_least
from lsa_lab.card import house, mechanism, page, probes, recipe, shelf, tracking
from lsa_lab.card.probe import Probe
from lsa_lab.card.probes import Bench
from lsa_lab.card.recipe import TIERS, Tier
from lsa_lab.card.subject import Forward, UnfitError, check_leaves, program_of, subject_of
from lsa_lab.files import write_file
from lsa_lab.provenance import collect_facts
from lsa_lab.training.checkpoints import hash_arrays

PARTS = 8  # of the prompts, where one set of params was given: intervals are over these

PROBES: tuple[Callable[[Bench], list[Probe]], ...] = (
    probes.risk_over_bayes, mechanism.rules, probes.growth, probes.shifts, probes.sparse,
    probes.drift, mechanism.overwriting, mechanism.recall, mechanism.order, mechanism.flows,
    house.clipping,
    mechanism.precision, mechanism.speed, probes.steps_to_twice, tracking.state_tracking,
)  # fmt: skip


@dataclass(frozen=True)
class Card:
    """The report on one model: ``probes`` by name, and what they rest on."""

    probes: dict[str, Probe]
    curves: dict[str, Any]  # what the page draws
    facts: dict[str, Any]  # tier, runs, sizes, versions, digest of the weights, seconds
    weights: Any = None  # of the first run, if it was trained

    @property
    def headline(self) -> str:
        """As the badge has it: "1.3 x Bayes | ridge-like | 2.1 x at 8 times the length"."""
        return page.headline(self.as_json("a model"))

    def as_json(self, name: str) -> dict[str, Any]:
        """What card.json of a model of this name holds; infinite numbers are written as words."""
        rows = [_plain(dataclasses.asdict(probe)) for probe in self.probes.values()]
        body = {"name": name, "schema": shelf.SCHEMA, **_plain(self.facts)}
        body |= {"curves": _plain(self.curves), "probes": rows}
        return body | {"sha256": page.digest(body)}

    def save(self, folder: str | Path) -> Path:
        """Write card.json, index.html, badge.svg and weights.npz; returns the folder."""
        folder = Path(folder)
        body = self.as_json(folder.name)
        text = json.dumps(body, indent=1, ensure_ascii=False)
        write_file(folder / "card.json", text.encode())
        write_file(folder / "index.html", page.html(body).encode())
        write_file(folder / "badge.svg", page.badge(body).encode())
        if self.weights is not None:
            shelf.write_weights(folder, self.weights)
        return folder


def report_card(
    forward: Forward,
    init: Callable[[Array], Any] | None = None,
    params: Any = None,
    *,
    tasks: Any = None,  # [k, d]
    tier: str | Tier = "laptop",
    seeds: int | None = None,
    causal: bool = True,
    states: Callable[[Any, Array], Any] | None = None,
    folder: str | Path | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Card:
    """What a sequence model computes in context, how far it is from the best, where it breaks.

    ``forward(params, tokens)`` takes one prompt. If it is causal, tokens are [x_t, x_{t-1},
    y_{t-1}], [T, 2d + 1] (``prompts.bound_tokens``), and it returns a prediction for each, [T], or
    a Trace; else they are [x_i, y_i] and the query, [n + 1, d + 1], and it returns the query's.
    With ``init(key) -> params`` three seeds, or so many as ``seeds``, are trained by the recipe of
    the tier, on linear regression with noise, w ~ N(0, I/d) or, with ``tasks``, one of these; a
    ``folder`` keeps checkpoints, from which a killed card resumes. With ``params`` nothing is
    trained, and intervals are over eight sets of prompts. ``states(params, tokens)`` are what a
    recurrent model carries.
    ``say`` is told what it will cost, and what is being asked.

    Raises UnfitError in the first seconds for a model of which no card can be made.
    """
    if (init is None) == (params is None):
        raise UnfitError("give init(key) -> params, to be trained, or params, which are; not both")
    if not isinstance(tier, Tier) and tier not in TIERS:
        raise UnfitError(f"tier = {tier!r}: choose {', '.join(TIERS)}, or give a Tier")
    size, began = TIERS[tier] if isinstance(tier, str) else tier, time.monotonic()
    if seeds is not None:
        size = dataclasses.replace(size, runs=_seeds(seeds, init))
    table = _tasks(tasks, size.d)
    first = _initial_params(init) if init is not None else params
    check_leaves(first, trained=init is not None)
    subject = subject_of(forward, first, size.d, size.n, causal)
    facts = {"tier": tier if isinstance(tier, str) else "custom", **dataclasses.asdict(size)}
    late = None
    if init is not None:
        place = None if folder is None else Path(folder)
        resumed = place is not None and any(place.glob("*.ckpt*"))
        trained = recipe.trained(subject, init, size, table, place, say)
        own, late = trained.params, trained.late
        facts |= {"trained": True, "rate": trained.rate, "training_seconds": trained.seconds}
        facts |= {"resumed": resumed}  # then seconds are of this process alone
    else:
        own = [params] * PARTS
        facts |= {"trained": False}
    bench = Bench(subject, own, size, size.law(table), states, init, late)
    every: dict[str, Probe] = {}
    for ask in PROBES:
        start = time.monotonic()
        say((ask.__doc__ or "").splitlines()[0])
        answers = ask(bench)
        share = (time.monotonic() - start) / max(len(answers), 1)
        facts_of = [{**probe.facts, "seconds": round(share, 2)} for probe in answers]
        named = zip(answers, facts_of, strict=True)
        every |= {p.name: dataclasses.replace(p, facts=more) for p, more in named}
    leaves, tokens = jax.tree.leaves(first), jnp.zeros((3, subject.width), subject.dtype)
    facts |= {
        "causal": causal,
        "pretraining_tasks": None if table is None else len(table),
        "parameters": int(sum(np.size(leaf) for leaf in leaves)),
        "runs": len(own),
        "program_sha256": program_of(subject.slots, first, tokens)
        or "unknown: it calls a function of the host",
        "weights_sha256": hash_arrays(own),
        "first_sha256": hash_arrays(own[0]),
        "seconds": round(time.monotonic() - began, 1),
        **collect_facts(Path(__file__).parent),
    }
    return Card(every, bench.curves, facts, None if init is None else own[0])


def _initial_params(init: Callable[[Array], Any]) -> Any:
    try:
        return init(jax.random.key(0))
    except Exception as error:
        raise UnfitError(
            f"init(key) raises {type(error).__name__}: {error}: it takes a jax.random.key and "
            "returns params"
        ) from error


def _seeds(seeds: int, init: Any) -> int:
    if init is None:
        raise UnfitError("seeds are of a training: give init(key) -> params, or leave seeds out")
    try:
        return check_at_least(seeds, "seeds", 2)  # an interval needs two
    except ValueError as error:
        raise UnfitError(str(error)) from None


def _tasks(tasks: Any, d: int) -> np.ndarray | None:
    if tasks is None:
        return None
    table = np.asarray(tasks, float)
    if table.ndim != 2 or table.shape[1] != d or not np.isfinite(table).all():
        raise UnfitError(f"tasks has shape {table.shape}: give finite weights [k, {d}], d = {d}")
    return table


def _plain(value: Any) -> Any:
    """A value as JSON has it: infinite numbers as words, tuples as lists."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else str(float(value))
    return value
