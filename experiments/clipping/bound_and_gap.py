"""Does A2's bound on the generalisation gap say something, and does truncation lower it?

The gap is the risk on fresh pairs less that on the demonstrations, with squared errors clipped to
[0, b]. A2 bounds it by a sum over layers of log(1 + E|G_t|²/(D c)), G_t the update of a layer and c
a variance of noise in updates that the theorem adds (Theorem 2). First, stacks that descend, with
the best step size of a single step: c is chosen on other tasks, and what the noise changes in both
risks is added to the bound. Then trained linear attention: each matrix is truncated to every rank,
and moved at random as far. A model that is worse than the answer 0 is left out.
"""

import itertools
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.stats import rankdata

from experiments.clipping import clipped
from experiments.models import tasks
from experiments.models.model import prepare_prompt
from experiments.models.named import choose_models
from lsa_lab.analyses import clipping
from lsa_lab.analyses.implicit_gd import trajectory
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.models import constructions
from lsa_lab.tasks.linear import LinearTask, sample, sample_weights
from lsa_lab.theory.generalization import measured_gap, trajectory_bound

MODEL = "linear attention"
GRID = ("noise", "shots", "depth")
MODULES = ("w_kq", "w_pv")
CELLS = ("module", "layer", "rank")
EXACT = 1e-9  # relative change that is rounding
EDITS = ("truncation", "random edit")


@dataclass(frozen=True)
class Config:
    small: bool = False  # tiny trained models, for tests
    d: int = 5  # covariates of stacks that descend
    depths: tuple[int, ...] = (1, 2, 3, 4)  # their steps, one a layer
    shots: tuple[int, ...] = (10, 20, 40, 80)  # demonstrations
    noises: tuple[float, ...] = (0.0, 0.5, 1.0)  # standard deviation of a label, w being N(0, I)
    update_noises: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)
    largest_loss: float = 16.0  # b
    tasks: int = 32
    prompts: int = 64  # of each task
    population: int = 128  # fresh pairs for each prompt
    edited_prompts: int = 512  # of each trained model
    edited_population: int = 64  # fresh pairs for each of these
    worst: float = 1.0  # a model enters below this multiple of the risk of the answer 0
    seed: int = 1421

    @property
    def models(self):
        return choose_models((MODEL,), small=self.small)


SMALL = dict(d=2, depths=(1, 2), shots=(4, 8), noises=(0.5, 1.0), update_noises=(0.01, 1.0))
SMALL |= dict(tasks=3, prompts=4, population=8)
TIERS = {
    "smoke": Config(small=True, edited_prompts=4, edited_population=4, worst=1e9, **SMALL, seed=1),
    "quick": Config(tasks=16, prompts=16, population=64, edited_prompts=64, seed=2),
    "full": Config(),
}


def draw_pairs(key, config):  # -> [G, B, N + m, e], noise [G, B, N + m]
    """Draw N demonstrations and m others of a task w ~ N(0, I) for each group, and their noise."""
    task = LinearTask(max(config.shots) + config.population, config.d)
    *keys, key_noise = jax.random.split(key, 3)

    def draw_group(row):
        key_weights, key = row
        same = task.replace(prior_mean=sample_weights(key_weights, task), weight_std=0.0)
        return jax.vmap(partial(sample, task=same))(jax.random.split(key, config.prompts))

    pairs = jax.lax.map(draw_group, tuple(jax.random.split(key, config.tasks) for key in keys))
    rows = jnp.concatenate([pairs.x, pairs.y[..., None]], axis=-1)
    return rows, jax.random.normal(key_noise, pairs.y.shape)


def descend(params, second_moment, noise):  # [L, e, e] -> [e, e], [L, e, e]
    """Return W_L and the G_t of W_t = W_{t-1} + G_t(W_{t-1}) + noise_t (A2, Eq. 4)."""
    w, updates = jnp.eye(len(second_moment)), []
    for w_kq, w_pv, noise_t in zip(params.w_kq[:, 0], params.w_pv[:, 0], noise, strict=True):
        updates.append(w_pv @ w @ second_moment @ w.T @ w_kq @ w)
        w = w + updates[-1] + noise_t
    return w, jnp.stack(updates)


