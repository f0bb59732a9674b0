"""A report card: train or take a model, measure the probes, and save the results."""

import dataclasses
import inspect
import io
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.card import cost, leaderboard, mechanism, page, probes, recipe, summary
from lsa_lab.card.evaluation import TIERS, EvaluationContext, Probe, Tier
from lsa_lab.card.identity import NUM_PROMPT_SETS
from lsa_lab.card.leaderboard import SCHEMA
from lsa_lab.card.model_checks import Forward, attempt, prepare_model
from lsa_lab.card.model_under_test import UnfitError, hash_program
from lsa_lab.files import write_file
from lsa_lab.models import recurrent, transformer
from lsa_lab.provenance import collect_facts
from lsa_lab.training.checkpoints import hash_arrays


@dataclass(frozen=True, repr=False)
class Card:
    """The report on one model: ``probes`` by name, the curves of the page, and the facts."""

    probes: dict[str, Probe]
    curves: dict[str, Any]  # drawn on the page
    facts: dict[str, Any]  # name, tier, runs, sizes, versions, digest of the weights, seconds
    weights: Any = None  # params of the median run; arrays by path if the card was loaded
    ablations: dict[str, "Card"] = field(default_factory=dict)  # the same model without a part

    @property
    def headline(self) -> str:
        """Return the text of the badge, such as "1.3 x Bayes | ridge-like | breaks at n = 128"."""
        return summary.format_headline(self.to_json())

    def __repr__(self) -> str:
        """Return the summary of the page in ten lines."""
        return summary.format_summary(self.to_json())

    def _repr_html_(self) -> str:
        """Return the summary and the table of the probes for a notebook."""
        return page.render_page("notebook", self.to_json())

    def to_dataframe(self) -> Any:
        """Return the numbers as a pandas table, one row a probe, with a column an ablation."""
        import pandas as pd

        rows = [dataclasses.asdict(probe) for probe in self.probes.values()]
        table = pd.DataFrame(rows).set_index("name").drop(columns="facts")
        for label, card in self.ablations.items():
            table[label] = pd.Series({name: probe.value for name, probe in card.probes.items()})
        return table

    def to_json(self, name: str | None = None) -> dict[str, Any]:
        """Return the contents of card.json; numbers that are not finite are words."""
        body = {"schema": SCHEMA, **self.facts, "name": name or self.facts["name"]}
        body |= {"curves": self.curves, "probes": [*map(dataclasses.asdict, self.probes.values())]}
        if self.ablations:
            body["ablations"] = {label: card.to_json() for label, card in self.ablations.items()}
        encoded: dict[str, Any] = _to_json(body)
        return encoded | {"sha256": leaderboard.hash_card(encoded)}

    def save(self, folder: str | Path) -> Path:
        """Write card.json, index.html, badge.svg and weights.npz, and return the folder."""
        folder = Path(folder)
        body = self.to_json(folder.resolve().name)
        text = json.dumps(body, indent=1, ensure_ascii=False)
        write_file(folder / "card.json", text.encode())
        write_file(folder / "index.html", page.render_page("card", body, folder=folder).encode())
        write_file(folder / "badge.svg", page.draw_badge(body).encode())
        if self.weights is not None:
            file = io.BytesIO()
            np.savez(file, **_flatten(self.weights))
            write_file(folder / "weights.npz", file.getvalue())
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> "Card":
        """Return the card in a folder, which ``save`` wrote; the weights are arrays by path.

        Raises ValueError if the folder holds no card, one of another schema, or a changed one.
        """
        card, weights = cls._from_json(leaderboard.read_card(folder)), Path(folder) / "weights.npz"
        if not weights.exists():
            return card
        with np.load(weights) as arrays:
            return dataclasses.replace(card, weights=dict(arrays))

    @classmethod
    def _from_json(cls, body: dict[str, Any]) -> "Card":
        body = dict(body)
        ablations = {name: cls._from_json(part) for name, part in body.pop("ablations", {}).items()}
        numbers = ("value", "samples", "interval", "null")
        probes = {
            row["name"]: Probe(**row | {name: _to_number(row[name]) for name in numbers})
            for row in body.pop("probes")
        }
        curves, facts = body.pop("curves"), {k: v for k, v in body.items() if k != "sha256"}
        return cls(probes, curves, facts, ablations=ablations)


