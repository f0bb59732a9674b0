"""How many prompts and tasks teach one layer to answer new tasks (2405.11751)?

One layer is fitted by least squares to N = tau d² prompts, whose tasks are drawn from k = kappa d
fixed ones; each prompt has n = alpha d demonstrations. The layer reads h = (d/n) Σ y_i x_i and
s = (1/n) Σ y_i² of its prompt and predicts x_query · (Γ h + γ s). x is N(0, I/d), w is N(0, I) and
y = w·x + ε. As d grows its risks on new tasks and on pretraining tasks have closed forms, with a
peak at tau = 1 (docs/theory, "Pretraining on finite data").
"""

import itertools
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from lsa_lab.lab import Claim, compute_each, main, plotting
from lsa_lab.theory.asymptotics import ridgeless_risk

RISKS = ("new tasks", "pretraining tasks")
LINE = np.geomspace(0.1, 10, 201)  # of tau and of kappa, for the curves


@dataclass(frozen=True)
class Config:
    """Sizes are relative to d; the closed form is compared with an extrapolation of two d."""

    sizes: tuple[int, int] = (20, 40)  # values of d, growing
    alphas: tuple[float, ...] = (1.0, 10.0)  # demonstrations of a prompt / d, growing
    kappas: tuple[float, ...] = (0.5, 1.5, 8.0)  # tasks / d, growing
    taus: tuple[float, ...] = (0.2, 0.4, 0.8, 1.1, 1.6, 2.5, 5.0)  # prompts / d², growing
    noise_var: float = 0.15  # of a label, relative to its signal
    runs: int = 48  # fits at the larger d; at the smaller d a run averages (larger / smaller)² fits
    seed: int = 1004


TIERS = {
    "smoke": Config((4, 8), (10.0,), (0.5, 8.0), (0.2, 0.4, 1.1, 2.5, 5.0), runs=3, seed=1),
    "quick": Config(sizes=(10, 20), runs=32, seed=2),
    "full": Config(),
}


@partial(jax.jit, static_argnames=("counts", "most_tasks", "d"))
def fit_and_measure(key, n, k, noise_var, *, counts, most_tasks, d):  # -> [counts, 2]
    """Return E (y - ŷ)² on new and on pretraining tasks, after each number of prompts.

    The first ``k`` of ``most_tasks`` tasks are used, scaled together until the mean of |w|² is d:
    its fluctuation would be most of the spread of the risk, and vanishes as d grows.
    """
    key_tasks, key_prompts = jax.random.split(key)
    tasks = jax.random.normal(key_tasks, (most_tasks, d))
    used = jnp.arange(most_tasks) < k
    mean_square = jnp.average(jnp.sum(tasks**2, axis=1), weights=used.astype(float))
    tasks = tasks / jnp.sqrt(mean_square / d)
    prompts = draw_features(key_prompts, tasks, n, k, noise_var, counts[-1])
    layers = fit_layers(prompts, counts)
    return jnp.stack([layer_risks(layer, tasks, used, n, noise_var) for layer in layers])


def draw_features(key, tasks, n, k, noise_var, count):  # -> [N, d], [N, d+1], [N]
    """Draw x_query, (h, s) and y_query of N prompts, each on one of the first k tasks."""
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
    orthogonal = normal[:, 1 : d + 1]
    orthogonal = orthogonal - jnp.sum(orthogonal * along, axis=1, keepdims=True) * along
    product = (first * label)[:, None] * along + jnp.sqrt(square)[:, None] * orthogonal  # √d Xᵀy
    h = jnp.sqrt(d) / n * product
    x_query = normal[:, d + 1 : 2 * d + 1] / jnp.sqrt(d)
    y_query = jnp.sum(x_query * w, axis=1) + noise * normal[:, -1]
    return x_query, jnp.concatenate([h, square[:, None] / n], axis=1), y_query


def fit_layers(prompts, counts):  # -> a list of [d, d+1]
    """Return (Γ, γ) of least squares over the first prompts of each count."""
    x_query, read, y_query = prompts
    size = x_query.shape[1] * read.shape[1]
    gram, target, start, layers = jnp.zeros((size, size)), jnp.zeros(size), 0, []
    for count in counts:
        if count < size:  # the shortest layer without an error
            x, h, y = (rows[:count] for rows in prompts)
            weights = jax.scipy.linalg.solve((x @ x.T) * (h @ h.T), y, assume_a="pos")
            layers.append(jnp.einsum("b,bi,bj->ij", weights, x, h))
            continue
        new = slice(start, count)
        rows = (x_query[new, :, None] * read[new, None]).reshape(-1, size)
        gram, target, start = gram + rows.T @ rows, target + rows.T @ y_query[new], count
        layer = jax.scipy.linalg.solve(gram, target, assume_a="pos")
        layers.append(layer.reshape(x_query.shape[1], -1))
    return layers


