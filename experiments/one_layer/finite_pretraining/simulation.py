"""One layer fitted by least squares to N prompts over k tasks, and its exact risks.

The layer reads h = (d/n) Σ y_i x_i and s = (1/n) Σ y_i² of its prompt: ŷ = x_query · (Γ h + γ s).
x is N(0, I/d), w is N(0, I), y = w·x + ε with variance ρ of ε (docs/theory, "Pretraining on finite
data").
"""

from functools import partial

import jax
import jax.numpy as jnp


@partial(jax.jit, static_argnames=("counts", "most_tasks", "d"))
def risks(key, n, k, noise_var, *, counts, most_tasks, d):  # -> [counts, 2]
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
    few = [count for count in counts if count < size]
    layers = [_interpolating(*(rows[:count] for rows in prompts)) for count in few]
    gram, target, start = jnp.zeros((size, size)), jnp.zeros(size), 0
    for count in counts[len(few) :]:
        own = slice(start, count)
        rows = (x_query[own, :, None] * read[own, None]).reshape(-1, size)
        gram, target, start = gram + rows.T @ rows, target + rows.T @ y_query[own], count
        layer = jax.scipy.linalg.solve(gram, target, assume_a="pos")
        layers.append(layer.reshape(x_query.shape[1], -1))
    return layers


def _interpolating(x_query, read, y_query):  # -> [d, d+1]
    """The shortest layer without an error; its kernel is K_ij = (x_i · x_j) (h_i · h_j)."""
    kernel = (x_query @ x_query.T) * (read @ read.T)
    weights = jax.scipy.linalg.solve(kernel, y_query, assume_a="pos")
    return jnp.einsum("b,bi,bj->ij", weights, x_query, read)


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