def measure_prompt(rows, normal, n, step_sizes, config):  # [N + m, e] -> [1 + c, 2], [.., L, e, e]
    """Return the risks on population and demonstrations, and updates, without noise and by c."""
    largest, b = max(config.shots), config.largest_loss
    shares = jnp.where(jnp.arange(largest, dtype=float) < n, 1 / n, 0.0)  # of the first n
    moment = (rows[:largest].T * shares[None]) @ rows[:largest]
    params = constructions.gradient_descent(step_sizes, config.d)
    normal = jnp.where((step_sizes > 0)[:, None, None], normal, 0.0)  # idle layers have no noise

    def add_noise(c):
        w, updates = descend(params, moment, c**0.5 * normal)
        losses = jnp.minimum((rows @ w[-1].at[-1].set(1.0)) ** 2, b)  # ŷ = -W_{e,1..d} x
        return jnp.stack([losses[largest:].mean(), shares @ losses[:largest]]), updates

    return jax.vmap(add_noise)(jnp.asarray((0.0, *config.update_noises)))


def measure_place(place, rows, eps, normal, config):  # -> {name: [G] or [G, c]}
    noise, n, depth = place
    # The step that is best if there is one: the others are idle layers, with steps of size 0.
    step = n / (n + config.d + 1 + noise**2)
    steps = jnp.where(jnp.arange(max(config.depths), dtype=float) < depth, step, 0.0)
    levels, subgaussian = jnp.asarray(config.update_noises), config.largest_loss / 2

    def measure_task(row):
        rows, eps, normal = row
        rows = rows.at[..., -1].add(noise * eps)
        risks, updates = jax.vmap(measure_prompt, (0, 0, None, None, None))(
            rows, normal, n, steps, config
        )
        risks, updates = risks.mean(0), jnp.moveaxis(updates, 1, 0)[1:]
        bound = jax.vmap(partial(trajectory_bound, subgaussian=subgaussian, n=n))
        return {
            "gap": risks[0, 0] - risks[0, 1],
            "bound": bound(updates, levels),
            "noise_cost": jnp.abs(risks[1:] - risks[:1]).sum(1),
        }

    return jax.lax.map(measure_task, (rows, eps, normal), batch_size=8)  # some at a time: memory


def measure_grid(config):  # -> Dataset
    grid = dict(zip(GRID, (config.noises, config.shots, config.depths), strict=True))
    places = jnp.asarray([*itertools.product(*grid.values())], float)

    @jax.jit
    def run(key):
        key, key_normal = jax.random.split(key)
        rows, eps = draw_pairs(key, config)
        shape = (*rows.shape[:2], max(config.depths), config.d + 1, config.d + 1)
        normal = jax.random.normal(key_normal, shape)
        data = dict(rows=rows, eps=eps, normal=normal, config=config)
        return jax.lax.map(partial(measure_place, **data), tuple(places.T))

    rows = jax.device_get(run(jax.random.key(config.seed)))
    dims, shape = (*GRID, "task", "update_noise"), [*map(len, grid.values())]
    data = {n: (dims[: x.ndim + 2], x.reshape(*shape, *x.shape[1:])) for n, x in rows.items()}
    names = {name: list(x) for name, x in grid.items()}
    names["update_noise"] = list(config.update_noises)
    return xr.Dataset(data | {"largest_loss": config.largest_loss}, names)


def measure_stack(spec, params, pairs, config):  # Prompt [B] of n + m pairs
    """Return Theorem 2's value over the prompts [c], the risk [], and Σ_t |G_t|² [B]."""
    b, n = config.largest_loss, max(spec.task.lengths)

    def measure_prompt(pairs):
        prompt = pairs.replace(x=pairs.x[:n], y=pairs.y[:n])
        read, scale = prepare_prompt(spec.architecture, prompt)
        path = trajectory(params, read)
        unit = jnp.linalg.norm(prompt.x) / jnp.linalg.norm(read.x)  # in which x is read
        losses = (pairs.y + scale * (pairs.x / unit) @ path.maps[-1, -1, :-1]) ** 2
        gap = measured_gap(losses[n:], losses[:n], 0.0, b)
        return path.updates, (path.updates**2).sum(), gap.population

    updates, sums, risks = jax.vmap(measure_prompt)(pairs)
    bound = jax.vmap(lambda c: trajectory_bound(updates, c, b / 2, n))
    return bound(jnp.asarray(config.update_noises)), risks.mean(), sums


