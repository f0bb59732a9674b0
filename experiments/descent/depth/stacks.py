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
from lsa_lab.theory.depth import best_descent_at, rotated_covariance, tied_descent_at
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
    risks = [risk(index, key) for index, key in enumerate(keys)]
    return np.array(risks), np.array([str(end) for end in run.status])


def tied(config, fit_stacks):
    """Excess risks of trained stacks, and of the best descent with free steps and with one step."""
    own = config.tied
    axes = {"layers": ["free", "tied"], "noise": own.noise_vars, "depth": own.depths}
    exact = np.empty([len(values) for values in axes.values()])
    trained, status = (np.empty((*exact.shape, own.runs), kind) for kind in (float, object))
    for place in np.ndindex(exact.shape):
        layers, noise_var, depth = (axes[axis][i] for axis, i in zip(axes, place, strict=True))
        best = best_descent_at if layers == "free" else tied_descent_at
        exact[place] = best(config.n, config.d, noise_var, max(own.depths))[depth] * config.d
        shape = depth, 1 if layers == "tied" else depth, config.d
        name, prompts = f"{layers}{depth} noise {noise_var:g}", partial(noisy, config, noise_var)
        trained[place], status[place] = trained_risks(config, own, name, prompts, shape, fit_stacks)
    data = {"trained_risk": ((*axes, "run"), trained), "exact_risk": (tuple(axes), exact)}
    data |= {"status": ((*axes, "run"), status.astype(str))}
    return xr.Dataset(data, {axis: list(values) for axis, values in axes.items()})


def noisy(config, noise_var, key, size, dtype):
    """Moments for w ~ N(0, I), and noise whose variance is a share of E |w|²."""
    noise_std = np.sqrt(noise_var * config.d)
    task = LinearTask(config.n, config.d, noise_std=noise_std, dtype=dtype)
    return sample_moments_batch(key, task, size)


def turned(config, fit_stacks):
    """Excess risks of trained stacks where the covariance turns, the least of so many steps, and
    that of one layer where the covariance stays."""
    own = config.turned
    d, depths = len(own.eigenvalues), np.arange(1, own.max_depth + 1)

    def risks_of(depth, turns):
        prompts = partial(turned_prompts, own.eigenvalues, turns)
        name, shape = f"{'turned' if turns else 'unturned'}{depth}", (depth, depth, d)
        risks, status = trained_risks(config, own, name, prompts, shape, fit_stacks)
        return np.where(np.char.startswith(status, "diverged"), np.nan, risks)

    return xr.Dataset(
        {
            "trained_risk": (("depth", "run"), [risks_of(depth, True) for depth in depths]),
            "exact_risk": ("depth", rotated_covariance(own.eigenvalues, own.max_depth)[1:] * d),
            "unturned_risk": ("run", risks_of(1, False)),
        },
        {"depth": depths},
    )


def turned_prompts(eigenvalues, turns, key, size, dtype):
    """Moments of demonstrations without end of w ~ N(0, I), their covariance in a basis of each
    prompt's own or, unless it ``turns``, in one that stays."""
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
