"""Where do heads help: at equal budget, up to how many, at which sparsity (A4, Figure 1b)?

Three layers of merged linear attention are trained on sparse regression with E |w|² = 1, with heads
in A4's pattern (4,1,1), placed evenly (2,2,2), in later layers, or in all. "One wide head" and
"four narrow heads" have as many parameters in each layer. All risks are excess risks over prompts
of the training; references know the task: ridge regression with the best penalty, the best three
steps of descent, and the Bayes rule for the sparsity. Predictions are clipped at twice the largest
label. A training that diverged, or is worse than the answer 0, is left out.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.heads import risks
from experiments.models.model import clip_predictions
from experiments.models.named import NamedModels
from lsa_lab import estimators
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting
from lsa_lab.models.moments import compiled
from lsa_lab.prompts import repeat_demonstrations
from lsa_lab.theory.depth import best_descent_at

EQUAL = ("one wide head", "four narrow heads")
LEVELS = ("sparse", "two non-zeros", "no zeros")  # non-zeros: 1, 2, all
NAMES = (*LEVELS, "eight heads", *EQUAL)
RULES = ("ridge", "Bayes rule")
DESCENT = "descent"


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = NAMES  # trained models, each in one or more variants
    lengths: tuple[int, ...] = (8, 16, 32, 64)  # demonstrations; each divides the last
    trained: int = 32  # the longest prompts in training
    test_prompts: int = 8192  # for each training, the same for all models of one task
    worst: float = 1.0  # risk over that of the answer 0: a training above it is left out
    seed: int = 1701


TIERS = {
    "smoke": Config(("sparse", *EQUAL), True, (8, 64), test_prompts=64, worst=99, seed=1),
    "quick": Config(("sparse", *EQUAL), lengths=(8, 32, 64), test_prompts=512, seed=2),
    "full": Config(),
}


# Keep n demonstrations, repeated to the same length: averages over them do not change.
cut = jax.vmap(repeat_demonstrations, (0, None))


@compiled
def measure_model(model, batch, n):  # Prompt [B] -> []
    """Return the risk on prompts of n demonstrations; one program serves all n."""
    return model.risk(cut(batch, n))


@partial(jax.jit, static_argnums=(2, 3))
def measure_rules(batch, n, task, longest):  # Prompt [B] -> [3]
    """Return the risks of RULES and of the answer 0 on prompts of n demonstrations."""
    nonzeros = task.sparsity or task.d
    # Repeated demonstrations carry less noise each: its variance is scaled up.
    noise_var = jnp.asarray(task.noise_std**2, batch.y.dtype) * longest / n
    signal_var = task.weight_std**2
    penalty = noise_var * task.d / (longest * nonzeros * signal_var)

    def predict(prompt):
        ridge = estimators.ridge(prompt, penalty)
        bayes = ridge
        if nonzeros < task.d:
            bayes = estimators.sparse_posterior_mean(prompt, nonzeros, signal_var, noise_var)
        return jnp.stack([ridge, bayes, jnp.zeros_like(ridge)]) @ prompt.x_query

    answers = jax.vmap(predict, out_axes=1)(cut(batch, n))
    clipped = jax.vmap(clip_predictions, (0, None))(answers, batch)
    return ((clipped - batch.y_query[None]) ** 2).mean(1)


def list_variants(models):  # -> [(the name of a variant, of its model, its number)]
    return [
        (f"{name} {','.join(map(str, row))}", name, i)
        for name, runs in models.items()
        for i, row in enumerate(runs.spec.architecture.rows)
    ]


def compute_run(config, models, run):  # -> {"model": [variants, n], "rule": [3, models, n]}
    """Return the risks of one training of every variant, and of rules; NaN where there is none."""
    longest, rules, values, batches = max(config.lengths), {}, [], {}
    for name, runs in models.items():
        task = runs.spec.task
        if task not in batches:
            seed = config.seed + 1000 * (task.sparsity or task.d)
            batches[task] = risks.draw_prompts(task, seed + run, config.test_prompts, longest)
        batch = batches[task]
        rules[name] = [measure_rules(batch, n, task, longest) for n in config.lengths]
    for _, name, variant in list_variants(models):
        runs = models[name]
        if run >= runs.spec.training.seeds or not runs.finished[variant, run]:
            values.append([np.nan] * len(config.lengths))
            continue
        model = risks.select_run(runs.models(variant), run).plain()
        batch = batches[runs.spec.task]
        values.append([measure_model(model, batch, n) for n in config.lengths])
    return {"model": np.array(values, float), "rule": np.array([*rules.values()], float)}


def compute(config, models):
    variants = list_variants(models)
    count = max(runs.spec.training.seeds for runs in models.values())
    rows = compute_each("trainings", range(count), partial(compute_run, config, models))
    risk, rule = (np.stack([row[name] for row in rows]) for name in ("model", "rule"))
    owners = [list(models).index(name) for _, name, _ in variants]
    worse = (risk > config.worst * rule[:, owners][..., -1]).any(-1)
    tasks = {name: runs.spec.task for name, runs in models.items()}
    descent = [
        [best_descent_at(n, task.d, task.noise_std**2, 3)[-1] for n in config.lengths]
        for task in tasks.values()
    ]
    seeds = [models[name].spec.training.seeds for _, name, _ in variants]
    risk = np.where(worse[..., None], np.nan, risk)
    missing = count * len(seeds) - sum(seeds)
    data = {
        "risk": (("run", "variant", "n"), risk),
        "rule_risk": (("run", "model", "n", "rule"), rule[..., : len(RULES)]),
        "descent": (("model", "n"), np.array(descent)),
        "left_out": int(np.isnan(risk[..., 0]).sum()) - missing,
    }
    coords = {"variant": [name for name, *_ in variants], "n": list(config.lengths)}
    return xr.Dataset(data, coords | {"model": list(models), "rule": list(RULES)})


FULL = TIERS["full"]
PATTERN, EVEN, SINGLE, ALL = ("sparse " + row for row in ("4,1,1", "2,2,2", "1,1,1", "4,4,4"))
LATER, EIGHT = "sparse 1,4,4", "eight heads 8,8,8"
WIDE, NARROW = f"{EQUAL[0]} 1,1,1", f"{EQUAL[1]} 4,4,4"
LENGTHS = {"as long as in training": True, "longer than in training": False}


def log_risks(result, name):  # -> (run, n), or None
    """Return the log risk of a variant, or of a rule on a model's task, as "ridge, sparse"."""
    rule, _, model = name.partition(", ")
    if name in result["variant"]:
        return np.log(result["risk"].sel(variant=name))
    if model not in result["model"]:
        return None
    if rule == DESCENT:
        return np.log(result["descent"].sel(model=model))
    return np.log(result["rule_risk"].sel(model=model, rule=rule))


