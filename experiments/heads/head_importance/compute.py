"""Importances of the heads of every model, at its end and on the way, in one Dataset."""

import jax
import numpy as np

from experiments.heads.head_importance import measures
from experiments.heads.head_importance.config import (
    COMPARED,
    ON_THE_WAY,
    REPRESENTATIVES,
    REPRESENTED,
    STATES,
    Config,
)
from experiments.models.runs import Runs
from experiments.models.specs import Architecture, Spec
from experiments.models.trained import trained
from lsa_lab.analyses import heads


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    runs = {
        name: trained(spec, f"sparse models: {name}", retrain=config.retrain, progress=progress)
        for name, spec in config.models
    }
    rows = variants(config.models)
    arrays = padded(variables(config, runs, rows))
    for name, (dims, rise) in list(arrays.items()):
        if "rise" in name:
            arrays[name.replace("rise", "effective")] = (dims[:-1], effective(rise))
    return xr.Dataset(arrays, coordinates(dict(config.models), rows))


def variants(models) -> list[tuple[str, int]]:
    """Names and variants: the full one of each model first, then others with several heads in the
    first layer."""
    rows = {name: spec.architecture.variants for name, spec in models}
    full = [(name, len(of_model) - 1) for name, of_model in rows.items()]
    others = [
        (name, variant)
        for name, of_model in rows.items()
        for variant, row in enumerate(of_model[:-1])
        if row[0] > 1
    ]
    return full + others


def variables(config: Config, runs: dict[str, Runs], rows) -> dict:
    """{name: (dimensions, blocks along the first of them)}"""
    ends = [measures.at_the_end(config, runs[name], variant) for name, variant in rows]
    rises = {name: end["rise"] for name, end in zip(runs, ends, strict=False)}  # of the full ones
    ways, again, pairs = (named(runs, names) for names in (ON_THE_WAY, REPRESENTED, COMPARED))
    similar = [measures.similarities(config, runs[name]) for name in pairs]
    by_run, by_head = ("model", "run"), ("layer", "head")
    return {
        "rise": ((*by_run, *by_head), [end["rise"] for end in ends]),
        "rise_of_median": ((*by_run, *by_head), [end["median"] for end in ends]),
        "risk": (by_run, [end["risk"] for end in ends]),
        "ridge": (by_run[:1], [end["ridge"] for end in ends]),
        "heads": (
            ("model", "layer"),
            [runs[name].spec.architecture.variants[variant] for name, variant in rows],
        ),
        "rise_on_the_way": (
            ("way", "run", "look", *by_head),
            [measures.on_the_way(config, runs[name], rises[name]) for name in ways],
        ),
        "steps": (("way", "look"), [steps(runs[name].spec) for name in ways]),
        "rise_ablated": (
            ("ablation", "run", *by_head),
            measures.by_ablation(config, runs["depth 3"]),
        ),
        "rise_represented": (
            ("again", "representative", "run", *by_head),
            [measures.by_representative(config, runs[name], rises[name]) for name in again],
        ),
        "across": (("pair", "state", "run", "layer"), [each["across"] for each in similar]),
        "built": (("pair", "state", "run"), [each["built"] for each in similar]),
    }


def coordinates(models: dict[str, Spec], rows) -> dict:
    architectures = [(name, models[name].architecture, variant) for name, variant in rows]
    return {
        "model": [f"{name}: {' '.join(map(str, a.variants[v]))}" for name, a, v in architectures],
        "family": ("model", [name for name, _ in rows]),
        "seeds": ("model", [models[name].training.seeds for name, _ in rows]),
        "form": ("model", [form_of(a, variant) for _, a, variant in architectures]),
        "way": named(models, ON_THE_WAY),
        "ablation": list(measures.ABLATIONS),
        "again": named(models, REPRESENTED),
        "representative": list(REPRESENTATIVES),
        "pair": named(models, COMPARED),
        "state": list(STATES),
    }


def named(models: dict, names) -> list[str]:
    """The names that a config has."""
    return [name for name in names if name in models]


def form_of(architecture: Architecture, variant: int) -> str:
    """What SUBJECTS call a variant."""
    places = architecture.places
    return next((form for form in ("full", "first") if places.get(form) == variant), "other")


def steps(spec: Spec) -> np.ndarray:
    parts = spec.training.checkpoints
    return np.arange(1, parts + 1) * (spec.training.steps // parts)


def effective(raw: np.ndarray) -> np.ndarray:  # [..., L, H] -> [..., L]
    """Effective heads; NaN for runs that diverged and for layers that are not there."""
    count = jax.jit(heads.effective_heads)(np.nan_to_num(raw))
    return np.where(np.isfinite(raw).any(-1), count, np.nan)


def padded(variables: dict) -> dict:
    """Blocks of every variable side by side, each filled up with NaN to the largest."""
    sizes, arrays = {}, {}
    for dims, blocks in variables.values():
        shapes = np.array([np.shape(block) for block in blocks])
        for name, size in zip(dims[1:], shapes.max(0).tolist(), strict=True):
            sizes[name] = max(size, sizes.get(name, 0))
    for variable, (dims, blocks) in variables.items():
        array = np.full((len(blocks), *(sizes[name] for name in dims[1:])), np.nan)
        for i, block in enumerate(map(np.asarray, blocks)):
            array[(i, *map(slice, block.shape))] = block
        arrays[variable] = (dims, array)
    return arrays
