"""Trained stacks: of free layers, of tied ones, and on covariances that turn."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.descent.depth.config import COVARIANCES
from experiments.descent.depth.tuned import draw, errors, task_of
from lsa_lab.models import linear_attention, moments
from lsa_lab.tasks.linear import LinearTask, sample_moments, sample_moments_batch
from lsa_lab.theory.depth import best_descent_at, rotated_covariance, tied_descent_at
from lsa_lab.training import Files, Training, fit

BLOCK = 10_000  # test prompts of a run at a time


def optimizer(config, depth, steps):
    """Deep linear attention meets rare prompts with enormous gradients: clip early, forget soon."""
    peak = config.learning_rate / depth
    schedule = optax.warmup_cosine_decay_schedule(0.0, peak, steps // 20, steps, peak / 100)
    return optax.chain(optax.clip_by_global_norm(0.1), optax.adam(schedule, b2=0.99))


def train(config, depth, sigmas, key, progress, checkpoints):
    """All runs of one depth on both covariances: Run with leading axis [C * R]."""
    key_init, key_data = jax.random.split(jax.random.fold_in(key, depth))
    count = len(COVARIANCES) * config.runs
    init = partial(linear_attention.init, num_layers=depth, num_heads=1, d=config.d)
    init = partial(init, scale=config.init_scale, dtype=jnp.float32)
    steps = config.steps_per_layer * depth
    loss, sample_batch = errors, draw
    if config.prompts == "moments":
        loss, sample_batch = errors_from_moments, draw_moments
    training = Training(
        loss=lambda params, batch, sigma: loss(params, batch).mean(),
        sample=lambda key, sigma: sample_batch(key, sigma, config.n, config.batch),
        optimizer=lambda sigma: optimizer(config, depth, steps),
        steps=steps,
        label=f"depth: {depth} layers",
    )
    checkpoint = checkpoints and checkpoints / f"depth{depth}.ckpt"
    return fit(
        training,
        jax.vmap(init)(jax.random.split(key_init, count)),
        jax.random.split(key_data, count),
        per_run=jnp.repeat(sigmas.astype(jnp.float32), config.runs, axis=0),
        files=Files(checkpoint, identity=repr(config)),
        progress=progress,
    )


def draw_moments(key, sigma, n, size):  # -> [e, e, B], [d, B], [B]
    """Second moments of the demonstrations, queries and targets: no tokens, whatever n."""
    draw_one = partial(sample_moments, task=task_of(sigma, n))
    return jax.vmap(draw_one, out_axes=-1)(jax.random.split(key, size))


def errors_from_moments(params, batch):  # [B]
    second_moments, x_queries, targets = batch
    return (moments.predictions_from_moments(params, second_moments, x_queries) - targets) ** 2


def tied(config, progress, checkpoints):
    """Excess risks of trained stacks, and of the best descent with free steps and with one step."""
    import xarray as xr

    own, axes = config.tied, ("layers", "noise", "depth")
    trained = np.empty((2, len(own.noise_vars), len(own.depths), own.runs))
    status, exact = np.empty(trained.shape, object), np.empty(trained.shape[:3])
    deepest = max(own.depths)
    for s, noise_var in enumerate(own.noise_vars):
        curves = (
            f(config.n, config.d, noise_var, deepest) for f in (best_descent_at, tied_descent_at)
        )
        prompts = noisy_prompts(config, noise_var)
        exact[:, s] = np.stack([curve[list(own.depths)] for curve in curves]) * config.d
        for place, depth in enumerate(own.depths):
            for t, shared in enumerate((False, True)):
                name = f"{'tied' if shared else 'free'}{depth}, noise {noise_var:g}"
                run = train_on(prompts, own, config, name, depth, progress, checkpoints, shared)
                status[t, s, place] = [str(end) for end in run.status]
                trained[t, s, place] = fresh_risks(prompts, own, config, run.params, depth)
    return xr.Dataset(
        {
            "trained_risk": ((*axes, "run"), trained),
            "exact_risk": (axes, exact),
            "status": ((*axes, "run"), status.astype(str)),
        },
        {
            "layers": ["free", "tied"],
            "noise": list(own.noise_vars),
            "depth": list(own.depths),
        },
    )


def noisy_prompts(config, noise_var):
    """w ~ N(0, I), and noise whose variance is a share of E |w|²: key, size, dtype -> moments."""

    def prompts(key, size, dtype):
        noise_std = np.sqrt(noise_var * config.d)
        task = LinearTask(config.n, config.d, noise_std=noise_std, dtype=dtype)
        return sample_moments_batch(key, task, size)

    return prompts


def repeated(params, depth):
    """The layers that run: one of a tied stack as many times, or each of a free one."""
    return jax.tree.map(lambda leaf: jnp.repeat(leaf, depth // len(leaf), axis=0), params)


def train_on(prompts, own, config, name, depth, progress, checkpoints, shared=False):
    """A Run of stacks of free layers, or of one that is ``shared`` by all, on such prompts."""
    steps = own.steps_per_layer * depth
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), 100 + depth), 2)
    layers, moments_of_one = 1 if shared else depth, partial(prompts, size=1, dtype=jnp.float32)
    d = jax.eval_shape(moments_of_one, keys[0])[1].shape[0]
    init = partial(linear_attention.init, num_layers=layers, num_heads=1, d=d)
    init = partial(init, scale=config.init_scale, dtype=jnp.float32)
    training = Training(
        loss=lambda params, batch: errors_from_moments(repeated(params, depth), batch).mean(),
        sample=lambda key: prompts(key, config.batch, jnp.float32),
        optimizer=optimizer(config, depth, steps),
        steps=steps,
        label=f"depth: {name}",
    )
    checkpoint = checkpoints and checkpoints / f"{name.replace(', ', '_').replace(' ', '')}.ckpt"
    return fit(
        training,
        jax.vmap(init)(jax.random.split(keys[0], own.runs)),
        jax.random.split(keys[1], own.runs),
        files=Files(checkpoint, identity=repr(config)),
        progress=progress,
    )


def fresh_risks(prompts, own, config, stacks, depth):  # Params [R, ...] -> [R]
    """In float64, on prompts of each run's own, the same for tied and free stacks of any depth."""
    keys = jax.random.split(jax.random.fold_in(jax.random.key(config.seed), 99), own.runs)

    @moments.compiled
    def judge(stack, key):
        return errors_from_moments(repeated(stack, depth), prompts(key, BLOCK, jnp.float64))

    def risk(run):
        stack = jax.tree.map(lambda leaf: leaf[run].astype(jnp.float64), stacks)
        blocks = range(-(-own.test_prompts // BLOCK))
        return np.mean([judge(stack, jax.random.fold_in(keys[run], k)).mean() for k in blocks])

    return np.array([risk(run) for run in range(own.runs)])


def turned_prompts(eigenvalues, turns=True):
    """Demonstrations without end of w ~ N(0, I), their covariance in a basis of each prompt's own
    or, unless it ``turns``, in one that stays: key, size, dtype -> moments."""

    def prompts(key, size, dtype):
        values, d = jnp.asarray(eigenvalues, dtype), len(eigenvalues)
        keys = jax.random.split(key, 3)
        w, normal = jax.random.normal(keys[0], (2, size, d), dtype)
        bases = jnp.broadcast_to(jnp.eye(d, dtype=dtype), (size, d, d))
        if turns:
            bases = jax.random.orthogonal(keys[1], d, (size,), dtype)
        sigma = jnp.einsum("bik,k,bjk->bij", bases, values, bases)
        query = jnp.einsum("bik,k,bk->bi", bases, jnp.sqrt(values), normal)
        label = jnp.einsum("bij,bj->bi", sigma, w)
        last = jnp.concatenate([label, (label * w).sum(1, keepdims=True)], axis=1)
        both = jnp.concatenate([jnp.concatenate([sigma, label[:, None]], 1), last[..., None]], 2)
        return jnp.moveaxis(both, 0, -1), query.T, (query * w).sum(1)

    return prompts


def turned_part(config, progress, checkpoints):
    """Excess risks of trained stacks where the covariance turns, the least of so many steps, and
    that of one layer where the covariance stays."""
    import xarray as xr

    own = config.turned
    depths = np.arange(1, own.max_depth + 1)

    def risks_of(depth, turns):
        prompts = turned_prompts(own.eigenvalues, turns)
        name = f"{'turned' if turns else 'unturned'}{depth}"
        run = train_on(prompts, own, config, name, depth, progress, checkpoints)
        risks = fresh_risks(prompts, own, config, run.params, depth)
        return np.where([str(end).startswith("diverged") for end in run.status], np.nan, risks)

    exact = rotated_covariance(own.eigenvalues, own.max_depth) * len(own.eigenvalues)
    return xr.Dataset(
        {
            "trained_risk": (("depth", "run"), [risks_of(depth, True) for depth in depths]),
            "exact_risk": ("depth", exact[1:]),
            "unturned_risk": ("run", risks_of(1, False)),
        },
        {"depth": depths},
    )