def compare(result, over, under, trained=True):  # -> [R], or None
    """Return the ratio of two risks in each run that has both, geometric mean over lengths n."""
    pair = log_risks(result, over), log_risks(result, under)
    if pair[0] is None or pair[1] is None:
        return None
    logs = pair[0] - pair[1]
    logs = logs.sel(n=(logs["n"] <= FULL.trained) == trained).mean("n", skipna=False)
    return np.exp(logs.dropna("run").values)


def over_rules(result, rule, lengths):
    return compare(result, PATTERN, f"{rule}, sparse", LENGTHS[lengths])


def heads_by_level(result, model):  # -> [R], or None
    """Return what many heads multiply the risk by, over what they do for weights without zeros."""
    gain, dense = (compare(result, f"{x} 4,4,4", f"{x} 1,1,1") for x in (model, LEVELS[-1]))
    if gain is None or dense is None:
        return None
    count = min(len(gain), len(dense))
    return gain[:count] / dense[:count]


def over_bayes(result, variant):
    return compare(result, variant, f"{RULES[1]}, {variant.rsplit(maxsplit=1)[0]}")


ratio = partial(Claim, statistic="ratio")
PAIRED = "none: the ratio is paired, and 1 without an effect"
MEAN = "the geometric mean over n of the risk"
CLAIMS = (
    ratio("over_even", "A4, Abstract, pattern",
          "Six heads as 4,1,1 have less risk than as 2,2,2", f"{MEAN} over that with 2,2,2",
          partial(compare, over=PATTERN, under=EVEN), at_most=1.0, null=PAIRED),
    ratio("over_rules", "A4, Abstract, against ridge",
          "Models with heads 4,1,1 have less risk than {rule} on prompts {lengths}",
          f"{MEAN} over that of the rule", over_rules, at_most=1.0, null="over_single",
          over={"rule": (RULES[0], DESCENT), "lengths": tuple(LENGTHS)},
          note="descent is the best of three steps for each n, in closed form, without clipping"),
    ratio("over_single", "A4, Abstract, against ridge", "Models with heads 4,1,1 have less risk "
          "than models with one head in each layer", f"{MEAN} over that with 1,1,1",
          partial(compare, over=PATTERN, under=SINGLE), at_most=1.0, null=PAIRED),
    ratio("more_heads", "A4, Figure 1b", "Four narrow heads in each layer have less risk than one "
          "wide head with as many parameters", f"{MEAN} over that with one wide head",
          partial(compare, over=NARROW, under=WIDE), at_most=1.0, null=PAIRED),
    ratio("up_to_d", "A4, Figure 1b",
          "At d = 5, four heads in each layer have less risk than two", f"{MEAN} over that with "
          "two heads", partial(compare, over=ALL, under=EVEN), at_most=1.0, null=PAIRED),
    ratio("beyond_d", "A4, Heads needed", "At d = 5, eight heads in each layer lower the risk of "
          "four by at most a tenth", f"{MEAN} over that with four heads",
          partial(compare, over=EIGHT, under=ALL), at_least=0.9, null=PAIRED),
    ratio("sparsity", "A4, Levels of sparsity", "Four heads in each layer in place of one lower "
          "the risk more on sparse tasks ({model}) than where no weight is zero",
          "the risk with four heads over that with one, divided by the same for weights without "
          "zeros", heads_by_level, at_most=1.0, over={"model": LEVELS[:2]}, null=PAIRED),
    ratio("over_bayes", "derived here",
          "The risk of {variant}, over that of the Bayes rule", f"{MEAN} over the Bayes rule's",
          over_bayes, over={"variant": (ALL, EIGHT, *(f"{x} 4,4,4" for x in LEVELS[1:]))},
          null="none: the Bayes rule has 1"),
)  # fmt: skip

