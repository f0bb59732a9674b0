"""Do more demonstrations than in training help, normalised and not?"""

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.many_shots import CLAIMS, TIERS, Config
from experiments.parts import stacks
from experiments.parts.long_prompts import draw, linear_errors, softmax_errors, step_size
from lsa_lab import results
from lsa_lab.claims import about_the_median
from lsa_lab.models import constructions

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

LINEAR = ("descent", "linear")  # constructed and trained
SCALINGS = ("by n", "fixed")  # what linear attention divides by: its n, or that of training


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    runs = {}
    for name in stacks.MODELS:
        sizes = (config.d, config.n, config.depth)
        training = [getattr(config, f"{name}_{what}") for what in ("steps", "batch")]
        heads = config.heads if name == "softmax" else 1
        stack = stacks.Stack(
            name, *sizes, *training, config.learning_rate, heads=heads, noise_std=config.noise_std
        )
        label = f"many_shots: {name}"
        runs[name] = stack, stacks.trained(stack, config.runs, config.seed, label, progress)
    steps = jnp.full(config.depth, step_size(config))
    descent = jax.tree.map(
        lambda leaf: jnp.repeat(leaf[None], config.runs, 0),
        constructions.gradient_descent(steps, config.d),
    )
    # Twenty-seventh powers of long prompts outgrow float32, in which the training runs.
    linear = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), runs["linear"][1].params)
    root = jax.random.fold_in(jax.random.key(config.seed), 1)
    keys = jax.random.split(root, config.runs)
    few = [n for n in config.shots if n <= config.softmax_most]
    drawn = draw(config, keys)
    # [noise, shots, R, ...]
    error, bayes, largest = (
        np.moveaxis(np.asarray(part), 0, 2)
        for part in linear_errors(config, (descent, linear), drawn)
    )
    stack, run = runs["softmax"]
    levels = jnp.asarray(config.noises, jnp.float32)
    by_shots = [softmax_errors(config, stack, n, run.params, keys, levels) for n in few]
    status = [[one.kind for one in run.status] for _, run in runs.values()]
    axes = ("noise", "shots", "run")
    return xr.Dataset(
        {
            "error": ((*axes, "model", "scaling"), error),
            "bayes": (axes, bayes),
            "largest": (axes[1:], largest[config.noises.index(0.0)]),
            "softmax": (
                ("few", "run", "noise"),
                np.array([np.asarray(e) for e in by_shots], float),
            ),
            "status": (("trained", "run"), np.array(status)),
        },
        {
            "noise": list(config.noises),
            "shots": list(config.shots),
            "few": few,
            "model": list(LINEAR),
            "scaling": list(SCALINGS),
            "trained": list(stacks.MODELS),
        },
    )


def plot(dataset):
    settings = results.settings(dataset)
    noises = dataset.noise.values
    drawn, axes = style.figure(3.2 * len(noises), 4.0, (1, len(noises)))
    shots, lost, top = dataset.shots.values, 0, 30 * settings.d
    for ax, noise in zip(axes, noises, strict=True):
        there = dataset.sel(noise=noise)
        for i, model in enumerate(LINEAR):
            for scaling, marker in zip(SCALINGS, ("o", "^"), strict=True):
                runs = there.error.sel(model=model, scaling=scaling).transpose("run", "shots")
                shown = runs.values
                label = f"{model}, {'1/n' if scaling == 'by n' else 'fixed'}"
                lost += style.band(ax, shots, shown, label, style.COLOURS[i], marker)
        soft = there.softmax.transpose("run", "few").values
        lost += style.band(ax, dataset.few.values, soft, "softmax", style.COLOURS[2], "s")
        if noise:
            style.line(ax, shots, there.bayes.median("run"), "Bayes rule", style=":")
        ax.axvline(settings.n, color="grey", lw=0.8, ls="--")
        ax.axvline(float(np.median(predicted(dataset))), color="grey", lw=0.8, ls="-.")
        style.log_axes(ax, x=True, y=True, ticks=shots[shots % settings.n == 0][::2])
        ax.set(xlabel="demonstrations", ylim=(2e-7, top))
        ax.set_title(f"noise {noise:g}")
    axes[0].set_ylabel("squared error, median over prompts")
    axes[-1].legend(ncols=2, loc="lower right")
    finished = int((dataset.status != "diverged").sum())
    style.caption(
        drawn,
        f"Divided by n, more demonstrations than the {settings.n} of training (dashes) help: the "
        "descent to the end, trained stacks until their bias is left. Divided by "
        f"{settings.n} always, the same weights overshoot, off the top, soon after the descent's "
        "η λ_max(XᵀX) passes 2 (dash-dot). "
        f"{settings.depth} layers. Median of {settings.runs} runs and the middle 80 % of them; "
        f"{lost} left out as not finite; {finished} of {dataset.status.size} trainings finished. "
        f"Softmax only up to {settings.softmax_most}: its cost is quadratic. d = {settings.d}.",
    )
    return drawn


def _crossing(shots, values, level):
    """The first number of demonstrations at which values [R, shots] reach a level, between grid
    points by a power law; the last number where they never do."""
    found = []
    for row in np.asarray(values, float):
        above = np.flatnonzero(row >= level)
        if len(above) == 0 or above[0] == 0:
            found.append(shots[-1] if len(above) == 0 else shots[0])
            continue
        j = above[0]
        share = np.log(level / row[j - 1]) / np.log(row[j] / row[j - 1])
        found.append(shots[j - 1] * (shots[j] / shots[j - 1]) ** share)
    return np.array(found)


def predicted(dataset):  # [R]
    """The number of demonstrations from which η λ_max(XᵀX), divided by n of training, exceeds 2."""
    return _crossing(dataset.shots.values, dataset.largest.transpose("run", "shots"), 2.0)


def claims(dataset):
    settings = results.settings(dataset)
    n, most, noisy = settings.n, max(settings.shots), dataset.sel(noise=settings.noise_std)
    error = noisy.error.transpose("run", "model", "scaling", "shots")
    growth = (error.sel(shots=most) / error.sel(shots=n)).transpose("run", "model", "scaling")
    longest = max(dataset.few.values)
    samples = {"softmax": (noisy.softmax.sel(few=longest) / noisy.softmax.sel(few=n)).values}
    for model in LINEAR:
        by_n, fixed = (growth.sel(model=model, scaling=s).values for s in SCALINGS)
        best = error.sel(model=model, scaling="by n", shots=most)
        samples[f"{model}_normalised"], samples[f"{model}_fixed"] = by_n, fixed
        samples[f"{model}_bayes"] = best / noisy.bayes.sel(shots=most)
    clean = dataset.error.sel(noise=0.0, model="descent", scaling="fixed")
    unsafe = clean.transpose("run", "shots")
    harm = _crossing(dataset.shots.values, unsafe, no_shots(settings))
    samples["threshold"] = harm / predicted(dataset)
    known = vars(settings) | {"most": most, "longest": longest}
    known["1/threshold_factor"] = 1 / settings.threshold_factor
    made = []
    for name, (source, statement, criterion, bounds) in CLAIMS.items():
        limits = {side: known[bound] for side, bound in bounds.items()}
        said = (source, statement, criterion.format(**known), samples[name])
        made.append(about_the_median(f"many_shots.{name}", *said, **limits))
    return made


def no_shots(settings):
    """The median squared error of predicting 0: (w·x)² is a product of χ² variables."""
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((2, 100_000, settings.d))
    return float(np.median((w * x).sum(1) ** 2))
