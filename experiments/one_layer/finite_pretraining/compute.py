"""Layers fitted at several sizes, and the closed form that they approach.

The layer reads h = (d/n) Σ y_i x_i and s = (1/n) Σ y_i² of its prompt: ŷ = x_query · (Γ h + γ s).
x is N(0, I/d), w is N(0, I), y = w·x + ε with variance ρ of ε (docs/theory, "Pretraining on finite
data").
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.one_layer.finite_pretraining.config import RISKS, Config
from lsa_lab.theory.asymptotics import ridgeless_risk


@partial(jax.jit, static_argnames=("counts", "most_tasks", "d"))
def fitted_risks(key, n, k, noise_var, *, counts, most_tasks, d):  # -> [counts, 2]
    """E (y - ŷ)² on new tasks and on those of the pretraining, after each number of prompts.

    ``counts`` grow; the prompts of one are among those of the next. The first ``k`` of
    ``most_tasks`` tasks are used. These are scaled together until the mean of |w|² is d: that it
    fluctuates by √(2/kd) would be most of the spread of the risk on them, and vanishes as d grows.
    """
    key_tasks, key_prompts = jax.random.split(key)
    tasks = jax.random.normal(key_tasks, (most_tasks, d))
    used = jnp.arange(most_tasks) < k
    tasks = tasks / jnp.sqrt(jnp.average(jnp.sum(tasks**2, axis=1), weights=used.astype(float)) / d)
    prompts = features(key_prompts, tasks, n, k, noise_var, counts[-1])
    layers = fits(prompts, counts)
    return jnp.stack([risks_of(layer, tasks, used, n, noise_var) for layer in layers])


def features(key, tasks, n, k, noise_var, count):  # -> [N, d], [N, d+1], [N]
    """x_query, (h, s) and y_query of N prompts, each on one of the first k tasks.

    What h and s need of the n pairs is the 2 x 2 moment of (ŵ·x, ε), by Bartlett's factor, and one
    normal vector: the components of Xᵀy that are orthogonal to w have variance |y|²/d.
    """
    keys = jax.random.split(key, 4)
    d = tasks.shape[1]
    chosen = jnp.minimum((k * jax.random.uniform(keys[0], (count,))).astype(int), k - 1)
    w = tasks[chosen]
    length = jnp.linalg.norm(w, axis=1)
    first, second = jnp.sqrt(2 * jax.random.gamma(keys[1], (n - jnp.arange(2.0)) / 2, (count, 2))).T
    normal = jax.random.normal(keys[2], (count, 2 * d + 2))
    across, noise = normal[:, 0], jnp.sqrt(noise_var)
    # With g = √d ŵ·x: |g| = first, ε = noise (g/|g| across + orthogonal of length second).
    label = length / jnp.sqrt(d) * first + noise * across  # the part of y along g
    square = label**2 + noise_var * second**2  # |y|²
    along = w / length[:, None]
    apart = normal[:, 1 : d + 1]
    apart = apart - jnp.sum(apart * along, axis=1, keepdims=True) * along
    product = (first * label)[:, None] * along + jnp.sqrt(square)[:, None] * apart  # √d Xᵀy
    h = jnp.sqrt(d) / n * product
    x_query = normal[:, d + 1 : 2 * d + 1] / jnp.sqrt(d)
    y_query = jnp.sum(x_query * w, axis=1) + noise * normal[:, -1]
    return x_query, jnp.concatenate([h, square[:, None] / n], axis=1), y_query


def fits(prompts, counts):  # -> [d, d+1] for each count
    """(Γ, γ) of least squares over the first prompts, or the shortest that interpolates them.

    Where prompts are more than entries, the sums over those of one count go on to the next.
    """
    x_query, read, y_query = prompts
    size = x_query.shape[1] * read.shape[1]
    gram, target, start, layers = jnp.zeros((size, size)), jnp.zeros(size), 0, []
    for count in counts:
        if count < size:  # the shortest layer without an error
            x, h, y = (rows[:count] for rows in prompts)
            weights = jax.scipy.linalg.solve((x @ x.T) * (h @ h.T), y, assume_a="pos")
            layers.append(jnp.einsum("b,bi,bj->ij", weights, x, h))
            continue
        own = slice(start, count)
        rows = (x_query[own, :, None] * read[own, None]).reshape(-1, size)
        gram, target, start = gram + rows.T @ rows, target + rows.T @ y_query[own], count
        layer = jax.scipy.linalg.solve(gram, target, assume_a="pos")
        layers.append(layer.reshape(x_query.shape[1], -1))
    return layers


def risks_of(layer, tasks, used, n, noise_var):  # -> [2]
    """Both risks of a layer, exactly at this n and d.

    Given w, with v = |w|²/d + ρ: E h = w, E h hᵀ = (1 + 1/n) w wᵀ + (d v / n) I, E s = v,
    E s h = (1 + 2/n) v w, E s² = (1 + 2/n) v².
    """
    d = tasks.shape[1]
    matrix, last = layer[:, :-1], layer[:, -1]

    def remaining(trace, square, v, v_sq, cross, cross_v, size):
        """|w - Γh - γs|² expected: every argument is an expectation over tasks."""
        quadratic = (1 + 1 / n) * square + d * v / n * jnp.sum(matrix**2)
        offset = -2 * cross + (1 + 2 / n) * (2 * cross_v + v_sq * jnp.sum(last**2))
        return noise_var + (size - 2 * trace + quadratic + offset) / d

    v, new_v_sq = 1 + noise_var, (1 + 2 / d) + 2 * noise_var + noise_var**2
    new = remaining(jnp.trace(matrix), jnp.sum(matrix**2), v, new_v_sq, 0.0, 0.0, d)
    mean = partial(jnp.average, weights=used.astype(float))
    images, sizes = tasks @ matrix.T, jnp.sum(tasks**2, axis=1)
    v = sizes / d + noise_var
    old = remaining(
        mean(jnp.sum(tasks * images, axis=1)),
        mean(jnp.sum(images**2, axis=1)),
        mean(v),
        mean(v**2),
        mean(v * (tasks @ last)),
        mean(v * (images @ last)),
        mean(sizes),
    )
    return jnp.stack([new, old])


_LINE = np.geomspace(0.1, 10, 201)  # of tau and of kappa


def compute(config: Config, *, progress=None, checkpoints=None):
    axes = ("d", "alpha", "kappa", "tau", "risk")
    places = list(itertools.product(config.sizes, config.alphas, config.kappas))
    measured = []
    task = progress and progress.add_task("finite_pretraining", total=len(places))
    for i, place in enumerate(places):
        key = jax.random.fold_in(jax.random.key(config.seed), i)
        measured.append(simulate(config, key, *place))
        if progress:
            progress.update(task, completed=i + 1)
    shape = [len(getattr(config, name)) for name in ("sizes", "alphas", "kappas")]
    risks = np.stack(measured).reshape(*shape, config.runs, len(config.taus), len(RISKS))

    def closed(kappa, tau, alphas=config.alphas):  # -> [alphas, kappas, taus, 2]
        alpha = np.asarray(alphas)[:, None, None]
        grid = np.asarray(kappa)[None, :, None], np.asarray(tau)[None, None]
        return np.stack(ridgeless_risk(alpha, *grid, config.noise_var), axis=-1)

    limit = closed(_LINE, [np.inf], [1000.0])[0, :, 0]
    return xr.Dataset(
        {
            "measured": (("d", "alpha", "kappa", "run", "tau", "risk"), risks),
            "closed_form": (axes[1:], closed(config.kappas, config.taus)),
            "over_tau": (("alpha", "kappa", "line", "risk"), closed(config.kappas, _LINE)),
            "over_kappa": (("alpha", "line", "risk"), closed(_LINE, config.taus[-1:])[:, :, 0]),
            "limit": (("line", "risk"), limit),
        },
        {
            "d": list(config.sizes),
            "alpha": list(config.alphas),
            "kappa": list(config.kappas),
            "tau": list(config.taus),
            "risk": list(RISKS),
            "line": _LINE,
        },
    )


def simulate(config, key, d, alpha, kappa):  # -> [R, taus, 2]
    """Both risks of every run after each number of prompts.

    One fit after the other, for one at d = 64 takes a gigabyte.
    """
    n, k = round(alpha * d), round(kappa * d)
    counts = tuple(round(tau * d * d) for tau in config.taus)
    sizes = {"counts": counts, "most_tasks": round(config.kappas[-1] * d), "d": d}
    fits = (config.sizes[-1] // d) ** 2
    keys = jax.random.split(key, config.runs * fits)
    risks = [fitted_risks(key, float(n), k, config.noise_var, **sizes) for key in keys]
    return np.reshape(risks, (config.runs, fits, len(counts), len(RISKS))).mean(1)
