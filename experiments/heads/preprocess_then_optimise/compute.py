"""Risks of descent on covariates by rules and by heads, in one Dataset."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.heads import sparse_rules
from experiments.heads.preprocess_then_optimise import few_heads
from experiments.heads.preprocess_then_optimise.config import RULES, TUNED, Config
from experiments.heads.rule_names import RULES as KNOWING
from experiments.models.model import clip_predictions
from lsa_lab import estimators
from lsa_lab.models.sparse_constructions import coordinate_groups
from lsa_lab.prompts import Prompt
from lsa_lab.store import parts
from lsa_lab.tasks.linear import LinearTask, sample


def draw(task: LinearTask, key, runs: int, size: int) -> list[Prompt]:  # [2 size], runs of them
    """Prompts of each run, a half to choose by and a half to be judged on."""
    return [_sample(key_of_run, task, 2 * size) for key_of_run in jax.random.split(key, runs)]


@partial(jax.jit, static_argnums=2)
def _sample(key, task: LinearTask, count: int) -> Prompt:  # [count]
    # A few at a time: long prompts then stay in the caches.
    return jax.lax.map(partial(sample, task=task), jax.random.split(key, count), batch_size=8)


def flat(batch: Prompt) -> Prompt:  # [R, B] -> [R B]
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), batch)


def squares(predicted: jax.Array, prompt: Prompt) -> jax.Array:
    """Squared errors of predictions that are cut; infinite where they are not finite."""
    errors = (clip_predictions(predicted, prompt) - prompt.y_query) ** 2
    return jnp.where(jnp.isfinite(predicted), errors, jnp.inf)


def halves(errors):  # [2 B, ...] -> [2, ...]
    """Mean errors of the prompts to choose by, and of those to be judged on."""
    return errors.reshape(2, -1, *errors.shape[1:]).mean(1)


def chosen(risks) -> tuple[np.ndarray, np.ndarray]:  # [R, 2, ..., E, T] -> [R, ..., T], [R, ...]
    """The second halves of R runs, with the step size that is best on all first halves for a number
    of steps; and with the best step size and number of steps."""
    risks = np.asarray(risks)
    first, second = risks[:, 0].mean(0), risks[:, 1]
    best = np.argmin(first, axis=-2)[None, ..., None, :]
    by_step = np.take_along_axis(second, best, axis=-2)[..., 0, :]
    first, second = (part.reshape(*part.shape[:-2], -1) for part in (first, second))
    best = np.argmin(first, axis=-1)[None, ..., None]
    return by_step, np.take_along_axis(second, best, axis=-1)[..., 0]


@jax.jit
def rule_risks(run: Prompt, step_sizes, counts):  # [2 B] -> [2, rules, E, T]
    """The risks of config.RULES on both halves of a run."""
    errors = partial(rule_errors, step_sizes=step_sizes, counts=counts)
    return halves(jax.lax.map(errors, run, batch_size=16))


def rule_errors(prompt: Prompt, step_sizes, counts):  # -> [rules, E, T]
    """The squared errors of config.RULES. Shares of the largest step are step sizes, up to 0.95."""
    r = prompt.x.T @ prompt.y / len(prompt.y)
    weighed = prompt.replace(x=prompt.x * r[None], x_query=prompt.x_query * r)
    raw, preprocessed = (estimators.descent_modes(each) for each in (prompt, weighed))
    shares = 0.95 * step_sizes / jnp.max(step_sizes)
    sizes = [step_sizes, step_sizes / (r @ r), 2 * shares / jnp.max(preprocessed[0])]
    paths = [estimators.descent_predictions(*raw, step_sizes, counts)]
    paths += [estimators.descent_predictions(*preprocessed, each, counts) for each in sizes]
    return squares(jnp.stack(paths), prompt)


@jax.jit
def head_risks(run: Prompt, groups, share, counts):  # [2 B], [H, d, d] -> [2, H+1, 1, T]
    """The risks of raw covariates and every number of heads, with one share of the step."""
    errors = jax.vmap(head_errors, (0, None, None, None))(run, groups, share, counts)
    return halves(errors)[:, :, None]


def head_errors(prompt: Prompt, groups, share, counts):  # [H, d, d] -> [H+1, T]
    """The squared errors on raw covariates and on sums of preprocessed ones, each prompt with its
    own step."""
    r = prompt.x.T @ prompt.y / len(prompt.y)
    turns = jnp.concatenate([jnp.eye(len(r))[None], r[None, :, None] * groups])  # [H+1, d, d]

    def feature_errors(turn):  # -> [T]
        features = prompt.replace(x=prompt.x @ turn, x_query=prompt.x_query @ turn)
        modes = estimators.descent_modes(features)
        largest = 2 / jnp.max(modes[0])
        return estimators.descent_predictions(*modes, share * largest[None], counts)[0]

    return squares(jax.vmap(feature_errors)(turns), prompt)


def sums(d: int, heads: tuple[int, ...]) -> np.ndarray:  # [H, d, d]
    """Which coordinates (rows) each feature (column) sums; features that heads lack are 0."""
    matrices = np.zeros((len(heads), d, d))
    for columns, count in zip(matrices, heads, strict=True):
        columns[:, :count] = coordinate_groups(d, count).T
    return matrices


def tune(batch: Prompt, rules, depths) -> np.ndarray:  # [B] -> [rules, depths, 2, K]
    """The step sizes that suit the prompts best, for some of config.TUNED and numbers of steps: α
    and β of every step, 0 beyond the last.

    The search starts from equal sizes, almost, for equal ones are a saddle.
    """
    from scipy.optimize import minimize

    most = max(depths)
    start = 0.3 * np.tile(np.linspace(1, 1.01, most), 2)
    thetas = np.zeros((len(rules), len(depths), 2, most))
    for i, rule in enumerate(rules):
        used = np.array([[rule == "raw"], [rule != "raw"]])
        for j, depth in enumerate(depths):
            gates = used * (np.arange(most) < depth).astype(float)
            end = minimize(_objective, start, (gates, batch), "L-BFGS-B", jac=True)
            thetas[i, j] = gates * end.x.reshape(2, most)
    return thetas


@jax.jit
def tuned_errors(thetas, batch: Prompt):  # [rules, depths, 2, K] -> [rules, depths, B]
    return jax.vmap(jax.vmap(lambda theta: squares(answers(theta, batch), batch)))(thetas)


def answers(theta, batch: Prompt):  # [2, K] -> [B]
    """ŷ after steps of sizes α on raw covariates and β on preprocessed ones."""

    def answer(prompt):
        path = estimators.mixed_gradient_descent(prompt, theta[0], theta[1])
        return path[-1] @ prompt.x_query

    return jax.vmap(answer)(batch)


@jax.jit
@jax.value_and_grad
def _objective(theta, gates, batch):
    return jnp.mean((answers(gates * theta.reshape(gates.shape), batch) - batch.y_query) ** 2)


def compute(config: Config, *, progress=None, checkpoints=None):
    counts = 2 ** np.arange(int(np.log2(config.steps)) + 1)
    s, d, sizes = config.sparsity, config.d, np.array(config.step_sizes)
    task = LinearTask(config.n, d, s, config.noise_var**0.5, weight_std=s**-0.5)
    key = jax.random.fold_in(jax.random.key(config.seed), 0)
    key_runs, key_tuning = (jax.random.fold_in(key, tag) for tag in range(2))
    runs = draw(task, key_runs, config.runs, config.prompts)
    # Prompts that tune are drawn as runs are, which is then compiled once.
    tuning = draw(
        task, key_tuning, -(-config.tuning_prompts // (2 * config.prompts)), config.prompts
    )
    tuning = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: config.tuning_prompts], *tuning)
    batch = jax.tree.map(lambda *rows: np.stack([row[config.prompts :] for row in rows]), *runs)
    by_step, best = chosen([rule_risks(run, sizes, counts) for run in runs])
    parameters = sums(d, config.heads), config.share, counts
    by_heads, of_heads = chosen([head_risks(run, *parameters) for run in runs])
    errors = [np.asarray(sparse_rules.errors(rule, flat(batch), task)) for rule in KNOWING]
    of_rule = np.stack([each.reshape(batch.y_query.shape).mean(1) for each in errors], axis=1)
    main = xr.Dataset(
        {
            "by_step": (("run", "rule", "t"), by_step),
            "best": (("run", "rule"), best),
            "by_heads": (("run", "used", "t"), by_heads),
            "of_heads": (("run", "used"), of_heads),
            "fitted": (("run", "tuned", "depth"), fit_steps(config, batch, tuning)),
            "of_rule": (("run", "reference"), of_rule),
        },
        {
            "rule": list(RULES),
            "t": counts,
            "used": ["raw", *map(str, config.heads)],
            "tuned": list(TUNED),
            "depth": np.arange(1, config.depth + 1),
            "reference": list(KNOWING),
        },
    )
    groups = sums(d, config.heads).swapaxes(1, 2)
    return parts.join(main, few_heads=few_heads.measure(config.few_heads, s, config.heads, groups))


def fit_steps(config: Config, batch: Prompt, tuning: Prompt) -> np.ndarray:
    """Risks after 1, 2, ... steps, each of a size of its own: [R, TUNED, depths]."""
    depths = range(1, config.depth + 1)
    errors = np.asarray(tuned_errors(tune(tuning, TUNED, depths), flat(batch)))
    by_run = errors.reshape(*errors.shape[:2], *batch.y_query.shape)
    return np.moveaxis(by_run.mean(-1), 2, 0)
