"""What readers find after each layer of every model, and descent on the first layer's tokens."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.heads.each_run import map_runs
from experiments.heads.layer_probes import probing
from experiments.heads.layer_probes.config import FEATURES, OF_TOKENS, RULES, Config
from experiments.heads.layer_probes.probing import DESCENT, Case, batch_of
from experiments.models.model import Model, clip_predictions, compilation_key, transformer_config
from experiments.models.runs import Runs
from lsa_lab import prompts
from lsa_lab.analyses import probes
from lsa_lab.models import transformer
from lsa_lab.prompts import Prompt

_TOGETHER = 64  # prompts that are in memory at once, each asked n + 1 times


def descents(config, case: Case) -> np.ndarray:  # [R, features, 2, steps+1]
    """Excess risks of descent on FEATURES, step after step, on each half of the prompts."""
    batch, like = batch_of(config, case, DESCENT, config.descents), compilation_key(case.spec)
    variants = [case.variants[name].models for name in ("full", "single head")]
    # The first layer alone, as a model of its own: one program for every depth.
    first = [jax.vmap(lambda model: model.replace(spec=like).first(1))(each) for each in variants]
    return map_runs(_descend(config.steps, config.share), first, batch)


@functools.cache
def _descend(steps: int, share: float):
    """(the two models, prompts) of one run -> [features, 2, steps+1], compiled."""

    def risks(models, batch: Prompt):
        own, scale = jax.vmap(prompts.normalise)(batch)
        together = min(_TOGETHER, len(batch.y))
        each = jax.lax.map(functools.partial(_features, models), own, batch_size=together)
        each = [whitened(tokens) for tokens in each[:OF_TOKENS]] + each[OF_TOKENS:]

        def descend(features):  # [B, n+1, D] -> [2, steps+1]
            paths = jax.vmap(lambda rows, y: probes.descend(rows, y, steps, share))(features, own.y)
            predicted = jax.vmap(clip_predictions, (1, None), 1)(scale[:, None] * paths, batch)
            squares = (predicted - batch.y_query[:, None]) ** 2
            return squares.reshape(2, -1, steps + 1).mean(1)

        return jnp.stack([descend(features) for features in each])

    return jax.jit(risks)


def _features(models, prompt: Prompt) -> list:  # of [n+1, D]
    """FEATURES of a prompt in its own units, tokens not yet white. The label slot is taken out, and
    no token has seen its own label except as one of many."""
    full, single = models
    wide = prompts.pad_covariates(prompt, full.spec.architecture.padding_slots)
    slot = jnp.eye(wide.x.shape[1] + 1)[-1:]

    def read_queries(model, prompt):
        return probes.project_out(probes.embed_as_queries(_forward, model, prompt), slot)

    return [
        read_queries(full, wide),
        read_queries(single, wide),
        jnp.concatenate([prompt.x, prompt.x_query[None]]),
        probes.preprocess(prompt),
    ]


def _forward(model: Model, tokens):
    return transformer.forward(
        model.factored(), tokens, transformer_config(model.spec), model.gates
    )


def whitened(features):  # [2 B, T, D] -> [2 B, T, D]
    """Tokens with a second moment of 1, over the first half, in each of their directions.

    Turning or stretching the scratch slots of a stream, and the layers that read them with it,
    changes no prediction, but descent on its tokens; not descent on white ones (derived here).
    """
    first = features[: len(features) // 2].reshape(-1, features.shape[-1])
    values, basis = jnp.linalg.eigh(first.T @ first / len(first))
    kept = values > 1e-9 * values[-1]
    gains = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)
    return features @ (basis * gains[None])


def compute(config: Config, models, *, progress=None, checkpoints=None):
    names = list(dict.fromkeys([*config.panels, *config.dissected]))
    cases = [measure(config, models[name], name).expand_dims(case=[name]) for name in names]
    whole = xr.merge(cases, join="outer", compat="no_conflicts").sel(case=names)
    kinds = list(dict.fromkeys(kind for case in cases for kind in case.model.values))
    labels = {"rule": list(RULES), "feature": list(FEATURES)}
    return whole.sel(model=kinds).assign_coords(labels)


def measure(config, runs: Runs, name: str):
    """The Dataset of one model; of what is dissected descent on the first layer too."""
    case = probing.finished_case(config, runs)
    numbers, spec, axes = probing.readers(config, case), case.spec, ("model", "run", "layer")
    arrays = {name: (axes, numbers[:, :, i]) for i, name in enumerate(("reader", "own", "held"))}
    heads = [int(variant.models.gates[0, 0].sum()) for variant in case.variants.values()]
    arrays["share"] = ("model", np.minimum(np.array(heads) / spec.task.d, 1.0))
    arrays["known"] = ("rule", probing.risks_of_rules(config, case))
    arrays["lost"] = ((), case.lost)
    if name in config.dissected:
        paths = descents(config, case).astype(np.float32)  # most of the file
        arrays["descent"] = (("run", "feature", "half", "step"), paths)
    coords = {"layer": np.arange(spec.architecture.depth + 1), "run": np.arange(case.runs)}
    return xr.Dataset(arrays, {**coords, "model": list(case.variants)})