@partial(jax.jit, static_argnums=(0, 3))
def measure_stacks(spec, params, pairs, config):  # leaves [R, E, ...], Prompt [R, B]
    def measure_run(row):
        return jax.lax.map(lambda one: measure_stack(spec, one, row[1], config), row[0])

    return jax.lax.map(measure_run, (params, pairs))


def rises(after, before):
    """Return 1 where a number rises by more than rounding; numbers that are NaN are refused."""
    change = after / before - 1
    if np.isnan(change).any():
        raise ArithmeticError(f"{int(np.isnan(change).sum())} bounds or norms are NaN")
    return (change > EXACT).astype(np.float32)


def measure_truncations(config, runs):  # -> Dataset
    spec = runs.spec
    params = jax.tree.map(lambda leaf: leaf.astype(float), clipped.load_params(runs))
    count, width, depth = len(params.w_kq), spec.token_width, spec.architecture.depth
    ranks = range(width - 1, 0, -1)
    places = [*itertools.product(MODULES, range(depth), ranks)]
    edits = [clipping.Edit(0, MODULES, 0.0)]  # nothing is cut
    edits += [clipping.Edit(layer, name, 1 - rank / width) for name, layer, rank in places]
    edited = clipped.edit_all(params, edits)
    keys = jax.random.split(jax.random.key(config.seed + 1))
    disturbed = clipped.disturb_all(keys[0], params, edited)
    task = tasks.distribution(spec.task, max(spec.task.lengths) + config.edited_population)
    pairs = tasks.draw_runs(keys[1], task, count, config.edited_prompts)
    measures = [measure_stacks(spec, each, pairs, config) for each in (edited, disturbed)]
    bound, risk, sums = (np.stack(leaves, axis=1) for leaves in zip(*measures, strict=True))
    losses = np.minimum(pairs.y[:, :, max(spec.task.lengths) :] ** 2, config.largest_loss)
    able = risk[:, 0, 0] < config.worst * losses.mean((1, 2))  # of the answer 0
    bound, risk, sums = (values[able] for values in (bound, risk, sums))
    grid, cells = (len(risk), len(EDITS), len(MODULES), depth, len(ranks)), ("run", "edit", *CELLS)
    rise = [rises(values[:, :, 1:], values[:, :, :1]) for values in (bound, sums)]
    data = {
        "bound_rises": ((*cells, "update_noise"), rise[0].reshape(*grid, -1)),
        "sum_rises": (cells, rise[1].mean(-1).reshape(grid)),  # the share of prompts
        "risk_ratio": (cells, (risk[:, :, 1:] / risk[:, :, :1]).reshape(grid)),
        "left_out": spec.training.seeds - able.sum(),
    }
    names = {"edit": list(EDITS), "module": list(MODULES), "rank": list(ranks)}
    names |= {"layer": np.arange(depth) + 1, "update_noise": list(config.update_noises)}
    return xr.Dataset(data, names)


def compute(config, models):
    edits = measure_truncations(config, models[MODEL])
    return xr.DataTree.from_dict({"descent": measure_grid(config), "edits": edits})


def choose_by_others(values):  # [R, ..., c] -> [R, ...]
    """Return each unit's value at the c with the least sum over the other units."""
    chosen = (values.sum(0) - values).argmin(-1)
    return np.take_along_axis(values, chosen[..., None], -1)[..., 0]


def find_best_bounds(descent):  # -> (task, *GRID)
    """Return bounds on the gap without noise, over the largest loss, at the best c.

    A bound is that of the noisy path plus what the noise changes in the two risks.
    """
    total = (descent["bound"] + descent["noise_cost"]).transpose("task", *GRID, "update_noise")
    best = descent["gap"].transpose("task", *GRID).copy(data=choose_by_others(total.values))
    return best / descent["largest_loss"]


def bound_less_gap(result):  # -> [G]
    descent = result["descent"]
    gap = np.abs(descent["gap"]) / descent["largest_loss"]
    return (find_best_bounds(descent) - gap).mean(GRID).values


def best_bound(result, shots):  # -> [G], or None
    if shots not in result["descent"]["shots"]:
        return None
    best = np.log(find_best_bounds(result["descent"]).sel(shots=shots))
    return np.exp(best.mean(("noise", "depth"))).values