def layer_risks(layer, tasks, used, n, noise_var):  # -> [2]
    """Return the risks of a layer on new tasks and on the used tasks, exactly at this n and d.

    Given w, with v = |w|²/d + ρ: E h = w, E h hᵀ = (1 + 1/n) w wᵀ + (d v / n) I, E s = v,
    E s h = (1 + 2/n) v w, E s² = (1 + 2/n) v².
    """
    d = tasks.shape[1]
    matrix, last = layer[:, :-1], layer[:, -1]

    def risk(trace, square, v, v_square, cross, cross_v, size):
        """Return E |w - Γh - γs|² / d + ρ; every argument is an expectation over tasks."""
        quadratic = (1 + 1 / n) * square + d * v / n * jnp.sum(matrix**2)
        offset = -2 * cross + (1 + 2 / n) * (2 * cross_v + v_square * jnp.sum(last**2))
        return noise_var + (size - 2 * trace + quadratic + offset) / d

    v, new_v_square = 1 + noise_var, (1 + 2 / d) + 2 * noise_var + noise_var**2
    new = risk(jnp.trace(matrix), jnp.sum(matrix**2), v, new_v_square, 0.0, 0.0, d)
    mean = partial(jnp.average, weights=used.astype(float))
    images, sizes = tasks @ matrix.T, jnp.sum(tasks**2, axis=1)
    v = sizes / d + noise_var
    aligned, squares = jnp.sum(tasks * images, axis=1), jnp.sum(images**2, axis=1)
    cross = v * (tasks @ last), v * (images @ last)
    old = risk(*map(mean, (aligned, squares, v, v**2, *cross, sizes)))
    return jnp.stack([new, old])


