"""Trained stacks: of free layers, of tied ones, and on covariances that turn."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr

from experiments.descent.depth.tuned import errors
from lsa_lab.models import linear_attention, moments
from lsa_lab.tasks.linear import LinearTask, sample_moments_batch
from lsa_lab.theory.depth import rotated_covariance
from lsa_lab.training import Files, Training, fit

BLOCK = 10_000  # test prompts of a run at a time


def train(config, key, own, name, loss, sample, shape, steps, *, progress, checkpoints):
    """A Run of stacks with the leading axis of ``own``; ``shape`` is (layers that run, layers with
    weights, d), and ``steps`` counts those for each layer that runs."""
    depth, layers, d = shape
    peak, total = config.learning_rate / depth, steps * depth
    schedule = optax.warmup_cosine_decay_schedule(0.0, peak, total // 20, total, peak / 100)
    # Deep linear attention meets rare prompts with enormous gradients: clip early, forget soon.
    rule = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(schedule, b2=0.99))
    training = Training(
        loss=lambda params, batch, _: loss(params, batch).mean(),
        sample=sample,
        optimizer=lambda _: rule,
        steps=total,
        label=f"depth: {name}",
    )
    init = partial(linear_attention.init, num_layers=layers, num_heads=1, d=d, dtype=jnp.float32)
    init = partial(init, scale=config.init_scale)
    key_init, key_data = jax.random.split(key)
    checkpoint = checkpoints and checkpoints / f"{name.replace(' ', '_')}.ckpt"
    return fit(
        training,
        jax.vmap(init)(jax.random.split(key_init, len(own))),
        jax.random.split(key_data, len(own)),
        per_run=own,
        files=Files(checkpoint, identity=repr(config)),
        progress=progress,
    )


def trained_risks(config, own, name, prompts, shape, fit_stacks):  # -> [R], and how each ended
    """Excess risks of stacks trained on ``prompts(key, size, dtype)``, in float64 on fresh prompts
    of each run's own, the same for stacks of any shape."""
    depth, root = shape[0], jax.random.key(config.seed)

    def loss(params, batch):  # a tied layer runs as often as the stack is deep
        every = jax.tree.map(lambda leaf: jnp.repeat(leaf, depth // len(leaf), axis=0), params)
        return errors(every, batch)

    run = fit_stacks(
        jax.random.fold_in(root, 100 + depth),
        jnp.zeros(own.runs),
        name,
        loss,
        lambda key, _: prompts(key, config.batch, jnp.float32),
        shape,
        own.steps_per_layer,
    )

    @moments.compiled
    def judge(stack, key):
        return loss(stack, prompts(key, BLOCK, jnp.float64))

    def risk(index, key):
        stack = jax.tree.map(lambda leaf: leaf[index].astype(jnp.float64), run.params)
        blocks = range(-(-own.test_prompts // BLOCK))
        return np.mean([judge(stack, jax.random.fold_in(key, k)).mean() for k in blocks])

    keys = jax.random.split(jax.random.fold_in(root, 99), own.runs)
    risks = np.array([risk(index, key) for index, key in enumerate(keys)])
    return risks, np.array([str(end) for end in run.status])


def tied(config, fit_stacks):
    """Excess risks of trained stacks of free layers and of tied ones."""
    own, depth = config.tied, config.tied.depth
    kinds, ends = {"free": depth, "tied": 1}, []
    for layers, own_weights in kinds.items():
        for noise_var in own.noise_vars:
            name, shape = f"{layers}{depth} noise {noise_var:g}", (depth, own_weights, config.d)
            draw = partial(noisy, config, noise_var)
            ends.append(trained_risks(config, own, name, draw, shape, fit_stacks))
    axes, sizes = ("layers", "noise"), (len(kinds), len(own.noise_vars))
    trained, status = (np.reshape(each, (*sizes, own.runs)) for each in zip(*ends, strict=True))
    data = {"trained_risk": ((*axes, "run"), trained), "status": ((*axes, "run"), status)}
    return xr.Dataset(data, {"layers": list(kinds), "noise": list(own.noise_vars)})


def noisy(config, noise_var, key, size, dtype):
    """Moments for w ~ N(0, I), and noise whose variance is a share of E |w|²."""
    task = LinearTask(config.n, config.d, noise_std=np.sqrt(noise_var * config.d), dtype=dtype)
    return sample_moments_batch(key, task, size)


def turned(config, fit_stacks):
    """Excess risks of trained stacks where the covariance turns, and the least of so many steps."""
    own = config.turned
    d, depths = len(own.eigenvalues), np.arange(1, own.max_depth + 1)
    prompts = partial(turned_prompts, own.eigenvalues)

    def risks_of(depth):
        name, shape = f"turned{depth}", (depth, depth, d)
        risks, status = trained_risks(config, own, name, prompts, shape, fit_stacks)
        return np.where(np.char.startswith(status, "diverged"), np.nan, risks)

    exact = rotated_covariance(own.eigenvalues, own.max_depth)[1:] * d
    data = {"trained_risk": (("depth", "run"), list(map(risks_of, depths)))}
    return xr.Dataset(data | {"exact_risk": ("depth", exact)}, {"depth": depths})


def turned_prompts(eigenvalues, key, size, dtype):
    """Moments of demonstrations without end of w ~ N(0, I), their covariance in a basis of each
    prompt's own."""
    values, d = jnp.asarray(eigenvalues, dtype), len(eigenvalues)
    keys = jax.random.split(key, 3)
    w, normal = jax.random.normal(keys[0], (2, size, d), dtype)
    bases = jax.random.orthogonal(keys[1], d, (size,), dtype)
    sigma = jnp.einsum("bik,k,bjk->bij", bases, values, bases)
    query = jnp.einsum("bik,k,bk->bi", bases, jnp.sqrt(values), normal)
    label = jnp.einsum("bij,bj->bi", sigma, w)
    last = jnp.concatenate([label, (label * w).sum(1, keepdims=True)], axis=1)
    both = jnp.concatenate([jnp.concatenate([sigma, label[:, None]], 1), last[..., None]], 2)
    return jnp.moveaxis(both, 0, -1), query.T, (query * w).sum(1)
