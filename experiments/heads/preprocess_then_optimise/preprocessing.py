"""Descent on raw and preprocessed covariates, for many step sizes and numbers of steps at once.

With features F of the demonstrations and f of the query, descent from 0 with step size η predicts

    ŷ_t = Σ_k c_k (1 - (1 - ηκ_k)^t) / κ_k,    c_k = (v_k·f) (v_k·Fᵀy/n),

κ_k and v_k the eigenvalues and eigenvectors of FᵀF/n (derived here; docs/theory, "Preprocess then
optimise").
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models.model import cut
from lsa_lab import estimators, prompts
from lsa_lab.models import constructions, transformer
from lsa_lab.models.trace import layer_predictions
from lsa_lab.prompts import Prompt

# Of the step size: the same for all prompts, for raw and preprocessed covariates; over |r|², that
# is with R/|R|; a share of the largest that converges.
RULES = ("raw", "preprocessed", "normalised", "own step")

TUNED = ("raw", "preprocessed", "normalised", "mixed", "mixed, normalised")

_TINY = 1e-200  # in place of a zero curvature, in which descent is linear in t


def steps(most: int) -> np.ndarray:  # [T]
    """1, 2, 4, ... up to ``most``."""
    return 2 ** np.arange(int(np.log2(most)) + 1)


def modes(features, labels, query):  # [n, D], [n], [D] -> [D], [D]
    """The κ_k and c_k."""
    curvature, basis = jnp.linalg.eigh(features.T @ features / len(labels))
    moment = features.T @ labels / len(labels)
    return jnp.maximum(curvature, _TINY), (basis.T @ query) * (basis.T @ moment)


def predictions(curvature, weights, step_sizes, counts):  # [D], [D], [E], [T] -> [E, T]
    """ŷ_t, not finite where it outgrows float64."""
    left = step_sizes[:, None] * curvature[None]  # [E, D]
    odd = (counts % 2 == 1)[None, :, None]
    rate = jnp.log(jnp.abs(1 - left))
    rate = jnp.where(left < 0.5, jnp.log1p(-jnp.minimum(left, 0.5)), rate)[:, None]  # [E, 1, D]
    power = counts.astype(curvature.dtype)[None, :, None] * rate
    grown = jnp.expm1(power)  # |1 - ηκ|^t - 1
    gained = jnp.where(odd & (left > 1)[:, None], 2 + grown, -grown)
    return (gained / curvature[None, None]) @ weights


def squares(predicted: jax.Array, prompt: Prompt) -> jax.Array:
    """Squared errors of predictions that are cut; infinite where they are not finite."""
    errors = (cut(predicted, prompt) - prompt.y_query) ** 2
    return jnp.where(jnp.isfinite(predicted), errors, jnp.inf)


def by_rule(prompt: Prompt, step_sizes, counts):  # -> [rules, E, T]
    """The squared errors of every rule. Shares of the largest step are step sizes, up to 0.95."""
    r = prompt.x.T @ prompt.y / len(prompt.y)
    raw = modes(prompt.x, prompt.y, prompt.x_query)
    made = modes(prompt.x * r[None], prompt.y, prompt.x_query * r)
    shares = 0.95 * step_sizes / jnp.max(step_sizes)
    sizes = [step_sizes, step_sizes / (r @ r), 2 * shares / jnp.max(made[0])]
    found = [predictions(*raw, step_sizes, counts)]
    found += [predictions(*made, each, counts) for each in sizes]
    return squares(jnp.stack(found), prompt)


def by_heads(prompt: Prompt, groups, share, counts):  # [H, d, d] -> [H+1, T]
    """On raw covariates and on features of groups of coordinates, each prompt with its own step."""
    r = prompt.x.T @ prompt.y / len(prompt.y)
    turns = jnp.concatenate([jnp.eye(len(r))[None], r[None, :, None] * groups])  # [H+1, d, d]

    def one(turn):
        curvature, weights = modes(prompt.x @ turn, prompt.y, prompt.x_query @ turn)
        return predictions(curvature, weights, 2 * share / jnp.max(curvature)[None], counts)[0]

    return squares(jax.vmap(one)(turns), prompt)


def groups(d: int, heads: tuple[int, ...]) -> np.ndarray:  # [H, d, d]
    """Which coordinates (rows) each feature (column) sums; features that heads lack are 0."""
    parts = [np.array_split(np.arange(d), count) for count in heads]
    owner = [np.repeat(np.arange(len(some)), [len(part) for part in some]) for some in parts]
    return np.array([one[:, None] == np.arange(d) for one in owner]).astype(float)


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
