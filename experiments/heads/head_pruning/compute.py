"""Risks of every model with heads taken away, mixed first where they can be, and importances."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from jax import Array

from experiments.heads import importance
from experiments.heads.each_run import run
from experiments.heads.head_pruning import masked_models
from experiments.heads.head_pruning.config import (
    CHOSEN,
    FULL,
    MIXED,
    ONLY_PRUNED,
    RANDOM,
    TRAINED,
    TREATMENTS,
    Config,
    can_be_mixed,
    mixable_and_own,
)
from experiments.heads.head_pruning.masked_models import SEARCH, judging_batch, risks
from experiments.models import tasks
from experiments.models.model import Model
from experiments.models.runs import Runs
from experiments.models.specs import Spec
from lsa_lab.models import moments
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt
from lsa_lab.store import parts

_RATE = 0.05  # of Adam


def best_mixed(models: Model, searched: Prompt, key, starts: int, steps: int) -> Model:
    """Models with one head in each later layer: the best, on prompts of each run [R, B], of all
    that mixing the heads of a layer can make its first. Leaves [R, ...].

    Such a head is w_pv = Σ_k a_k w_pv_k, w_kq = Σ_k b_k w_kq_k with a·b = 1 (docs/theory, "Heads
    are not unique"). The search starts from the heads as they are, and from random mixtures.
    """
    params = over_runs_of_params(_mixed(starts, steps), models, searched, key)
    return models.replace(params=params, gates=few_gates(models, 1))


def few_gates(models: Model, count: int) -> np.ndarray:  # [R, L, H]
    gates = np.array(models.gates)
    gates[:, 1:, count:] = 0
    return gates


def over_runs_of_params(program, models: Model, *trees) -> Params:
    """The params that a program makes of one run after the other."""
    runs = len(models.gates)
    trees = [tree if isinstance(tree, Prompt) else np.stack([tree] * runs) for tree in trees]
    rows = [program(*(run(tree, r) for tree in (models, *trees))) for r in range(runs)]
    return jax.tree.map(lambda *leaves: np.stack(leaves), *rows)


def one_head(model: Model, a: Array, b: Array) -> Model:  # [L-1, H] twice
    """The model with the one head that a and b make of those of each later layer, as its first."""
    b = b / (a * b).sum(-1, keepdims=True)

    def leaf(weights, mixture):
        head = jnp.einsum("lh,lhef->lef", mixture, weights[1:])
        return weights.at[1:].set(0).at[1:, 0].set(head)

    params = model.params.replace(w_pv=leaf(model.params.w_pv, a), w_kq=leaf(model.params.w_kq, b))
    return model.replace(params=params, gates=model.gates.at[1:].set(0).at[1:, 0].set(1))


@functools.cache
def _mixed(starts: int, steps: int):
    """(model, prompts, key data) of one run -> Params, compiled."""
    optimizer = optax.adam(_RATE)

    def search(model: Model, searched: Prompt, key_data):
        model = jax.tree.map(jnp.asarray, model)
        depth, count = model.gates.shape
        picked = np.array(list(itertools.product(range(count), repeat=depth - 1)))
        as_they_are = jnp.stack([jnp.eye(count)[picked]] * 2, axis=1)  # [C, 2, L-1, H]
        key = jax.random.wrap_key_data(key_data)
        random = jax.random.normal(key, (starts, 2, depth - 1, count))

        def risk(mixture):
            return one_head(model, *mixture).risk(searched)

        def best(mixtures):
            return mixtures[jnp.argmin(jax.lax.map(risk, mixtures))]

        def end(mixture):
            def step(carry, _):
                mixture, state = carry
                with jax.numpy_dtype_promotion("standard"):  # Adam: a float to an integer power
                    updates, state = optimizer.update(jax.grad(risk)(mixture), state)
                return (mixture + updates, state), None

            (mixture, _), _ = jax.lax.scan(step, (mixture, optimizer.init(mixture)), length=steps)
            return mixture

        firsts = jnp.stack([best(as_they_are), best(random)])
        ends = jax.lax.map(end, firsts)
        return one_head(model, *best(jnp.concatenate([firsts, ends]))).params

    return jax.jit(search, compiler_options=moments.compiler_options())


def compute(config: Config, models, *, progress=None, checkpoints=None):
    names, cases = [name for name, _ in config.models], []
    for name in names:
        case = masked_models.finished_case(models[name])
        measure = measure_mixed if can_be_mixed(case.spec) else measure_own
        columns = [measure(config, case).get(kind, missing(case)) for kind in TREATMENTS]
        arrays = {"risk": (("run", "treatment"), np.stack(columns, axis=1)), "lost": case.lost}
        coords = {"run": np.arange(case.runs), "treatment": list(TREATMENTS)}
        cases.append(xr.Dataset(arrays, coords).expand_dims(case=[name]))
    whole = xr.merge(cases, join="outer", compat="no_conflicts").sel(case=names)
    return parts.join(whole, importance=importances(config, models))


def missing(case) -> np.ndarray:  # [R]
    """A treatment that a model does not get has no number."""
    return np.full(case.runs, np.nan)


def measure_mixed(config, case) -> dict:  # {treatment: [R]}
    """A model whose heads can be mixed, with one head in each later layer over all mixings."""
    models = jax.vmap(lambda model: model.plain())(case.models)
    searched = masked_models.batch_of(config, case, SEARCH, config.search)
    key = jax.random.key_data(jax.random.key(config.seed))
    best = best_mixed(models, searched, key, config.starts, config.climbs)
    return {
        FULL: masked_models.risks_as_they_are(config, case, models),
        MIXED: masked_models.risks_as_they_are(config, case, best),
        TRAINED: masked_models.risks_of_fewer(config, case),
    }


def measure_own(config, case) -> dict:  # {treatment: [R]}
    """A model whose heads cannot be mixed, under masks."""
    treated = masked_models.treatment_masks(config, case, masked_models.importances(config, case))
    each = risks(case.models, judging_batch(config, case), treated)
    chosen, random = np.split(each, [len(CHOSEN)], axis=1)
    # The draws of a random treatment count as one, by geometric mean.
    random = np.exp(np.log(random).reshape(case.runs, len(RANDOM), config.draws).mean(2))
    risk = dict(zip((*CHOSEN, *RANDOM), [*chosen.T, *random.T], strict=True))
    return risk | {TRAINED: masked_models.risks_of_fewer(config, case)}


def importances(config: Config, models):
    """The Dataset of models whose heads cannot be mixed; ``config.importance`` has the sizes."""
    own = [name for name in mixable_and_own(config.models)[1] if name not in ONLY_PRUNED]
    blocks = [rises_of(config.importance, models[name]) for name in own]
    rise = np.full((len(own), *np.max([block.shape for block in blocks], axis=0)), np.nan)
    for i, block in enumerate(blocks):  # filled up to the largest
        rise[(i, *map(slice, block.shape))] = block
    return xr.Dataset({"rise": (("model", "run", "layer", "head"), rise)}, {"model": own})


def rises_of(sizes, runs: Runs) -> np.ndarray:  # [R, L, H]
    """The full model's rises of the risk, all NaN for a run that diverged."""
    batch = prompts_of(sizes, runs.spec)
    rises = importance.importances(runs.models(-1).in_float64(), batch)
    return np.where(runs.finished[-1][:, None, None], rises, np.nan)


def prompts_of(sizes, spec: Spec) -> Prompt:  # [B]
    """The prompts of a model, the same for all models of a task."""
    key = jax.random.fold_in(jax.random.key(sizes.seed), 0)
    task = tasks.distribution(spec.task, sizes.n)
    batch = _draw(key, task, max(sizes.prompts, sizes.softmax_prompts))
    softmax = spec.architecture.kernel == "softmax"
    count = sizes.softmax_prompts if softmax else sizes.prompts
    return jax.tree.map(lambda leaf: leaf[:count], batch)


_draw = jax.jit(tasks.draw, static_argnums=2)
