"""A report card: train or take a model, measure the probes, and save the results."""

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
from lsa_lab.card import (
    builtin_models,
    cost,
    formats,
    leaderboard,
    mechanism,
    page,
    probes,
    recipe,
    tracking,
)
from lsa_lab.card.evaluation import EvaluationContext
from lsa_lab.card.identity import NUM_PROMPT_SETS
from lsa_lab.card.model_checks import Forward, check_leaves, prepare_model
from lsa_lab.card.model_under_test import ModelUnderTest, UnfitError, hash_program
from lsa_lab.card.probe import Probe
from lsa_lab.card.recipe import TIERS, Tier
from lsa_lab.files import write_file
from lsa_lab.provenance import collect_facts
from lsa_lab.training.checkpoints import hash_arrays

PROBES: tuple[Callable[[EvaluationContext], list[Probe]], ...] = (
    probes.measure_risk,
    mechanism.find_rules,
    probes.measure_long_prompts,
    probes.measure_shifts,
    probes.measure_sparse_weights,
    probes.measure_drift,
    mechanism.measure_overwriting,
    mechanism.measure_recall,
    mechanism.measure_permutation_distance,
    mechanism.measure_label_gradients,
    builtin_models.measure_clipping,
    cost.measure_precision,
    cost.measure_speed,
    probes.measure_training_steps,
    tracking.measure_state_tracking,
)


@dataclass(frozen=True)
class Card:
    """The report on one model: ``probes`` by name, the curves of the page, and the facts."""

    probes: dict[str, Probe]
    curves: dict[str, Any]  # drawn on the page
    facts: dict[str, Any]  # tier, runs, sizes, versions, digest of the weights, seconds
    weights: Any = None  # params of the first run, if the card trained the model

    @property
    def headline(self) -> str:
        """Return the text of the badge, "1.3 x Bayes | ridge-like | 2 x at 8 times the length"."""
        return formats.format_headline(self.to_json("a model"))

    def to_json(self, name: str) -> dict[str, Any]:
        """Return the contents of card.json for a model of this name; infinite numbers as words."""
        rows = [_to_json(dataclasses.asdict(probe)) for probe in self.probes.values()]
        body = {"name": name, "schema": leaderboard.SCHEMA, **_to_json(self.facts)}
        body |= {"curves": _to_json(self.curves), "probes": rows}
        return body | {"sha256": formats.hash_card(body)}

    def save(self, folder: str | Path) -> Path:
        """Write card.json, index.html, badge.svg and weights.npz, and return the folder."""
        folder = Path(folder)
        body = self.to_json(folder.name)
        text = json.dumps(body, indent=1, ensure_ascii=False)
        write_file(folder / "card.json", text.encode())
        write_file(folder / "index.html", page.render_card(body).encode())
        write_file(folder / "badge.svg", page.render_badge(body).encode())
        if self.weights is not None:
            leaderboard.write_weights(folder, self.weights)
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
    log: Callable[[str], None] = lambda line: None,
) -> Card:
    """Return a card: what a model computes in context, its risk over the best, where it fails.

    ``forward(params, tokens)`` takes one prompt. A causal model takes tokens [x_t, x_{t-1},
    y_{t-1}], [T, 2d + 1] (``prompts.bound_tokens``), and returns a prediction for each, [T], or a
    Trace; any other takes [x_i, y_i] and the query, [n + 1, d + 1], and predicts the query.
    With ``init(key) -> params`` the recipe of the tier trains three seeds, or ``seeds`` of them, on
    linear regression with noise, w ~ N(0, I/d), or w from a table of ``tasks``; a ``folder`` keeps
    checkpoints, from which a killed card resumes. With ``params`` nothing is trained, and intervals
    are over eight sets of prompts. ``states(params, tokens)`` returns the states of a recurrent
    model. ``log`` receives lines of progress.

    Raises UnfitError in the first seconds for a model that a card cannot describe.
    """
    started = time.monotonic()
    size, tier_name = _choose_tier(tier, seeds, init, params)
    task_table = _check_tasks(tasks, size.d)
    first = _draw_params(init) if init is not None else params
    check_leaves(first, trained=init is not None)
    model = prepare_model(forward, first, size.d, size.n, causal)
    facts = {"tier": tier_name, **dataclasses.asdict(size)}
    run_params, late_risk_ratios = [params] * NUM_PROMPT_SETS, None
    if init is None:
        facts |= {"trained": False}
    else:
        training, training_facts = _train(model, init, size, task_table, folder, log)
        run_params, late_risk_ratios = training.params, training.late_risk_ratios
        facts |= training_facts
    distribution = size.distribution(task_table)
    context = EvaluationContext(
        model, run_params, size, distribution, states, init, late_risk_ratios
    )
    measured = _measure_probes(context, log)
    facts |= _collect_facts(model, run_params, first, task_table)
    facts |= {"seconds": round(time.monotonic() - started, 1)}
    return Card(measured, context.curves, facts, None if init is None else run_params[0])