def correlate_ranks(left, right):  # [..., K] twice -> [...]
    """Return rank correlations of numbers of nine digits; less is rounding."""
    ranks = (
        rankdata(np.vectorize("{:.9e}".format)(x).astype(float), axis=-1) for x in (left, right)
    )
    left, right = (x - x.mean(-1, keepdims=True) for x in ranks)
    return (left * right).sum(-1) / np.sqrt((left**2).sum(-1) * (right**2).sum(-1))


def rank_gaps(result):  # -> bounds [G], numbers of terms [G]
    """Return rank correlations with the gap at equal n, averaged over n, at the best c."""
    places = {"place": ("noise", "depth")}
    descent = result["descent"].to_dataset().stack(places).transpose("task", "shots", ...)
    gap, depth = descent["gap"].values, descent["depth"].values
    bound = descent["bound"].transpose("task", "shots", "update_noise", "place").values
    bounds = correlate_ranks(bound, gap[:, :, None]).mean(1)
    return -choose_by_others(-bounds), correlate_ranks(depth, gap).mean(1)


def bound_correlation(result, less_counting=False):  # -> [G]
    bounds, counts = rank_gaps(result)
    return bounds - counts if less_counting else bounds


def bounds_that_rise(edits):  # -> (run, edit, *CELLS)
    """Return which bounds rise at the c at which truncations of other runs raise it least often."""
    bounds = edits["bound_rises"].transpose("run", "edit", ..., "update_noise")
    shares = bounds.sel(edit=EDITS[0], drop=True).mean(CELLS)
    chosen = (shares.sum("run") - shares).argmin("update_noise")
    return bounds.isel(update_noise=chosen)


def difference(shares):  # (run, edit) -> [R]
    """Return truncation less random edits."""
    return (shares.sel(edit=EDITS[0]) - shares.sel(edit=EDITS[1])).values


def bound_rises(result, less_random=False):  # -> [R]
    shares = bounds_that_rise(result["edits"]).mean(CELLS)
    return difference(shares) if less_random else shares.sel(edit=EDITS[0]).values


def sum_rises(result, less_random=False):  # -> [R]
    shares = result["edits"]["sum_rises"].mean(CELLS).transpose("run", "edit")
    return difference(shares) if less_random else shares.sel(edit=EDITS[0]).values


def risk_falls(result):  # -> [R]
    """Return shares with a lower risk among truncations with a lower bound, less random edits'."""
    edits = result["edits"]
    lower = bounds_that_rise(edits).sel(edit=EDITS[0], drop=True) == 0
    falls = (lower & (edits["risk_ratio"] < 1)).sum(CELLS) / lower.sum(CELLS).clip(1)
    return difference(falls)


