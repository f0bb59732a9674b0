"""Descent on raw and preprocessed covariates, for many step sizes and numbers of steps at once."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models.model import cut
from lsa_lab import estimators, prompts
from lsa_lab.models import constructions, transformer
from lsa_lab.models.sparse_constructions import coordinate_groups
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt


def steps(most: int) -> np.ndarray:  # [T]
    """1, 2, 4, ... up to ``most``."""
    return 2 ** np.arange(int(np.log2(most)) + 1)


def squares(predicted: jax.Array, prompt: Prompt) -> jax.Array:
    """Squared errors of predictions that are cut; infinite where they are not finite."""
    errors = (cut(predicted, prompt) - prompt.y_query) ** 2
    return jnp.where(jnp.isfinite(predicted), errors, jnp.inf)


def by_rule(prompt: Prompt, step_sizes, counts):  # -> [rules, E, T]
    """The squared errors of every rule. Shares of the largest step are step sizes, up to 0.95."""
    r = prompt.x.T @ prompt.y / len(prompt.y)
    weighed = prompt.replace(x=prompt.x * r[None], x_query=prompt.x_query * r)
    raw, preprocessed = (estimators.descent_modes(each) for each in (prompt, weighed))
    shares = 0.95 * step_sizes / jnp.max(step_sizes)
    sizes = [step_sizes, step_sizes / (r @ r), 2 * shares / jnp.max(preprocessed[0])]
    paths = [estimators.descent_predictions(*raw, step_sizes, counts)]
    paths += [estimators.descent_predictions(*preprocessed, each, counts) for each in sizes]
    return squares(jnp.stack(paths), prompt)


def by_heads(prompt: Prompt, groups, share, counts):  # [H, d, d] -> [H+1, T]
    """On raw covariates and on features of groups of coordinates, each prompt with its own step."""
    r = prompt.x.T @ prompt.y / len(prompt.y)
    turns = jnp.concatenate([jnp.eye(len(r))[None], r[None, :, None] * groups])  # [H+1, d, d]

    def on_features(turn):  # -> [T]
        features = prompt.replace(x=prompt.x @ turn, x_query=prompt.x_query @ turn)
        modes = estimators.descent_modes(features)
        largest = 2 / jnp.max(modes[0])
        return estimators.descent_predictions(*modes, share * largest[None], counts)[0]

    return squares(jax.vmap(on_features)(turns), prompt)


def groups(d: int, heads: tuple[int, ...]) -> np.ndarray:  # [H, d, d]
    """Which coordinates (rows) each feature (column) sums; features that heads lack are 0."""
    sums = np.zeros((len(heads), d, d))
    for columns, count in zip(sums, heads, strict=True):
        columns[:, :count] = coordinate_groups(d, count).T
    return sums


def halves(errors):  # [2 B, ...] -> [2, ...]
    """Mean errors of the prompts to choose by, and of those to be judged on."""
    return errors.reshape(2, -1, *errors.shape[1:]).mean(1)


def judged(risks) -> tuple[np.ndarray, np.ndarray]:  # [R, 2, ..., E, T] -> [R, ..., T], [R, ...]
    """The second halves of R runs, with the step size that is best on all first halves for a number
    of steps; and with the best step size and number of steps."""
    risks = np.asarray(risks)
    first, second = risks[:, 0].mean(0), risks[:, 1]
    best = np.argmin(first, axis=-2)[None, ..., None, :]
    by_step = np.take_along_axis(second, best, axis=-2)[..., 0, :]
    first, second = (some.reshape(*some.shape[:-2], -1) for some in (first, second))
    best = np.argmin(first, axis=-1)[None, ..., None]
    return by_step, np.take_along_axis(second, best, axis=-1)[..., 0]


@jax.jit
def descents(run: Prompt, step_sizes, counts):  # [2 B] -> [2, rules, E, T]
    """The risks of RULES on both halves of a run."""
    return halves(
        jax.lax.map(lambda prompt: by_rule(prompt, step_sizes, counts), run, batch_size=16)
    )


@jax.jit
def head_descents(run: Prompt, shared, share, counts):  # [2 B], [H, d, d] -> [2, H+1, 1, T]
    """The same for raw covariates and every number of heads, with one share of the step."""
    errors = jax.vmap(by_heads, (0, None, None, None))(run, shared, share, counts)
    return halves(errors)[:, :, None]


def mixed_path(theta, normalise, prompt: Prompt):  # [2, K], [] -> [K+1]
    """Predictions of the mixed rule, with diag(r²/|r|²) if ``normalise`` is 1."""
    r = prompt.x.T @ prompt.y / len(prompt.y)
    betas = jnp.where(normalise == 1, theta[1] / (r @ r), theta[1])
    return estimators.mixed_gradient_descent(prompt, theta[0], betas) @ prompt.x_query


@jax.jit
@jax.value_and_grad
def _objective(theta, gates, normalise, batch, scale):
    thetas = gates * theta.reshape(gates.shape)
    path = jax.vmap(mixed_path, (None, None, 0))(thetas, normalise, batch)
    return jnp.mean((scale * (path[:, -1] - batch.y_query)) ** 2)


def tune(batch: Prompt, scale, rules, depths) -> np.ndarray:  # [B], [B] -> [rules, depths, 2, K]
    """The step sizes of each of some TUNED rules, for each number of steps, that suit the prompts
    best: α and β of every step, 0 beyond the last. ``scale`` weighs the errors of a prompt.

    The search starts from equal sizes, almost, for equal ones are a saddle.
    """
    from scipy.optimize import minimize

    most = max(depths)
    start = 0.3 * np.tile(np.linspace(1, 1.01, most), 2)
    found = np.zeros((len(rules), len(depths), 2, most))
    for i, rule in enumerate(rules):
        used = np.array([[rule == "raw" or "mixed" in rule], [rule != "raw"]])
        for j, depth in enumerate(depths):
            gates = used * (np.arange(most) < depth).astype(float)
            known = gates, kinds([rule])[0], batch, scale
            end = minimize(_objective, start, known, "L-BFGS-B", jac=True)
            found[i, j] = gates * end.x.reshape(2, most)
    return found


def kinds(rules) -> np.ndarray:  # [rules]
    """1 for those of TUNED that normalise R."""
    return np.array([float("normalised" in rule) for rule in rules])


@jax.jit
def tuned_errors(thetas, normalise, batch: Prompt):  # [rules, depths, 2, K] -> [rules, depths, B]
    def one(theta, kind):
        path = jax.vmap(mixed_path, (None, None, 0))(theta, kind, batch)
        return squares(path[:, -1], batch)

    return jax.vmap(jax.vmap(one, (0, None)))(thetas, normalise)


def deviations(batch: Prompt, heads: tuple[int, ...], depth: int) -> np.ndarray:  # [H, 2]
    """Construction against algorithm: the largest |Δŷ| over prompts and steps, for every number of
    heads, with all of them and without the first."""
    n, d = batch.x.shape[1:]
    alphas, betas = np.linspace(0.1, 0.3, depth), np.linspace(0.2, 0.1, depth)

    def compare(prompt: Prompt, number: int, shared):  # -> [2]
        params, config = constructions.preprocess_then_optimise(d, number, betas, alphas)
        masks = np.ones((2, config.num_layers, config.num_heads))
        masks[1, 0, 0] = 0
        turn = shared * (prompt.x.T @ prompt.y / n)[:, None]  # [d, d]
        metrics = alphas[:, None, None] * np.eye(d) + betas[:, None, None] * (turn @ turn.T)[None]
        path = estimators.gradient_descent(prompt, np.ones(depth), metrics) @ prompt.x_query
        run = partial(transformer.forward, params, prompts.tokens(prompt), config)
        by_layer = jax.vmap(lambda mask: layer_predictions(run(mask))[1:])(masks)
        return jnp.abs(by_layer - path[None]).max(1)

    @jax.jit
    def every(prompt: Prompt):
        return jnp.stack(list(map(partial(compare, prompt), heads, groups(d, heads))))

    return np.asarray(jax.vmap(every)(batch)).max(0)