def simulate(config, item):  # -> [R, taus, 2]
    index, (d, alpha, kappa) = item
    n, k, repeats = round(alpha * d), round(kappa * d), (config.sizes[-1] // d) ** 2
    counts = tuple(round(tau * d * d) for tau in config.taus)
    shapes = {"counts": counts, "most_tasks": round(config.kappas[-1] * d), "d": d}
    key = jax.random.fold_in(jax.random.key(config.seed), index)
    keys = jax.random.split(key, config.runs * repeats)
    # One fit after another: a fit at d = 64 takes a gigabyte.
    risks = [fit_and_measure(key, float(n), k, config.noise_var, **shapes) for key in keys]
    return np.reshape(risks, (config.runs, repeats, len(counts), len(RISKS))).mean(1)


def closed_forms(config, kappas, taus):  # -> [alphas, kappas, taus, 2]
    alphas = np.asarray(config.alphas)[:, None, None]
    grid = np.asarray(kappas)[None, :, None], np.asarray(taus)[None, None]
    return np.stack(ridgeless_risk(alphas, *grid, config.noise_var), axis=-1)


def compute(config, models):
    grid = config.sizes, config.alphas, config.kappas
    places = list(enumerate(itertools.product(*grid)))
    risks = np.stack(compute_each("fits", places, partial(simulate, config)))
    risks = risks.reshape(*map(len, grid), *risks.shape[1:])
    at_places = closed_forms(config, config.kappas, config.taus)
    over_tau = closed_forms(config, config.kappas, LINE)
    over_kappa = closed_forms(config, LINE, config.taus[-1:])[:, :, 0]
    data = {
        "measured": (("d", "alpha", "kappa", "run", "tau", "risk"), risks),
        "closed_form": (("alpha", "kappa", "tau", "risk"), at_places),
        "over_tau": (("alpha", "kappa", "line", "risk"), over_tau),
        "over_kappa": (("alpha", "line", "risk"), over_kappa),
    }
    names = {"d": list(config.sizes), "alpha": list(config.alphas), "kappa": list(config.kappas)}
    return xr.Dataset(data, names | {"tau": list(config.taus), "risk": list(RISKS), "line": LINE})


def limit(result, **place):  # -> [R]
    """Return the risk over its closed form at 1/d = 0: its log is a line through both 1/d."""
    if any(value not in result[axis] for axis, value in place.items()):
        return None
    coarse, fine = result["d"].values
    logs = np.log(result["measured"] / result["closed_form"]).sel(place).transpose("d", "run")
    return np.exp((fine * logs.values[1] - coarse * logs.values[0]) / (fine - coarse))


def peak(result, alpha, kappa):  # -> [R]
    """Return the risk on new tasks just above tau = 1 over the larger of those on either side."""
    if alpha not in result["alpha"] or kappa not in result["kappa"]:
        return None
    new = result["measured"].isel(d=-1).sel(alpha=alpha, kappa=kappa, risk="new tasks")
    above = int(np.argmax(result["tau"].values > 1))
    return (new.isel(tau=above) / np.maximum(new.isel(tau=1), new.isel(tau=-2))).values


def gap(result, kappa):  # -> [R]
    """Return the risk on new tasks over that on pretraining tasks at the kappa of an index."""
    risks = result["measured"].isel(d=-1, alpha=-1, tau=-1, kappa=kappa)
    return (risks.sel(risk="new tasks") / risks.sel(risk="pretraining tasks")).values


FULL = TIERS["full"]
BELOW, ABOVE = FULL.taus[1], FULL.taus[-2]  # prompts / d² on either side of the peak
GAP = "the risk on new tasks over that on pretraining tasks, at the largest alpha, tau and d"
ratio = partial(Claim, source="Lu et al. 2405.11751", statistic="ratio")
CLAIMS = (
    ratio("closed_form", statement="The closed form is the limit of the risk on {risk} as d grows, "
          "at alpha = {alpha}, kappa = {kappa}, tau = {tau}",
          quantity="the risk over the closed form, its log extrapolated linearly in 1/d to 1/d = 0",
          sample=limit, at_least=1 / 1.1, at_most=1.1, simultaneous=True,
          over={"risk": RISKS, "alpha": FULL.alphas, "kappa": FULL.kappas, "tau": (BELOW, ABOVE)},
          null="none: the closed form has no free parameter"),
    ratio("peak", statement="The risk on new tasks has a peak where prompts are as many as entries "
          "of the layer, at alpha = {alpha}, kappa = {kappa}", quantity="the risk on new tasks "
          f"just above tau = 1 over the larger of the risks at tau = {BELOW:g} and tau = "
          f"{ABOVE:g}, at the larger d", sample=peak, at_least=1.1, simultaneous=True,
          over={"alpha": FULL.alphas, "kappa": FULL.kappas}, null="none: without a peak the ratio "
          "is at most 1"),
    ratio("memorised", statement="With fewer tasks than dimensions a layer memorises these tasks "
          "and fails on new ones", quantity=f"{GAP}, kappa = {FULL.kappas[0]:g}",
          sample=partial(gap, kappa=0), at_least=1.1, null="learned"),
    ratio("learned", statement="With many more tasks than dimensions a layer answers new tasks as "
          "well as those of the pretraining",
          quantity=f"{GAP}, kappa = {FULL.kappas[-1]:g}", sample=partial(gap, kappa=-1),
          at_most=1.1, null="none: this claim is the null of another claim"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.6, (1, 2))
    largest = result.isel(d=-1, alpha=-1)
    new = largest.sel(risk="new tasks")
    looks = zip(new["kappa"].values[[0, -1]], ("0.5", plotting.BLACK), "^D", strict=True)
    for kappa, color, marker in looks:
        risks = new.sel(kappa=kappa)
        plotting.line(left, risks["line"], risks["over_tau"], f"{kappa:g} d tasks", color)
        look = dict(color=color, fmt=marker, mfc="white")
        plotting.mean_points(left, risks["tau"], risks["measured"], **look)
    plotting.log_axes(left, x=True, y=True, ticks=(0.1, 0.25, 0.5, 1, 2, 4, 10))
    left.set(xlabel="prompts N / d²", ylabel="risk on new tasks", ylim=(None, 50))
    left.set_title("New tasks by number of prompts")
    left.legend()
    looks = zip(largest["risk"].values, plotting.COLOURS[3:], "os", strict=False)
    for name, color, marker in looks:
        risks = largest.sel(risk=name)
        plotting.line(right, risks["line"], risks["over_kappa"], name, color)
        points = risks["measured"].isel(tau=-1)
        plotting.mean_points(right, risks["kappa"], points, color=color, fmt=marker, mfc="white")
    plotting.log_axes(right, x=True, y=True, ticks=(0.1, 0.5, 1, 2, 4, 10))
    right.set_yticks((0.25, 0.5, 1, 2), ("0.25", "0.5", "1", "2"))
    right.set(xlabel="tasks k / d", ylabel="risk", title="Risks by number of tasks")
    right.legend()
    peaks = [peak(result, config.alphas[-1], kappa) for kappa in config.kappas]
    least, few, many = (
        np.exp(np.log(values).mean(-1)).min() for values in (peaks, gap(result, 0), gap(result, -1))
    )
    return figure, (
        f"Just above N = d² prompts the risk on new tasks is at least {least:.2g} times that at "
        f"{config.taus[1]:g} d² or {config.taus[-2]:g} d² prompts. With {config.kappas[0]:g} d "
        f"tasks the risk on new tasks is {few:.2g} times that on pretraining tasks, with "
        f"{config.kappas[-1]:g} d tasks {many:.3g} times. Lines are the closed form, points means "
        f"at d = {config.sizes[-1]}."
    )


if __name__ == "__main__":
    main(__file__)
