"""How does the error of trained transformers fall with shots and with training steps?"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.shots_and_steps import TIERS, Config
from experiments.parts.stacks import MODELS, draw, predictions, stack_of, task, train
from lsa_lab import estimators, results
from lsa_lab.claims import Claim, judge, median_interval

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]


def known_errors(config, prompts, noise):  # -> [2, 2R, shots]
    """Mean squared error of least squares and of the Bayes rule, which without noise are one.

    An empty demonstration is none, to either: all numbers of shots are one computation.
    """
    kept = jnp.arange(max(config.shots))[None] < jnp.asarray(config.shots)[:, None]

    def one(prompt, noise_std, kept):
        prompt = prompt.replace(
            x=jnp.where(kept[:, None], prompt.x, 0), y=jnp.where(kept, prompt.y, 0)
        )
        ols = estimators.ols(prompt)
        bayes = estimators.gaussian_posterior_mean(prompt, 1.0, noise_std**2)
        both = jnp.stack([ols, jnp.where(noise_std > 0, bayes, ols)])
        return (both @ prompt.x_query - prompt.y_query) ** 2

    one = jax.vmap(jax.vmap(one, (None, None, 0)), (0, None, None))
    by_run = jax.lax.map(lambda row: one(*row, kept).mean(0), (prompts, noise))
    return jnp.moveaxis(by_run, 2, 0)


def risks(predicted, row):  # -> [C]
    """The excess risk on one batch of every params [C, ...]."""
    watched, batch = row
    return jax.lax.map(lambda one: ((predicted(one, batch) - batch.y_query) ** 2).mean(), watched)


def _in_float64(tree):
    """Twenty-seventh powers at few shots outgrow float32, in which the training runs."""
    return jax.tree.map(lambda leaf: leaf.astype(float), tree)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    root = jax.random.key(config.seed)
    levels = np.array([0.0, config.noise_std])
    noise = jnp.repeat(jnp.asarray(levels, jnp.float32), config.runs)
    keys = jnp.tile(jax.random.split(jax.random.fold_in(root, 0), config.runs), 2)
    stacks = {name: stack_of(name, config) for name in MODELS}

    def some(key, noise_std):
        law = task(stacks["linear"], max(config.shots), noise_std)
        return draw(key, law, config.test_prompts)

    prompts = _in_float64(jax.jit(jax.vmap(some))(keys, noise))
    errors, learning, status = [], [], []
    for tag, (name, stack) in enumerate(stacks.items(), start=1):
        looking = {"chunk": stack.steps // config.looks, "watch": lambda p: p}
        key, label = jax.random.fold_in(root, tag), f"shots_and_steps: {name}"
        kept = checkpoints and checkpoints / f"{name}.ckpt"
        run = train(stack, noise, key, label, progress, kept, repr(config), **looking)
        watched, by_shots = _in_float64(run.history["watch"]), {}
        evaluate = jax.jit(partial(jax.lax.map, partial(risks, predictions(stack))))
        for n in config.shots:
            kept = watched if n == config.n else jax.tree.map(lambda leaf: leaf[:, -1:], watched)
            fewer = prompts.replace(x=prompts.x[:, :, :n], y=prompts.y[:, :, :n])
            by_shots[n] = np.asarray(evaluate((kept, fewer))).reshape(2, config.runs, -1)
        errors.append(np.stack([risk[..., -1] for risk in by_shots.values()], axis=-1))
        learning.append(by_shots[config.n])
        status.append(np.reshape([str(one) for one in run.status], (2, config.runs)))
    known = np.asarray(jax.jit(partial(known_errors, config))(prompts, noise))
    axes = ("model", "noise", "run")
    share = np.arange(config.looks + 1) / config.looks
    steps = np.stack([stack.steps * share for stack in stacks.values()])
    return xr.Dataset(
        {
            "error": ((*axes, "shots"), np.stack(errors)),
            "learning": ((*axes, "look"), np.stack(learning)),
            "steps": (("model", "look"), steps),
            "known": (("rule", *axes[1:], "shots"), known.reshape(2, 2, config.runs, -1)),
            "status": (axes, np.stack(status)),
        },
        {
            "model": list(MODELS),
            "noise": levels,
            "shots": list(config.shots),
            "rule": ["least squares", "Bayes rule"],
        },
    )


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 3.4, (1, 3))
    shots, lost = dataset.shots.values, 0
    zero, top = settings.zero * settings.d, 40 * settings.d
    for name, color, marker in zip(MODELS, style.COLOURS, style.MARKERS, strict=False):
        there = dataset.sel(model=name)
        for i, ax in enumerate(axes[:2]):
            runs = there.error.isel(noise=i).transpose("run", "shots")
            lost += style.band(ax, shots, runs, name, color, marker)
        runs = there.learning.isel(noise=1).transpose("run", "look")
        lost += style.band(axes[2], there.steps.values, runs, name, color, marker)
    for i, ax in enumerate(axes[:2]):
        for rule, dash in (("least squares", "-"), ("Bayes rule", ":"))[: i + 1]:
            known = dataset.known.isel(noise=i).sel(rule=rule).median("run")
            style.line(ax, shots, known, "Bayes rule: ridge" if dash == ":" else rule, style=dash)
        ax.axvline(settings.n, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, x=True, y=True, ticks=shots)
        ax.set(xlabel="shots", ylabel="excess risk", ylim=(zero / 5, top))
        ax.set_title(f"noise {dataset.noise.values[i]:g}")
    axes[0].axhline(zero, color="grey", lw=0.8, ls="--")
    ax = axes[2]
    bayes = dataset.known.isel(noise=1).sel(rule="Bayes rule", shots=settings.n).median()
    ax.axhline(float(bayes), color=style.BLACK, ls=":", lw=1.2, label="Bayes rule: ridge")
    style.log_axes(ax, y=True)
    ax.set(xlabel="training steps", ylabel=f"excess risk at {settings.n} shots")
    ax.set_title(f"training, noise {settings.noise_std:g}")
    for ax, place in zip(axes, ("upper left", "lower left", "upper right"), strict=True):
        ax.legend(loc=place)
    medians = dataset.error.median("run")
    left = medians.isel(noise=0).sel(shots=2 * settings.d) / settings.d
    style.caption(
        drawn,
        f"Without noise least squares needs {settings.d} = d shots; at 2d the {settings.depth} "
        "layers keep "
        + " and ".join(f"{float(left.sel(model=name)):.1%} ({name})" for name in MODELS)
        + f" of the error without shots. Median of {settings.runs} runs and the middle 80 % of "
        f"them; {lost} numbers left out as not finite, {int((medians > top).sum())} medians of "
        f"linear attention at few shots far above the axes. Dashes: the {settings.n} shots of "
        "training, and what counts as zero.",
    )
    return drawn


def claims(dataset):
    """Medians over runs: of linear attention at few shots a single prompt decides the mean."""
    settings = results.settings(dataset)
    d, n = settings.d, settings.n
    bayes = dataset.known.isel(noise=1).sel(rule="Bayes rule", shots=n).values
    made = []
    for name in MODELS:
        error = dataset.error.sel(model=name).transpose("run", "noise", "shots")
        up_to_n = error.sel(shots=[count for count in settings.shots if count <= n]).values
        exact, noisy = error.isel(noise=0) / d, error.isel(noise=1)
        share = "the excess risk without noise, as a share of that without shots,"
        rows = {
            "shots": (
                "falls with every further shot up to the trained length",
                "the largest ratio of neighbours, with noise and without,",
                (up_to_n[..., 1:] / up_to_n[..., :-1]).max((1, 2)),
                settings.growth,
            ),
            "bayes": (
                "comes close to that of the Bayes rule at the trained length",
                f"the ratio of excess risks with noise {settings.noise_std}",
                noisy.sel(shots=n).values / bayes,
                settings.bayes_factor,
            ),
            "zero_d": ("is zero at d shots", share, exact.sel(shots=d).values, settings.zero),
            "zero_2d": ("is zero at 2d shots", share, exact.sel(shots=2 * d).values, settings.zero),
        }
        for which, (statement, measured, samples, bound) in rows.items():
            interval = median_interval(samples)
            made.append(
                Claim(
                    f"shots_and_steps.{name}_{which}",
                    "Garg et al. 2208.01066; A2 (2406.03768), figure 5",
                    f"The error of trained {name} attention {statement}",
                    f"median over runs of {measured} <= {bound} "
                    "(statistic changed after a first run: it was the mean)",
                    float(np.median(samples)),
                    interval,
                    judge(interval, at_most=bound),
                )
            )
    return made