CONTRASTS = {  # rows of the figure
    "4,1,1 / 2,2,2": (PATTERN, EVEN),
    "4,1,1 / 1,4,4": (PATTERN, LATER),
    "4 narrow / 1 wide": (NARROW, WIDE),
    "2,2,2 / 1,1,1": (EVEN, SINGLE),
    "4,4,4 / 2,2,2": (ALL, EVEN),
    "8,8,8 / 4,4,4": (EIGHT, ALL),
}


def plot(result, config):  # -> Figure, caption
    figure, (left, middle, right) = plotting.figure(6.75, 2.7, (1, 3), width_ratios=(1.15, 1, 0.9))
    plot_lengths(left, result)
    rows = {name: compare(result, *pair) for name, pair in CONTRASTS.items()}
    rows = {name: runs for name, runs in rows.items() if runs is not None}
    look = dict(color=plotting.BLUE, marker="o", elinewidth=1.2)
    for y, runs in enumerate(rows.values()):
        middle.plot(runs, [y] * len(runs), ".", color="lightgrey", ms=3)
        plotting.mean_points(middle, [y], runs[:, None], None, "ratio", rows=True, **look)
    middle.axvline(1, color="grey", lw=0.8, ls=":")
    middle.set_yticks(range(len(rows)), rows)
    middle.set(ylim=(len(rows) - 0.5, -0.5), xlabel="ratio of risks", title="Contrasts")
    levels = [x for x in LEVELS if x in result["model"]]
    for row, face in (("1,1,1", "white"), ("4,4,4", plotting.BLUE)):
        for place, level in enumerate(levels):
            runs = compare(result, f"{level} {row}", f"{RULES[0]}, {level}")[:, None]
            label = row if place == 0 else None
            look = plotting.METHOD["linear"] | {"mfc": face, "ls": "none", "capsize": 2}
            plotting.mean_points(right, [place], runs, label, "ratio", **look)
    pairs = [(f"{RULES[1]}, {level}", f"{RULES[0]}, {level}") for level in levels]
    bayes = [geometric_mean(compare(result, *pair)) for pair in pairs]
    color = plotting.METHOD["sparse Bayes"]["color"]
    right.plot(range(len(levels)), bayes, "_", color=color, ms=14, mew=1.5, label="Bayes rule")
    right.axhline(1, color="grey", lw=0.8, ls=":")
    names = dict(zip(LEVELS, ("one", "two", "all five"), strict=True))
    right.set_xticks(range(len(levels)), [names[x] for x in levels])
    right.set(xlabel="non-zero weights", ylabel="risk / ridge's", title="Sparsity")
    right.set(xlim=(-0.5, len(levels) - 0.5), ylim=(0, None))
    right.legend(loc="lower right")
    pairs = (PATTERN, EVEN), (NARROW, WIDE), (PATTERN, f"{RULES[0]}, sparse")
    even, equal, ridge = (geometric_mean(compare(result, *pair)) for pair in pairs)
    return figure, (
        f"Heads 4,1,1 have {even:.3g} times the risk of heads 2,2,2, and {ridge:.2g} times that of "
        f"ridge regression. With as many parameters four narrow heads in each layer have "
        f"{equal:.2g} times the risk of one wide head. Geometric means over trainings, with 95 % "
        f"intervals; {int(result['left_out'])} trainings are left out."
    )


def plot_lengths(ax, result):
    ns, ridge = result["n"].values, log_risks(result, f"{RULES[0]}, sparse")
    for name, style in ((SINGLE, ":"), (PATTERN, "--"), (EVEN, "-."), (ALL, "-")):
        runs = np.exp((log_risks(result, name) - ridge).dropna("run").values)
        look = plotting.METHOD["linear"] | {"ls": style, "capsize": 1.5}
        plotting.mean_points(ax, ns, runs, name.split()[-1], "ratio", **look)
    references = (RULES[1], "Bayes rule", "sparse Bayes"), (DESCENT, "best descent", "descent")
    for rule, label, method in references:
        relative = np.exp((log_risks(result, f"{rule}, sparse") - ridge).mean("run"))
        plotting.line(ax, ns, relative, label, plotting.METHOD[method]["color"])
    ax.axhline(1, color="grey", lw=0.8, ls=":")
    plotting.log_axes(ax, x=True, ticks=ns)
    ax.set(xlabel="demonstrations n", ylabel="risk / ridge's", title="One non-zero")
    ax.set_ylim(0, 1.5 * ax.get_ylim()[1])
    ax.legend(loc="upper right", ncols=2, handlelength=1.6, columnspacing=0.8)


if __name__ == "__main__":
    main(__file__)