def _train(
    model: ModelUnderTest,
    init: Callable[[Array], Any],
    size: Tier,
    task_table: np.ndarray | None,
    folder: str | Path | None,
    log: Callable[[str], None],
) -> tuple[recipe.TrainingResult, dict[str, Any]]:
    """Train the runs, and return the result and its facts for card.json."""
    checkpoints = None if folder is None else Path(folder)
    resumed = checkpoints is not None and any(checkpoints.glob("*.ckpt*"))
    training = recipe.train_runs(model, init, size, task_table, checkpoints, log)
    facts = {"trained": True, "rate": training.rate, "training_seconds": training.seconds}
    return training, facts | {"resumed": resumed}  # the seconds are those of this process


def _measure_probes(context: EvaluationContext, log: Callable[[str], None]) -> dict[str, Probe]:
    """Return the probes by name, each with its share of the seconds among its facts."""
    measured: dict[str, Probe] = {}
    for measure in PROBES:
        start = time.monotonic()
        log((measure.__doc__ or "").splitlines()[0])
        results = measure(context)
        seconds = round((time.monotonic() - start) / max(len(results), 1), 2)
        for probe in results:
            facts = {**probe.facts, "seconds": seconds}
            measured[probe.name] = dataclasses.replace(probe, facts=facts)
    return measured


def _collect_facts(
    model: ModelUnderTest, run_params: list[Any], first: Any, task_table: np.ndarray | None
) -> dict[str, Any]:
    """Return the number of parameters, hashes of the program and the weights, and versions."""
    leaves, tokens = jax.tree.leaves(first), jnp.zeros((3, model.width), model.dtype)
    program = hash_program(model.predict, first, tokens)
    return {
        "causal": model.causal,
        "pretraining_tasks": None if task_table is None else len(task_table),
        "parameters": int(sum(np.size(leaf) for leaf in leaves)),
        "runs": len(run_params),
        "program_sha256": program or "unknown: it calls a function of the host",
        "weights_sha256": hash_arrays(run_params),
        "first_sha256": hash_arrays(run_params[0]),
        **collect_facts(Path(__file__).parent),
    }


def _choose_tier(tier: str | Tier, seeds: int | None, init: Any, params: Any) -> tuple[Tier, str]:
    """Return the sizes of the card and the name of the tier."""
    if (init is None) == (params is None):
        raise UnfitError("give init(key) -> params to train a model, or trained params; not both")
    if not isinstance(tier, Tier) and tier not in TIERS:
        raise UnfitError(f"tier = {tier!r}: choose {', '.join(TIERS)}, or give a Tier")
    size, name = (TIERS[tier], tier) if isinstance(tier, str) else (tier, "custom")
    if seeds is None:
        return size, name
    if init is None:
        raise UnfitError("seeds need a training: give init(key) -> params, or leave seeds out")
    try:
        num_seeds = check_at_least(seeds, "seeds", 2)  # an interval needs two
    except ValueError as error:
        raise UnfitError(str(error)) from None
    return dataclasses.replace(size, runs=num_seeds), name


def _draw_params(init: Callable[[Array], Any]) -> Any:
    try:
        return init(jax.random.key(0))
    except Exception as error:
        raise UnfitError(
            f"init(key) raises {type(error).__name__}: {error}: it takes a jax.random.key and "
            "returns params"
        ) from error


def _check_tasks(tasks: Any, d: int) -> np.ndarray | None:
    if tasks is None:
        return None
    table = np.asarray(tasks, float)
    if table.ndim != 2 or table.shape[1] != d or not np.isfinite(table).all():
        raise UnfitError(f"tasks has shape {table.shape}: give finite weights [k, {d}], d = {d}")
    return table


def _to_json(value: Any) -> Any:
    """Return a value that JSON can hold: infinite numbers as words, tuples as lists."""
    if isinstance(value, dict):
        return {str(key): _to_json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(entry) for entry in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else str(float(value))
    return value
