"""Updates over prompts of one task, their shape and size, and where noisy descent ends."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.descent.noisy_descent.config import PATHS, READINGS, STATES, Config
from experiments.descent.noisy_descent.paths import ends, token_root, updates_of
from experiments.descent.specs import SOFTMAX, STACK
from experiments.models.model import Model, init, prepare_prompt
from experiments.models.tasks import distribution
from lsa_lab.models.trace import layer_predictions
from lsa_lab.tasks.linear import sample, sample_weights
from lsa_lab.theory import implicit_updates


def moments_of(values):  # [B, ...] -> {name: [...]}
    """Excess kurtosis over the first axis, and Jarque and Bera's B/6 (skewness² + excess²/4)."""
    centred = values - values.mean(0, keepdims=True)
    second, third, fourth = ((centred**power).mean(0) for power in (2, 3, 4))
    excess, skewness = fourth / second**2 - 3, third / second**1.5
    return {"excess": excess, "statistic": len(values) / 6 * (skewness**2 + excess**2 / 4)}


def critical_value(key, config):  # -> []
    """What 5 % of samples of normal numbers exceed."""
    normal = partial(jax.random.normal, shape=(config.prompts,))
    statistic = jax.lax.map(
        lambda key: moments_of(normal(key))["statistic"],
        jax.random.split(key, config.normals),
        batch_size=1000,
    )
    return jnp.quantile(statistic, 0.95)


def measure_task(key, params, n, config, noise_std):
    """What is measured of one stack and one task, {name: [readings, L], [L] or [readings]}."""
    key_task, key_query, key_direction, key_updates = jax.random.split(key, 4)
    e = params.w_pv.shape[-1]
    root = token_root(jax.random.normal(key_task, (e - 1,)), noise_std)
    updates = updates_of(key_updates, params, root, n, config.prompts)  # [B, L, e, e]
    x_query = jnp.append(jax.random.normal(key_query, (e - 1,)), 0.0)
    of_answer = jnp.zeros((e, e)).at[-1].set(-x_query)
    directions = jnp.stack([of_answer, jax.random.normal(key_direction, (e, e))])
    values = moments_of(jnp.einsum("rij,blij->brl", directions, updates))
    first = params.w_kq[0], params.w_pv[0]
    closed = jax.vmap(lambda r: implicit_updates.shape(r, *first, root @ root.T, n))(directions)
    spread = ((updates - updates.mean(0, keepdims=True)) ** 2).sum((2, 3)).mean(0)
    share = spread / (updates**2).sum((2, 3)).mean(0)
    return values | {"closed": closed.excess_kurtosis, "share": share}


def measure_stacks(key, states, n, config, spec):  # params [S, R, ...] -> {name: [S, R, T, ...]}
    """Trained and untrained stacks on the same tasks and prompts."""
    runs = len(jax.tree.leaves(states)[0][0])
    keys = jax.random.split(key, (runs, config.tasks))

    def run(row):
        params, keys = row
        return jax.lax.map(
            lambda key: measure_task(key, params, n, config, spec.task.noise_std), keys
        )

    return jax.lax.map(lambda params: jax.lax.map(run, (params, keys)), states)


def risks_of(key, params, n, config, spec):  # params [R, ...] -> [R, paths] twice
    """|w_L - w|² of every path, each at most |w|²: the mean over tasks and prompts, and, of all as
    they are, the median."""

    def task(params, key):
        key_task, key_ends = jax.random.split(key)
        w = jax.random.normal(key_task, (spec.task.d,))
        root = token_root(w, spec.task.noise_std)
        weights = ends(key_ends, params, root, n, config.prompts)
        return ((weights - w[None, None]) ** 2).sum(-1), w @ w

    def run(row):
        params, keys = row
        errors, zero = jax.lax.map(partial(task, params), keys)  # [T, paths, B], [T]
        capped = jnp.minimum(errors, zero[:, None, None]).mean((0, 2))
        return capped, jnp.median(errors.swapaxes(1, 2).reshape(-1, len(PATHS)), axis=0)

    runs = len(params.w_pv)
    return jax.lax.map(run, (params, jax.random.split(key, (runs, config.tasks))))