def report_card(
    forward: Forward,
    init: Callable[[Array], Any] | None = None,
    params: Any = None,
    *,
    task: str | None = None,
    d: int | None = None,
    n: int | None = None,
    tasks: Any = None,  # [k, d]
    tier: str | Tier = "laptop",
    seeds: int | None = None,
    causal: bool = True,
    states: Callable[[Any, Array], Any] | None = None,
    ablate: Mapping[str, Forward] | None = None,
    folder: str | Path | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Card:
    """Return a card: what a model computes in context, its risk over the best, where it fails.

    ``forward(params, tokens)`` takes one prompt. A causal model takes tokens [x_t, x_{t-1},
    y_{t-1}], [T, 2d + 1] (``prompts.bound_tokens``), and returns a prediction for each, [T], or a
    Trace; any other takes [x_i, y_i] and the query, [n + 1, d + 1], and predicts the query.
    With ``init(key) -> params``, or ``init(key, d)``, the recipe of the tier trains three seeds, or
    ``seeds`` of them, on a ``task`` of ``card.tasks``, by default "regression" with d = 8 and n =
    8d demonstrations, whose w is N(0, I/d) or in a table of ``tasks``; a ``folder`` keeps
    checkpoints, from which a killed card resumes. With ``params`` nothing is trained, and numbers
    are medians over eight sets of prompts. ``states(params, tokens)`` returns the states of a
    recurrent model. ``ablate={"no gate": forward_without_gate}`` puts the numbers of other
    forwards beside those of the model: each is trained again from the same init by the same recipe
    and seeds, or takes the same ``params``. ``log`` receives lines of progress.

    Raises UnfitError in the first seconds for a model that a card cannot describe.
    """
    size = _choose_tier(tier, seeds, init, params)
    n = (size.n if d is None else 0) if n is None else n  # 8d if d alone is given
    d, task = size.d if d is None else d, size.task if task is None else task
    size = dataclasses.replace(size, d=d, n=n, task=task)
    table = _check_tasks(tasks, size)
    first = params
    if init is not None:
        init, first = _draw_params(init, size.d)
    options = first, size.d, size.n, causal, init is not None
    models = [prepare_model(forward, *options)]
    for label, function in (ablate or {}).items():  # all are checked before any is trained
        try:
            models.append(prepare_model(function, *options))
        except UnfitError as error:
            raise UnfitError(f"ablate[{label!r}]: {error}") from None
    tokens = jnp.zeros((3, models[0].width), models[0].dtype)
    program = hash_program(models[0].predict, first, tokens)
    facts = {
        "name": "model",
        "tier": tier if isinstance(tier, str) else "custom",
        **dataclasses.asdict(size),
        "causal": causal,
        "pretraining_tasks": None if table is None else len(table),
        "parameters": int(sum(np.size(leaf) for leaf in jax.tree.leaves(first))),
        "program_sha256": program or "unknown: it calls a function of the host",
        **collect_facts(Path(__file__).parent),
    }
    cards = []
    for i, model in enumerate(models):
        part = None if folder is None else Path(folder) / (f"ablation {i}" if i else "")
        sets, law = [params] * NUM_PROMPT_SETS, size.distribution(table)
        context = EvaluationContext(model, sets, size, law, None if i else states, init)
        cards.append(_make_card(context, facts, part, log))
    return dataclasses.replace(cards[0], ablations=dict(zip(ablate or {}, cards[1:], strict=True)))


def _make_card(
    context: EvaluationContext, facts: dict, folder: Path | None, log: Callable[[str], None]
) -> Card:
    """Train a model if it has an init, measure it, and return its card without ablations."""
    started, trained = time.monotonic(), context.init is not None
    facts = facts | {"trained": trained}
    if trained:
        resumed = folder is not None and any(folder.glob("*.ckpt*"))
        run, rate = recipe.train_runs(context, folder, log)
        seconds = time.monotonic() - started  # of this process
        facts |= {"rate": rate, "training_seconds": seconds, "resumed": resumed}
        params = [jax.tree.map(itemgetter(r), run.params) for r in range(context.tier.runs)]
        context = dataclasses.replace(context, params=params, training=run)
    measured = _measure_probes(context, log)
    risks = measured[f"risk over Bayes, n = {context.tier.n}"].samples
    lower_median = int(np.argsort(risks, kind="stable")[(len(risks) - 1) // 2])
    facts |= {
        "runs": len(context.params),
        "median_run": lower_median if trained else 0,
        "weights_sha256": hash_arrays(context.params),
        "seconds": round(time.monotonic() - started, 1),
    }
    weights = context.params[lower_median] if trained else None
    return Card(measured, context.curves, facts, weights)


def _measure_probes(context: EvaluationContext, log: Callable[[str], None]) -> dict[str, Probe]:
    tier, trained = context.tier, context.training is not None
    regression, known = tier.task == "regression", recurrent.Params | transformer.Params
    conditions = {  # in the order of measurement
        probes.measure_risk: True,
        probes.measure_baseline: not regression,
        probes.measure_accuracy: tier.task == "recall",
        mechanism.find_rules: regression,
        probes.measure_long_prompts: True,
        probes.measure_shifts: regression,
        probes.measure_sparse_weights: regression,
        probes.measure_drift: regression,
        mechanism.measure_overwriting: regression,
        mechanism.measure_recall: regression,
        mechanism.measure_permutation_distance: regression,
        mechanism.measure_label_gradients: regression,
        cost.measure_clipping: isinstance(context.params[0], known),
        cost.measure_precision: True,
        cost.measure_speed: True,
        cost.measure_training_steps: trained,
        cost.measure_state_tracking: (
            regression and trained and context.model.causal and tier.tracking
        ),
    }
    measured: dict[str, Probe] = {}
    for measure in [measure for measure, applies in conditions.items() if applies]:
        log((measure.__doc__ or "").splitlines()[0])
        measured |= {probe.name: probe for probe in measure(context)}
    return measured


def _choose_tier(tier: str | Tier, seeds: int | None, init: Any, params: Any) -> Tier:
    """Return the sizes of the card; raise UnfitError if arguments contradict each other."""
    if (init is None) == (params is None):
        raise UnfitError("give init(key) -> params to train a model, or trained params; not both")
    size = tier if isinstance(tier, Tier) else TIERS.get(tier)
    if size is None:
        raise UnfitError(f"tier = {tier!r}: choose {', '.join(TIERS)}, or give a Tier")
    if seeds is not None and init is None:
        raise UnfitError("seeds need a training: give init(key) -> params, or leave seeds out")
    return size if seeds is None else dataclasses.replace(size, runs=seeds)


def _draw_params(init: Callable, d: int) -> tuple[Callable[[Array], Any], Any]:
    """Return ``init`` with the argument d, if it has one, and the params of key 0."""
    message = "init(key) fails: it takes a jax.random.key and returns params"
    if "d" in attempt(message, inspect.signature, init).parameters:
        init = partial(init, d=d)
    return init, attempt(message, init, jax.random.key(0))


def _check_tasks(tasks: Any, size: Tier) -> np.ndarray | None:
    if tasks is None:
        return None
    table, d = np.asarray(tasks, float), size.d
    if size.task != "regression":
        raise UnfitError(f"tasks are weights of regression: leave them out for {size.task}")
    if table.ndim != 2 or table.shape[1] != d or not np.isfinite(table).all():
        raise UnfitError(f"tasks has shape {table.shape}: give finite weights [k, {d}], d = {d}")
    return table


def _flatten(params: Any) -> dict[str, Any]:
    """Return the leaves as arrays by path, bfloat16 as float32; loaded weights are that already."""
    if isinstance(params, dict) and all(key.startswith((".", "[")) for key in params):
        return params
    return {
        jax.tree_util.keystr(path): np.asarray(
            leaf, np.float32 if jnp.result_type(leaf) == jnp.bfloat16 else None
        )
        for path, leaf in jax.tree.leaves_with_path(params)
    }


def _to_json(value: Any) -> Any:
    """Return a value that JSON can hold: infinite numbers as words, arrays as lists."""
    if isinstance(value, dict):
        return {str(key): _to_json(entry) for key, entry in value.items()}
    if isinstance(value, np.ndarray | jax.Array):
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return [_to_json(entry) for entry in value]
    if isinstance(value, float | np.floating):
        return float(f"{value:.6g}") if math.isfinite(value) else str(float(value))
    return value


def _to_number(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_to_number(entry) for entry in value)
    return float(value) if value in ("inf", "-inf", "nan") else value
