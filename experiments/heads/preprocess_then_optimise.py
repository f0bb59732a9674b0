"""Does the first layer need d heads to preprocess d covariates (A4, Mechanism and Heads needed)?

A4's first layer weighs covariate j by r_j, r = Xᵀy/n, with a head for each j; later layers descend.
A head that serves several covariates writes the one feature Σ r_j x_j over them. Descent on the
features of H heads is compared here with descent on all r_j x_j, alone and beside the raw
covariates, without any trained model: x ~ N(0, I), w with s Gaussian non-zeros, E |w|² = 1.
The size and the number of steps are the best on other prompts, and so is the weight of the raw
covariates. A size is in units of the prompt's 1/λ_max or, as in a trained layer, one for all.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.models.model import clip_predictions
from lsa_lab import estimators
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting
from lsa_lab.models.sparse_constructions import coordinate_groups
from lsa_lab.tasks.linear import LinearTask, sample_batch

FEATURES = ("alone", "beside raw", "raw")
STEPS = ("a step for each prompt", "one step for all prompts")


@dataclass(frozen=True)
class Config:
    d: int = 10  # covariates
    sparsity: int = 2  # non-zeros
    n: int = 30  # demonstrations
    noise_var: float = 0.25  # of a label, whose signal has variance 1
    heads: tuple[int, ...] = (1, 2, 5, 10)  # of the first layer, d at the end
    shares: tuple[float, ...] = (0.25, 0.5, 0.75)  # of raw covariates beside the features
    step_sizes: tuple[float, ...] = (0.25, 0.5, 1.0, 1.5)  # times 1/λ_max of the prompt
    sizes_for_all: tuple[float, ...] = tuple(2.0**k for k in range(-5, 6))
    doublings: int = 11  # of the number of steps, at most
    prompts: int = 512  # of a run, to be judged on, and as many to choose by
    runs: int = 32
    seed: int = 1811


TIERS = {
    "smoke": Config(2, 1, 8, heads=(1, 2), shares=(0.5,), step_sizes=(0.5,), sizes_for_all=(0.5,),
                    doublings=3, prompts=8, runs=3, seed=1),
    "quick": Config(6, heads=(1, 3, 6), shares=(0.5,), doublings=8, prompts=256, runs=9, seed=2),
    "full": Config(),
}  # fmt: skip


def predict(prompt, matrix, step_sizes, counts, relative=True):  # [k, d] -> [E, T]
    features = prompt.replace(x=prompt.x @ matrix.T, x_query=matrix @ prompt.x_query)
    modes = estimators.descent_modes(features)
    sizes = step_sizes / jnp.max(modes[0]) if relative else step_sizes
    return estimators.descent_predictions(*modes, sizes, counts)


def scale_features(x, matrix):  # [k, d]
    """Scale the matrix so that the second moment of its features has largest eigenvalue 1."""
    features = x @ matrix.T
    return matrix / jnp.sqrt(jnp.linalg.eigvalsh(features.T @ features / len(x))[-1])


def measure_prompt(config, prompt):  # -> [H, shares + 2, E, T], [E', T]
    """Return squared errors by heads and share of raw covariates (0 to 1), and with one size."""
    r = prompt.x.T @ prompt.y / len(prompt.y)
    counts = 2 ** np.arange(config.doublings + 1)
    raw = scale_features(prompt.x, jnp.eye(len(r)))
    shares = jnp.array([0.0, *config.shares, 1.0])
    rows = []
    for count in config.heads:
        group = np.zeros((config.d, config.d))
        group[:count] = coordinate_groups(config.d, count)  # features that heads lack are 0
        weighed = scale_features(prompt.x, group * r[None])

        def mix(share, weighed=weighed):
            parts = [jnp.sqrt(share) * raw, jnp.sqrt(1 - share) * weighed]
            return predict(prompt, jnp.concatenate(parts), jnp.array(config.step_sizes), counts)

        rows.append(jax.lax.map(mix, shares))
    sizes = jnp.array(config.sizes_for_all)
    for_all = predict(prompt, jnp.diag(r), sizes, counts, relative=False)

    def square(answers):
        most = 2 * jnp.abs(prompt.y).max()
        clipped = clip_predictions(jnp.where(jnp.isfinite(answers), answers, most), prompt)
        return (clipped - prompt.y_query) ** 2

    return square(jnp.stack(rows)), square(for_all)


@partial(jax.jit, static_argnums=1)
def measure_run(key, config):
    noise_std, weight_std = config.noise_var**0.5, config.sparsity**-0.5
    task = LinearTask(config.n, config.d, config.sparsity, noise_std, weight_std=weight_std)
    prompts = sample_batch(key, task, 2 * config.prompts)
    errors = jax.lax.map(partial(measure_prompt, config), prompts, batch_size=64)
    halves = [each.reshape(2, config.prompts, *each.shape[1:]).mean(1) for each in errors]

    def ridge_error(prompt):
        weights = estimators.ridge(prompt, config.noise_var * config.d / config.n)
        return (clip_predictions(weights @ prompt.x_query, prompt) - prompt.y_query) ** 2

    judged = jax.tree.map(lambda leaf: leaf[config.prompts :], prompts)
    return {"heads": halves[0], "for_all": halves[1], "ridge": jax.vmap(ridge_error)(judged).mean()}


def choose(risks):  # [R, 2, ..., P] -> [R, ...]
    """Return the second halves at the parameters that are best on the mean of all first halves."""
    best = risks[:, 0].mean(0).argmin(-1)[None, ..., None]
    return np.take_along_axis(risks[:, 1], best, axis=-1)[..., 0]


def compute(config, models):
    keys = jax.random.split(jax.random.key(config.seed), config.runs)
    rows = compute_each("runs", range(config.runs), lambda run: measure_run(keys[run], config))
    stacked = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    heads, for_all = stacked["heads"], stacked["for_all"]  # [R, 2, H, shares, E, T]
    flat = heads.reshape(*heads.shape[:4], -1)
    beside = flat[:, :, :, 1:-1].reshape(*flat.shape[:3], -1)
    kinds = [choose(flat[:, :, :, 0]), choose(beside), choose(flat[:, :, :, -1])]
    steps = [choose(flat[:, :, -1, 0]), choose(for_all.reshape(*for_all.shape[:2], -1))]
    by_count = [choose(np.moveaxis(heads[:, :, -1, share], -1, 2)) for share in (0, -1)]
    data = {
        "risk": (("features", "run", "heads"), np.stack(kinds)),
        "by_step": (("step", "run"), np.stack(steps)),
        "by_count": (("path", "run", "count"), np.stack(by_count)),
        "ridge": ("run", stacked["ridge"]),
    }
    coordinates = {"features": list(FEATURES), "heads": list(config.heads), "step": list(STEPS)}
    coordinates |= {"path": ["preprocessed", "raw"], "count": 2 ** np.arange(config.doublings + 1)}
    return xr.Dataset(data, coordinates)


def fewer_ratio(result, heads, features="alone"):  # -> [R]
    """Return the risk with H heads over that with d heads."""
    if heads not in result["heads"]:
        return None
    risk = result["risk"].sel(features=features)
    return (risk.sel(heads=heads) / risk.isel(heads=-1)).values


def fewer_heads(result):  # -> [R]
    """Return the geometric mean over H < d of the risk with H heads over that with d."""
    risk = np.log(result["risk"].sel(features="alone").transpose("run", "heads").values)
    return np.exp((risk[:, :-1] - risk[:, -1:]).mean(1))


def ridge_ratio(result, step):  # -> [R]
    return (result["by_step"].sel(step=step) / result["ridge"]).values


def raw_ratio(result):  # -> [R]
    risk = result["risk"].isel(heads=-1)
    return (risk.sel(features="alone") / risk.sel(features="raw")).values


FULL = TIERS["full"]
FEWER = {"heads": FULL.heads[:-1]}
OVER_D = f"the risk with fewer heads over that with d = {FULL.d}, each at its best step"
PAIRED = "none: the ratio is paired, and 1 without a difference"
ratio = partial(Claim, statistic="ratio", null=PAIRED)
CLAIMS = (
    ratio("fewer_heads", "A4, Heads needed", "Descent on what fewer than d heads write has a "
          "higher risk than descent on what d heads write",
          f"{OVER_D}, the geometric mean over numbers of heads", fewer_heads, at_least=1.0),
    ratio("fewer_heads_at", "A4, Heads needed", "With H = {heads} heads in the first layer "
          f"descent on what they write has a higher risk than with H = {FULL.d}", OVER_D,
          fewer_ratio, at_least=1.0, over=FEWER),
    ratio("beside_raw", "A4, Heads needed", "With H = {heads} heads in the first layer descent on "
          f"what they write, beside the raw covariates, has a higher risk than with H = {FULL.d}",
          OVER_D, partial(fewer_ratio, features="beside raw"), at_least=1.0, over=FEWER),
    ratio("over_ridge", "A4, Risk, against descent and ridge", "With {step}, descent on all "
          "preprocessed covariates has a lower risk than ridge regression",
          "the risk of preprocessed descent over that of ridge", ridge_ratio, at_most=1.0,
          over={"step": STEPS}),
    ratio("over_raw", "A4, Risk, against descent and ridge", "Descent on all preprocessed "
          "covariates has a lower risk than descent on the raw covariates",
          "the risk of preprocessed descent over that of raw descent, each at its best step",
          raw_ratio, at_most=1.0),
)  # fmt: skip

LOOKS = {"preprocessed": plotting.METHOD["preprocessed descent"], "raw": plotting.METHOD["descent"]}


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.6, (1, 2))
    for path, look in LOOKS.items():
        relative = result["by_count"].sel(path=path) / result["ridge"]
        label = {"preprocessed": f"on {config.d} preprocessed", "raw": "on raw"}[path]
        plotting.mean_points(left, result["count"], relative, label, "ratio", lw=0.9, **look)
    ticks = [4**k for k in range(config.doublings // 2 + 1)]
    plotting.log_axes(left, x=True, ticks=ticks)
    left.set(xlabel="steps", ylabel="risk / ridge's", title="Descent on covariates")
    for features, face in zip(FEATURES[:2], (LOOKS["preprocessed"]["color"], "white"), strict=True):
        relative = result["risk"].sel(features=features) / result["ridge"]
        look = LOOKS["preprocessed"] | dict(mfc=face, lw=0.9, marker="o", ms=4)
        label = {"alone": "features alone", "beside raw": "beside raw covariates"}[features]
        look |= dict(ls="--") if features == "beside raw" else {}
        plotting.mean_points(right, config.heads, relative, label, "ratio", **look)
    right.set(xlabel="heads of the first layer", title="Fewer heads", xticks=config.heads)
    for ax in (left, right):
        ax.axhline(1, color=plotting.BLACK, lw=0.8)
        plotting.log_axes(ax, y=True, y_ticks=(0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10))
        ax.legend()
    means = {step: geometric_mean(ridge_ratio(result, step)) for step in STEPS}
    fewer = geometric_mean(fewer_heads(result))
    return figure, (
        f"Descent on what fewer than {config.d} heads write has {fewer:.3g} times the risk of "
        f"descent on what {config.d} heads write, in the geometric mean over numbers of heads. On "
        f"all preprocessed covariates it has {means[STEPS[0]]:.3g} times ridge's risk with a step "
        f"size for each prompt, and {means[STEPS[1]]:.3g} times with one for all. The line is "
        "ridge regression; points are geometric means of runs."
    )


if __name__ == "__main__":
    main(__file__)
