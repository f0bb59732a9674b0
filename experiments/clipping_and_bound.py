"""As a layer is clipped, does A2's bound fall, and the risk with it?"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments import style
from experiments.configs.clipping_and_bound import CLAIMS, TIERS, Config
from experiments.parts import stacks
from experiments.parts.update_norms import walk
from lsa_lab import results
from lsa_lab.analyses import clipping
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.claims import about_the_mean
from lsa_lab.models import constructions
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory.generalization import measured_gap, trajectory_bound

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

MODULES = ("w_kq", "w_pv")
MEASURED = {
    "bound": "Theorem 2",
    "sum": "Σ|G|²",
    "upper": "Σ UB",
    "risk": "risk",
    "gap": "gap",
}


def draw(key, config):  # -> x [B, n + m, d], y [B, n + m]
    """Noisy pairs of a task of its own for each prompt: demonstrations, then the population."""
    task = LinearTask(config.n + config.population, config.d, noise_std=config.noise_std)
    many = jax.vmap(partial(sample, task=task))(jax.random.split(key, config.prompts))
    return many.x, many.y


def measure(params, x, y, config):  # -> [5], as MEASURED
    """Theorem 2's value over the prompts, medians of Σ|G|² and of Σ UB, mean clipped losses."""
    b, n = config.largest_loss, config.n
    identity = jnp.broadcast_to(jnp.eye(config.d + 1), params.w_kq[:, 0].shape)
    factored = jnp.stack([params.w_pv[:, 0], identity, params.w_kq[:, 0]])

    def one(x, y):
        prompt = Prompt(x[:n], y[:n], x[-1], y[-1])
        found = trajectory(params, prompt)
        losses = (y + x @ found.maps[-1, -1, :-1]) ** 2
        gap = measured_gap(losses[n:], losses[:n], 0.0, b)
        return found.updates, gap, walk(factored, prompt)[1].sum()

    updates, gap, upper = jax.vmap(one)(x, y)
    bound = trajectory_bound(updates, config.update_noise, b / 2, n)
    total = jnp.median((updates**2).sum((1, 2, 3)))
    return jnp.stack([bound, total, jnp.median(upper), gap.population.mean(), gap.gap.mean()])


def edits(params, config, rates):  # one model -> masks, each [C, ...]
    """Every rate for each layer of each matrix."""
    pieces = clipping.by_singular_value(params, MODULES)
    grid = [(t, name, rate) for name in MODULES for t in range(config.depth) for rate in rates]
    masks = [clipping.keep_masks(params, pieces, clipping.Edit(*cell)) for cell in grid]
    return jax.tree.map(lambda *each: jnp.asarray(np.stack(each)), *masks)


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    stack = replace(stacks.stack_of("linear", config), noise_std=config.noise_std, clip=config.clip)
    run = stacks.trained(stack, config.runs, config.training_seed, "linear stacks", progress)
    whole = np.array([one.kind != "diverged" for one in run.status])
    step = 1 / (1 + (1 + config.d + config.noise_std**2) / config.n)  # the best of one layer
    descent = constructions.gradient_descent(jnp.full(config.depth, step), config.d)

    def together(ours, one):
        ours = jnp.asarray(ours, float)[whole]
        return jnp.concatenate([ours, jnp.broadcast_to(one, (config.constructed, *one.shape))])

    params = jax.tree.map(together, run.params, descent)
    rates = (*clipping.every_rate(config.d + 1), clipping.DROP)
    table = edits(descent, config, rates)

    @jax.jit
    def everything(key, params, pieces):  # [R, C, 5]
        keys = jax.random.split(key, len(params.w_kq))

        def one(row):
            params, pieces, key = row
            x, y = draw(key, config)
            cut = lambda keep: measure(clipping.rebuild(params, pieces, keep), x, y, config)  # noqa: E731
            return jax.lax.map(cut, table)

        return jax.lax.map(one, (params, pieces, keys))

    pieces = clipping.by_singular_value(params, MODULES)
    found = np.asarray(everything(jax.random.key(config.seed), params, pieces))
    found = found.reshape(len(found), len(MODULES), config.depth, len(rates), len(MEASURED))
    count, data = int(whole.sum()), {}
    axes = ("module", "layer", "rank")
    for i, name in enumerate(MEASURED):
        data[name] = (("run", *axes), found[:count, ..., i])
        data[f"descent_{name}"] = (("prompts", *axes), found[count:, ..., i])
    data["status"] = (("start",), [str(one) for one in run.status])
    return xr.Dataset(
        data,
        {
            "module": list(MODULES),
            "layer": np.arange(1, config.depth + 1),
            "rank": np.arange(config.d + 1, -1, -1),
        },
    )