FULL = TIERS["full"]
TRUNCATIONS = "the share of matrices, layers and ranks"
BEST_C = "c is the best on the other {}"
RANDOM = "less the share in which a random edit of the same norm does"
LESS = "none: the difference is paired, and 0 without an effect"
RANKS = "the rank correlation of bound and gap at equal n, averaged over n"
ranks = partial(Claim, source="A2, Remark 4", at_least=0.0, note=BEST_C.format("tasks"))
remark_4 = partial(Claim, source="A2, Remark 4", note=BEST_C.format("trainings"))
remark_6 = partial(Claim, source="A2, Remarks 4 and 6")
CLAIMS = (
    Claim("bound_less_gap", "A2, Theorem 2", "For descent without added noise the bound lies "
          "above the generalisation gap",
          "the bound less |gap|, over the largest loss, averaged over the grid",
          bound_less_gap, at_least=0.0, null="best_bound",
          note=f"{BEST_C.format('tasks')}; what its noise changes in the risks is added"),
    Claim("best_bound", "derived here", "With {shots} demonstrations the bound is below the "
          "largest possible loss, which bounds every gap",
          "the bound over the largest loss, geometric mean over noises and depths",
          best_bound, at_most=1.0, statistic="ratio", over={"shots": FULL.shots},
          null="none: a bound of 1 says nothing", note=BEST_C.format("tasks")),
    ranks("ranks", statement="We read: at equal numbers of demonstrations the bound ranks depths "
          "and label noises as the gap does", quantity=RANKS, sample=bound_correlation,
          null="ranks_less_counting"),
    ranks("ranks_less_counting", statement="We read: at equal numbers of demonstrations the rank "
          "correlation of the bound with the gap is higher than that of the number of its terms",
          quantity=f"{RANKS}, less that of the number of layers and the gap",
          sample=partial(bound_correlation, less_counting=True), null=LESS),
    remark_4("bound_rises", statement="Most truncations of a matrix of a trained stack lower the "
             "bound", quantity=f"{TRUNCATIONS} in which the bound rises", sample=bound_rises,
             at_most=0.5, null="bound_rises_less_random"),
    remark_4("bound_rises_less_random", statement="Truncation raises the bound less often than "
             "random edits of the same norm",
             quantity=f"{TRUNCATIONS} in which truncation raises the bound, {RANDOM}",
             sample=partial(bound_rises, less_random=True), at_most=0.0, null=LESS),
    remark_4("risk_falls", statement="Where truncation lowers the bound, it lowers the risk more "
             "often than random edits of the same norm", quantity="of truncations with a lower "
             "bound, the share with a lower risk, less the share in which a random edit of the "
             "same norm lowers the risk", sample=risk_falls, at_least=0.0, null=LESS),
    remark_6("updates_rise", statement="Truncation of a matrix of a trained stack raises the sum "
             "of squared updates less often than random edits of the same norm",
             quantity=f"{TRUNCATIONS}, and of prompts, in which truncation raises it, {RANDOM}",
             sample=partial(sum_rises, less_random=True), at_most=0.0, null=LESS),
    remark_6("updates_rise_share", statement="Most truncations of a matrix of a trained stack "
             "lower the sum of squared updates", quantity=f"{TRUNCATIONS}, and of prompts, in "
             "which it rises", sample=sum_rises, at_most=0.5, null="updates_rise"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.8, (1, 2))
    descent = result["descent"]
    best = find_best_bounds(descent).mean("task")
    gaps = (descent["gap"] / descent["largest_loss"]).mean("task")
    for n, color, marker in zip(descent["shots"].values, plotting.COLOURS, "osD^vP", strict=False):
        x, y = (values.sel(shots=n).values.ravel() for values in (gaps, best))
        left.plot(x, y, marker, color=color, mfc="none", ms=4, label=f"n = {n:g}")
    left.axhline(1, color="grey", lw=0.8, ls=":", label="largest loss")
    top = np.linspace(0, 1.05 * float(gaps.max()), 200)
    plotting.line(left, top, top, "gap")
    plotting.log_axes(left, y=True)
    left.set_ylim(bottom=0.002)
    left.set(xlabel="gap / largest loss", ylabel="bound / largest loss", title="Bound and gap")
    left.legend(ncol=2)
    edits = result["edits"]
    rises = bounds_that_rise(edits), edits["sum_rises"], edits["risk_ratio"] > 1
    shares = {
        edit: np.stack([each.sel(edit=edit).mean(CELLS).values for each in rises], axis=1)
        for edit in EDITS
    }
    looks = plotting.looks(EDITS, "o^", (plotting.VERMILION, plotting.GREY))
    plotting.series(right, range(3), shares, looks, shift=0.16, ls="none", capsize=2)
    right.axhline(0.5, color="grey", lw=0.8, ls=":")
    right.set_xticks(range(3), ("bound", "sum of |G|²", "risk"))
    right.set(ylim=(0, 1), ylabel="share of edits that raise it", title="Edits of trained stacks")
    right.legend()
    best = [np.exp(np.log(best_bound(result, shots)).mean()) for shots in config.shots]
    bounds, counts = (x.mean() for x in rank_gaps(result))
    return figure, (
        f"With the size c of the noise that makes it smallest, the bound is {min(best):.2g} to "
        f"{max(best):.2g} times the largest possible loss. At equal n its rank correlation with "
        f"the gap is {bounds:.2f}, that of the number of layers {counts:.2f}. Truncating a matrix "
        f"of trained linear attention raises the bound in {bound_rises(result).mean():.0%} of "
        f"cases and the sum of squared updates in {sum_rises(result).mean():.0%}. Points in a are "
        f"means over {config.tasks} tasks at one place of the grid; bars in b are 95 % intervals "
        f"over {edits.sizes['run']} trainings, {int(edits['left_out'])} left out."
    )


if __name__ == "__main__":
    main(__file__)
