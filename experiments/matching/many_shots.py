"""Do demonstrations beyond the length of training help (A3, Section 4.6)?

A3 finds that up to 1024 demonstrations open-ended tasks improve, while classification gets worse
from 128 on. Our models are trained on short prompts of linear regression. Here they answer longer
and longer prompts: the same regression, and two classes, the signs of the labels. Beside them stand
a constructed gradient descent of as many steps as linear attention has layers, and ridge
regression, which is the Bayes rule of the regression. Shorter prompts are the first demonstrations
of the longest one, with the same query, whose target has no noise. Errors are medians over prompts,
because linear attention explodes on a rare one.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.matching import measures
from experiments.models.named import NamedModels
from experiments.models.runs import refuse_divergence
from experiments.models.tasks import distribution, draw
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting, stack_rows

TRAINED = ("linear attention", "softmax attention")
LEARNERS = ("descent", *TRAINED)
RULES = (*LEARNERS, "ridge")
LABELS = ("real", "signs")
FEW = 128  # demonstrations, from which on A3's classification gets worse


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = TRAINED  # trained models, of one task and one length
    shots: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024)  # the first one is that of training
    prompts: int = 200  # for each training of a model
    runs: int = 16  # trainings
    seed: int = 1404


TIERS = {
    "smoke": Config(small=True, shots=(4, 128, 160), prompts=6, runs=2, seed=1),
    "quick": Config(shots=(16, 64, 128, 512), prompts=20, runs=9, seed=2),
    "full": Config(),
}


def draw_prompts(config, task, labels):  # -> Prompt [R, B]
    """Draw the longest prompts, those of classes from the same covariates and noise."""
    task = distribution(replace(task, labels=labels), max(config.shots))
    keys = jax.random.split(jax.random.key(config.seed), config.runs)
    return jax.jit(jax.vmap(partial(draw, task=task, size=config.prompts)))(keys)


@jax.jit
def answer_by_model(models, batch):  # leaves [R, ...], Prompt [R, B] -> [R, B]
    """Return the answers of trained models, one prompt at a time: n² scores take the memory."""

    def answer(model, prompt):
        return model.predict(jax.tree.map(lambda leaf: leaf[None], prompt))[0]

    return jax.lax.map(lambda row: jax.lax.map(partial(answer, row[0]), row[1]), (models, batch))


def measure(config, runs, prompts, n):  # -> {"error": [rules, R], "wrong": [rules, R]}
    spec = next(iter(runs.values())).spec
    task, depth = spec.task, spec.architecture.depth
    steps = jnp.full(depth, measures.best_step(max(task.lengths), task.d, task.noise_std))
    found = {}
    for labels, batch in prompts.items():
        first = batch.replace(x=batch.x[:, :, :n], y=batch.y[:, :, :n])
        descent, ridge = np.asarray(measures.answer_by_rules(steps, task.noise_std, first))
        single = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), first)
        models = [each.models(seeds=slice(config.runs)) for each in runs.values()]
        trained = [np.asarray(answer_by_model(model, single), float) for model in models]
        found[labels] = np.stack([descent, *trained, ridge])
    targets = {labels: np.asarray(batch.y_query) for labels, batch in prompts.items()}
    return {
        "error": np.median((found["real"] - targets["real"]) ** 2, axis=-1),
        "wrong": (found["signs"] * targets["signs"] <= 0).mean(-1),
    }


def compute(config, models):
    refuse_divergence(models)
    tasks = {runs.spec.task for runs in models.values()}
    if len(tasks) > 1 or config.shots[0] != max(next(iter(tasks)).lengths):
        raise ValueError("shots begin with the length of training, the same for all models")
    task = tasks.pop()
    prompts = {labels: draw_prompts(config, task, labels) for labels in LABELS}
    function = partial(measure, config, models, prompts)
    rows = compute_each("demonstrations", config.shots, function)
    data = stack_rows(rows, dict.fromkeys(rows[0], ("shots", "rule", "run")))
    return xr.Dataset(data, {"shots": list(config.shots), "rule": ["descent", *models, "ridge"]})


FAR = 2.0  # times the Bayes rule's error: a model above it has not learnt the task


def select(result, name, rule, shots):  # -> [R]
    return result[name].sel(rule=rule, shots=shots).transpose("run", ...).values


def has_converged(result, rule):
    """Return whether a trained model is near the Bayes rule at the length of training."""
    n = result["shots"].values[0]
    ratio = select(result, "error", rule, n) / select(result, "error", "ridge", n)
    return rule not in TRAINED or np.median(ratio) < FAR


def longer(result, rule):  # -> [R], or None
    """Return the error with the most demonstrations over that with as many as in training."""
    if not has_converged(result, rule):
        return None
    few, most = (select(result, "error", rule, n) for n in result["shots"].values[[0, -1]])
    return most / few


def over_bayes(result, rule):  # -> [R], or None
    """Return the error with the most demonstrations over that of the Bayes rule."""
    if not has_converged(result, rule):
        return None
    most = result["shots"].values[-1]
    return select(result, "error", rule, most) / select(result, "error", "ridge", most)


def classes(result, rule):  # -> [R], or None
    """Return the share of wrong classes with the most demonstrations less that with FEW."""
    if not has_converged(result, rule):
        return None
    most = result["shots"].values[-1]
    return select(result, "wrong", rule, most) - select(result, "wrong", rule, FEW)


def classes_less_ridge(result, rule):  # -> [R], or None
    """Return ``classes`` of a rule less that of ridge regression on the same prompts."""
    change = classes(result, rule)
    return None if change is None else change - classes(result, "ridge")


MOST = max(TIERS["full"].shots)
SHARE = f"the share of wrong classes with {MOST} demonstrations less that with {FEW}"
CLAIMS = (
    Claim("longer", "A3, Section 4.6", "Demonstrations beyond the length of training lower the "
          "error of {rule} in regression", f"the error with {MOST} demonstrations over that with "
          "as many as in training, medians over the same prompts", longer, at_most=1.0,
          statistic="ratio", over={"rule": LEARNERS}, null="over_bayes"),
    Claim("over_bayes", "A3, Section 4.6", f"The error of {{rule}} with {MOST} demonstrations, and "
          "that of the Bayes rule", "the error over that of the Bayes rule on the same prompts",
          over_bayes, statistic="ratio", over={"rule": LEARNERS},
          null="none: the ratio is paired, and 1 without a difference"),
    Claim("classes", "A3, Section 4.6", f"From {FEW} to {MOST} demonstrations {{rule}} gets worse "
          "in classification", f"{SHARE}, on the same prompts", classes, at_least=0.0,
          over={"rule": LEARNERS}, null="classes_less_ridge",
          note="the models are trained on regression; classes are the signs of noisy labels"),
    Claim("classes_less_ridge", "A3, Section 4.6", "The change of {rule} in classification, less "
          "that of ridge regression", f"{SHARE}, less the same of ridge regression",
          classes_less_ridge, over={"rule": LEARNERS},
          null="none: the difference is paired, and 0 without an effect"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, axes = plotting.figure(6.75, 2.7, (1, 2))
    looks = zip(RULES, ("descent", "linear", "softmax", "ridge"), strict=True)
    for i, (rule, method) in enumerate(looks):
        places = result["shots"].values * 1.04**i
        name = "ridge regression" if rule == "ridge" else rule
        for ax, measured in zip(axes, ("error", "wrong"), strict=True):
            runs, statistic = result[measured].sel(rule=rule), "ratio" if ax is axes[0] else "mean"
            plotting.mean_points(ax, places, runs, name, statistic, **plotting.METHOD[method])
    for ax in axes:
        plotting.log_axes(ax, x=True, y=ax is axes[0], ticks=result["shots"].values[::2])
        ax.set_xlabel("demonstrations")
    axes[0].set(ylabel="squared error, median", title="Regression")
    axes[1].set(ylabel="share of wrong classes", title="Two classes")
    axes[1].set_ylim(bottom=0)
    axes[0].legend()
    n, most = (int(n) for n in result["shots"].values[[0, -1]])
    left = [100 * geometric_mean(each) for each in sample_all(result, longer)]
    change = [100 * each.mean() for each in sample_all(result, classes)]
    ridge = 100 * classes(result, "ridge").mean()
    return figure, (
        f"Models trained on {n} demonstrations have {min(left):.2g} to {max(left):.2g} % of their "
        f"error when they are given {most}. From {FEW} to {most} demonstrations the share of wrong "
        f"classes changes by {min(change):.1f} to {max(change):.1f} percentage points, that of "
        f"ridge regression by {ridge:.1f}. Points are means of {result.sizes['run']} runs, "
        "geometric means in a."
    )


def sample_all(result, quantity):
    """Return the samples of all learners that have converged; of descent at least."""
    return [x for rule in LEARNERS if (x := quantity(result, rule)) is not None]


if __name__ == "__main__":
    main(__file__)