def agreement(first, second):  # two of (run, module, layer, rank) -> [R, M, L]
    """Spearman's correlation over the ranks kept, 0 where either does not change."""
    from scipy.stats import spearmanr

    def of(*pair):
        pair = [np.array([float(f"{value:.9e}") for value in one]) for one in pair]
        return 0.0 if any(np.ptp(one) == 0 for one in pair) else spearmanr(*pair).statistic

    return np.vectorize(of, signature="(q),(q)->()")(first.values, second.values)


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 5.2, (2, 3))
    ranks, lost = dataset["rank"].values, 0
    last = settings.depth
    columns = (("trained, layer 1", "", 1), (f"trained, layer {last}", "", last))
    columns = (*columns, ("descent, layer 1", "descent_", 1))
    for i, (text, prefix, layer) in enumerate(columns):
        for j, module in enumerate(MODULES):
            ax = axes[3 * j + i]
            for k, (name, label) in enumerate(MEASURED.items()):
                values = dataset[prefix + name].sel(module=module, layer=layer).values
                values = np.where(values > 0, values, np.nan)
                looks = (label, style.COLOURS[k], style.MARKERS[k])
                lost += style.band(ax, ranks + 0.06 * (k - 2), values / values[:, :1], *looks)
            ax.axhline(1, color="grey", lw=0.8, ls="--")
            style.log_axes(ax, y=ax.get_ylim()[1] > 10)
            ax.set(xlabel="rank kept (0: dropped)", ylabel="of the unclipped", xticks=ranks)
            ax.invert_xaxis()
            ax.set_title(f"{module}, {text}")
    axes[5].legend(loc="upper left")
    risk, gap = (agreement(dataset.bound, dataset[name]).mean((0, 1)) for name in ("risk", "gap"))
    left_out = sum("diverged" in str(one) for one in dataset.status.values)
    style.caption(
        drawn,
        f"Clipping more, from left to right. The rank correlation of the bound with the risk is "
        f"{risk[0]:.2f} where trained stacks are clipped in layer 1 and {risk[-1]:.2f} in layer "
        f"{last}; with the generalisation gap {gap[0]:.2f} and {gap[-1]:.2f}. Losses are clipped "
        f"at {settings.largest_loss:g}; C = cI with c = {settings.update_noise:g}, which is free: "
        f"implicit descent has no noise of its own, n = "
        f"{settings.n} is small and the weights come from pretraining. Median of "
        f"{dataset.sizes['run']} trained stacks ({left_out} diverged and left out) or "
        f"{dataset.sizes['prompts']} sets of prompts and the middle 80 %; {lost} left out as not "
        f"positive.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
    bound, risk, gap, total = (dataset[name] for name in ("bound", "risk", "gap", "sum"))
    cells = ("module", "layer", "rank")
    clipped = slice(1, None)

    def change(values):
        return (values / values.isel(rank=0) - 1).isel(rank=clipped)

    lower = change(bound) < -settings.exact
    best = bound.argmin("rank")
    at_best = np.log(risk.isel(rank=best) / risk.isel(rank=0))
    descent = [change(dataset[f"descent_{name}"]) for name in ("bound", "sum", "risk")]
    largest = [abs(one.sel(module="w_pv").isel(rank=slice(None, -1))).max() for one in descent]
    keys = [dataset[f"descent_{name}"].sel(module="w_kq") for name in ("bound", "risk")]
    found = {
        "bound_falls": (change(bound) > settings.exact).mean(cells),
        "risk_falls_with_it": (lower & (change(risk) < 0)).sum(cells) / lower.sum(cells),
        "ranks_risks": agreement(bound, risk).mean((1, 2)),
        "ranks_gaps": agreement(bound, gap).mean((1, 2)),
        "sum_ranks_gaps": agreement(total, gap).mean((1, 2)),
        "least_when_dropped": (best < len(dataset["rank"]) - 1).mean(cells[:2]),
        "gap_least_when_dropped": (gap.isel(rank=-1) - gap.isel(rank=0)).mean(cells[:2]),
        "chosen_by_bound": at_best.mean(cells[:2]),
        "descent_values": np.full(2, max(map(float, largest))),  # nothing random
        "descent_bound": agreement(*keys).mean(1),
    }
    made = []
    for name, (source, statement, measured, side, limit) in CLAIMS.items():
        limit = getattr(settings, limit) if isinstance(limit, str) else limit
        criterion = f"{measured} {'<=' if side == 'at_most' else '>='} {limit:g}"
        row = (f"clipping_and_bound.{name}", source, statement, criterion, np.asarray(found[name]))
        made.append(about_the_mean(*row, **{side: limit}))
    return made