def measure_softmax(key, states, config, spec):  # params [S, R, ...] -> {name: [S, R, T, L]}
    """The same of what each layer adds to the answer to one query."""
    task = distribution(spec.task, dtype=jnp.float32)

    def added(params, prompt):  # -> [L]
        _, scale = prepare_prompt(spec.architecture, prompt)
        return scale * jnp.diff(layer_predictions(Model(spec, params).forward(prompt)))

    def one_task(params, key):
        key_task, key_query, key_prompts = jax.random.split(key, 3)
        same = task.replace(prior_mean=sample_weights(key_task, task), weight_std=0.0)
        x_query = jax.random.normal(key_query, (task.d,), jnp.float32)
        batch = jax.vmap(partial(sample, task=same))(jax.random.split(key_prompts, config.prompts))
        prompts = batch.replace(x_query=jnp.broadcast_to(x_query, batch.x_query.shape))
        return moments_of(jax.vmap(partial(added, params))(prompts).astype(float))

    def run(row):
        return jax.lax.map(partial(one_task, row[0]), row[1])

    runs = len(states.w_q[0])
    keys = jax.random.split(key, (runs, config.tasks))
    return jax.lax.map(lambda params: jax.lax.map(run, (params, keys)), states)


def states_of(key, runs, dtype):  # -> params [S, R', ...], statuses
    """The runs that did not diverge, trained and before any training."""
    spec = runs.spec
    after = runs.models(seeds=runs.finished[0]).params
    count = int(runs.finished[0].sum())
    before = jax.jit(jax.vmap(partial(init, spec)))(jax.random.split(key, count))
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves).astype(dtype), after, before)
    return both, [f"{each} of {spec.training.steps}" for each in runs.steps_completed[0]]


def compute(config: Config, models, *, progress=None, checkpoints=None):
    keys = jax.random.split(jax.random.key(config.seed), 6)
    linear, taken = states_of(keys[0], models[STACK], float)
    softmax, taken_softmax = states_of(keys[1], models[SOFTMAX], jnp.float32)
    spec, softmax_spec = models[STACK].spec, models[SOFTMAX].spec
    critical = float(jax.jit(critical_value, static_argnums=1)(keys[2], config))

    @partial(jax.jit, static_argnums=1)
    def measure_length(key, n):
        return measure_stacks(key, linear, n, config, spec)

    by_length = [measure_length(jax.random.fold_in(keys[3], n), n) for n in config.shots]
    shape = jax.tree.map(lambda *leaves: np.stack(leaves), *by_length)
    after, n = jax.tree.map(lambda leaf: leaf[0], linear), max(spec.task.lengths)
    risk, typical = jax.jit(partial(risks_of, n=n, config=config, spec=spec))(keys[5], after)
    measure_query = jax.jit(partial(measure_softmax, config=config, spec=softmax_spec))
    query = jax.tree.map(np.asarray, measure_query(keys[4], softmax))

    axes = ("shots", "state", "run")
    own = ("state", "softmax_run", "softmax_layer")
    data = {
        "excess": ((*axes, "reading", "layer"), shape["excess"].mean(3)),
        "passed": ((*axes, "reading", "layer"), (shape["statistic"] <= critical).mean(3)),
        "closed": ((*axes, "reading"), shape["closed"].mean(3)),
        "share": ((*axes, "layer"), shape["share"].mean(3)),
        "risk": (("run", "path"), np.asarray(risk)),
        "typical": (("run", "path"), np.asarray(typical)),
        "softmax_excess": (own, query["excess"].mean(2)),
        "softmax_passed": (own, (query["statistic"] <= critical).mean(2)),
        "critical": ((), critical),
        "taken": (("started",), taken),
        "softmax_taken": (("softmax_started",), taken_softmax),
    }
    coordinates = {
        "shots": list(config.shots),
        "state": list(STATES),
        "reading": list(READINGS),
        "path": list(PATHS),
        "layer": np.arange(1, shape["share"].shape[-1] + 1),
        "softmax_layer": np.arange(1, query["excess"].shape[-1] + 1),
    }
    return xr.Dataset(data, coordinates)
