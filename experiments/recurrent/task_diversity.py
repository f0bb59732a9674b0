"""Which layers memorise their pretraining tasks, and from how many tasks on do they generalise?

The weights of a training prompt are one of M tasks, drawn once from N(0, I/d). The Bayes rule of
this table of tasks fails on new tasks, whose Bayes rule is ridge regression. A softmax transformer
turns from the first to the second at some M (Raventós et al. 2306.15063). Here three layers of six
kinds are trained equally long on nested tables. The position of a model on new tasks is 0 where it
answers as the table's Bayes rule does, and 1 where it answers as ridge does.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments import training
from lsa_lab import estimators
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.models import prefixes, recurrent, transformer
from lsa_lab.prompts import Prompt

NAMES = {
    "no_mlp": "linear attention without an MLP",
    "additive": "linear attention",
    "delta": "DeltaNet",
    "gated_delta": "gated DeltaNet",
    "mesa": "mesa",
    "softmax": "softmax attention",
}
RULES = ("table", "ridge", "linear")  # Bayes rules of the table, of N(0, I/d), of two moments
TASKS = ("old", "new")


@dataclass(frozen=True)
class Config:
    kinds: tuple[str, ...] = tuple(NAMES)  # layers
    tables: tuple[int, ...] = (4, 16, 64, 1024)  # pretraining tasks M, growing
    d: int = 4
    n: int = 16  # demonstrations
    noise_var: float = 0.25  # of a label, whose signal has variance 1
    depth: int = 3
    heads: int = 2  # of a layer
    key_width: int = 8
    width: int = 24  # of the residual stream
    mlp_width: int = 64
    steps: int = 3000
    batch: int = 32
    learning_rate: float = 0.01
    test_prompts: int = 2000  # of each run and table, on old and on new tasks
    runs: int = 9  # tables, each with one training of every kind and M
    seed: int = 1062


SMALL = dict(depth=2, width=12, key_width=4, mlp_width=8, steps=20, batch=8, test_prompts=50)
TIERS = {
    "smoke": Config(("additive", "no_mlp"), (4, 16), n=6, **SMALL, runs=3, seed=1),
    "quick": Config(("delta", "softmax"), (4, 64), steps=250, test_prompts=500, runs=3, seed=2),
    "full": Config(),
}


def make_model(kind, config):  # -> (init(key), forward(params, tokens))
    """Return two functions of a causal model that reads the tokens [x_t, x_{t-1}, y_{t-1}]."""
    width, token_width = config.width, 2 * config.d + 1
    sizes = dict(num_layers=config.depth, key_width=config.key_width, width=width, norm=True)
    sizes["mlp_width"] = None if kind == "no_mlp" else config.mlp_width
    if kind == "softmax":
        # The mask of the interleaved layout lets a token read itself, as a recurrent layer does.
        module = transformer
        layout = dict(layout="interleaved", keys="causal")
        shape = transformer.Config(token_width, heads=config.heads, **layout, **sizes)
    else:
        module = recurrent
        rule = "additive" if kind == "no_mlp" else kind
        shape = recurrent.Config(rule, token_width, num_heads=config.heads, layout="bound", **sizes)
    init = partial(module.init, config=shape, dtype=jnp.float32)
    return init, partial(module.forward, config=shape)


def draw_table(config, run):  # -> [largest M, d]; those of a smaller table are the first ones
    rng = np.random.default_rng([config.seed, run, 0])
    return rng.standard_normal((config.tables[-1], config.d)) / config.d**0.5


def train(config, kind):  # -> params [tables R, ...]
    n, d, size = config.n, config.d, config.batch
    init, forward = make_model(kind, config)

    def sample(key, table):
        key_task, key_normal = jax.random.split(key)
        tasks, count = table
        w = tasks[jax.random.randint(key_task, (size,), 0, count)]
        normal = jax.random.normal(key_normal, (size, n + 1, d + 1), jnp.float32)
        x = normal[..., :d]
        y = jnp.einsum("btd,bd->bt", x, w)
        noisy = y[:, :-1] + config.noise_var**0.5 * normal[:, :-1, d]
        return Prompt(x[:, :-1], noisy, x[:, -1], y[:, -1])

    def loss(params, batch, table):
        return jax.vmap(partial(prefixes.loss, forward, params))(batch).mean()

    places = [(m, run) for m in config.tables for run in range(config.runs)]
    tables = jnp.asarray([draw_table(config, run) for _, run in places], jnp.float32)
    key = jax.random.fold_in(jax.random.key(config.seed), list(NAMES).index(kind))
    per_run = tables, jnp.asarray([m for m, _ in places])
    recipe = jax.vmap(init), loss, sample, config, len(places), per_run
    return training.train_layers(NAMES[kind], key, *recipe)


def draw_prompts(config, run, tasks=None):  # -> Prompt [B], targets [B]
    count, n, d = config.test_prompts, config.n, config.d
    rng = np.random.default_rng([config.seed, run, 1 if tasks is None else 1 + len(tasks)])
    w = rng.standard_normal((count, d)) / d**0.5
    if tasks is not None:
        w = tasks[rng.integers(len(tasks), size=count)]
    x = rng.standard_normal((count, n + 1, d))
    labels = np.einsum("btd,bd->bt", x, w)
    y = labels[:, :-1] + config.noise_var**0.5 * rng.standard_normal((count, n))
    return Prompt(*map(jnp.asarray, (x[:, :-1], y, x[:, -1], labels[:, -1]))), labels[:, -1]


@partial(jax.jit, static_argnames="noise_var")
def answer_by_rules(prompts, tasks, noise_var):  # -> [rules, B]
    d = tasks.shape[1]
    covariance = jnp.cov(tasks.T, bias=True) + 1e-6 * jnp.eye(d)  # singular for few tasks

    def answer(prompt):
        moments = dict(prior_mean=tasks.mean(0), prior_covariance=covariance)
        weights = jnp.stack([
            estimators.discrete_posterior_means(prompt, tasks, noise_var)[-1],
            estimators.recursive_ridge(prompt, d * noise_var)[-1],
            estimators.gaussian_posterior_mean(prompt, 1.0, noise_var, **moments),
        ])  # fmt: skip
        return weights @ prompt.x_query

    return jax.lax.map(answer, prompts, batch_size=50).T


def draw_tests(config, run, m):  # -> {task: (Prompt [B], targets [B], answers [rules, B])}
    tasks = draw_table(config, run)[:m]
    tests = {"old": draw_prompts(config, run, tasks), "new": draw_prompts(config, run)}
    rules = partial(answer_by_rules, tasks=jnp.asarray(tasks), noise_var=config.noise_var)
    return {task: (*test, rules(test[0])) for task, test in tests.items()}


@partial(jax.jit, static_argnames=("kind", "config"))
def measure(params, prompts, targets, by_rules, kind, config):  # -> [], []
    forward = make_model(kind, config)[1]
    answers = jax.lax.map(
        lambda prompt: prefixes.predictions(forward, params, prompt)[-1], prompts, batch_size=100
    )
    return score(answers, targets, by_rules)


def score(answers, targets, by_rules):  # [B] x 2, [rules, B] -> [], []
    """Return the risk at the queries, and the position on the line through table and ridge."""
    table, ridge = by_rules[0], by_rules[1]
    position = jnp.mean((answers - table) * (ridge - table)) / jnp.mean((ridge - table) ** 2)
    return jnp.mean((answers - targets) ** 2), position


def compute(config, models):
    sizes = len(config.tables), config.runs
    places = [(i, run) for i in range(sizes[0]) for run in range(sizes[1])]
    tests = {(i, run): draw_tests(config, run, config.tables[i]) for i, run in places}
    values = np.empty((2, len(config.kinds), *sizes, len(TASKS)))
    for k, kind in enumerate(config.kinds):
        params = train(config, kind)
        for row, (i, run) in enumerate(tests):
            model = jax.tree.map(lambda leaf, row=row: leaf[row], params)
            for t, task in enumerate(TASKS):
                values[:, k, i, run, t] = measure(model, *tests[i, run][task], kind, config)
    risk, position = np.where(np.isfinite(values), values, np.inf)
    axes = ("kind", "M", "run", "task")
    data = {"risk": (axes, risk), "position": (axes, position)}
    data |= measure_rules(tests, sizes)
    names = {"kind": list(config.kinds), "M": list(config.tables), "rule": list(RULES)}
    return xr.Dataset(data, names | {"task": list(TASKS)})


def measure_rules(tests, sizes):
    rules, zero = np.empty((len(RULES), *sizes, len(TASKS))), np.empty((*sizes, len(TASKS)))
    for place, test in tests.items():
        for t, task in enumerate(TASKS):
            _, targets, answers = test[task]
            rules[:, *place, t] = ((np.asarray(answers) - targets) ** 2).mean(1)
            zero[*place, t] = (targets**2).mean()
    axes = ("M", "run", "task")
    return {"rule_risk": (("rule", *axes), rules), "zero_risk": (axes, zero)}


def predictions(config):
    config = replace(config, test_prompts=500, seed=0)  # other tables than those of the run
    places = [(i, run) for i in range(len(config.tables)) for run in range(config.runs)]
    tests = {(i, run): draw_tests(config, run, config.tables[i]) for i, run in places}
    risks = measure_rules(tests, (len(config.tables), config.runs))["rule_risk"][1].mean(2)
    return {
        f"{rule}, M = {m}, {task} tasks": float(risks[r, i, t])
        for r, rule in enumerate(RULES)
        for i, m in enumerate(config.tables)
        for t, task in enumerate(TASKS)
    }


def learned(result, *kinds, m=None):  # -> [R] of truth values, or None
    """Return which runs have on all old tasks a lower risk than the answer 0, with all kinds.

    None where the result lacks a kind or the table, or no run learned.
    """
    known = set(result["kind"].values)
    if not known.issuperset(kinds) or (m is not None and m not in result["M"]):
        return None
    old = result.sel(kind=list(kinds), task="old")
    kept = (old["risk"] < old["zero_risk"]).all(("kind", "M")).values
    return kept if kept.any() else None


def rule_ratio(result, kind, m, rule, task):
    """Return the risk over that of a rule on the same prompts."""
    kept = learned(result, kind, m=m)
    if kept is None:
        return None
    risks = result.sel(M=m, task=task)
    return (risks["risk"].sel(kind=kind) / risks["rule_risk"].sel(rule=rule)).values[kept]


def mlp_ratio(result, m):
    """Return the risk of linear attention with an MLP over that without, on old tasks."""
    kept = learned(result, "additive", "no_mlp", m=m)
    if kept is None:
        return None
    risk = result["risk"].sel(M=m, task="old")
    return (risk.sel(kind="additive") / risk.sel(kind="no_mlp")).values[kept]


def new_position(result, kind, m):
    kept = learned(result, kind, m=m)
    if kept is None:
        return None
    return result["position"].sel(kind=kind, M=m, task="new").values[kept]


def find_turn(position, tables):  # [M] x 2 -> []
    """Return the M at which the position first exceeds 1/2, by lines over log M, or an end."""
    above = np.flatnonzero(np.append(position > 0.5, True))[0]
    if above in (0, len(tables)):
        return tables[min(above, len(tables) - 1)]
    pair = slice(above - 1, above + 1)
    return np.exp(np.interp(0.5, position[pair], np.log(tables[pair])))


def turn(result, kind, *others):
    """Return the M at which a kind turns, in runs in which the other kinds learned as well."""
    kept = learned(result, kind, *others)
    if kept is None:
        return None
    positions = result["position"].sel(kind=kind, task="new").transpose("run", "M").values
    return np.array([find_turn(row, result["M"].values) for row in positions[kept]], float)


def turn_ratio(result, kind):
    """Return the M at which a kind turns over that of softmax attention on the same tables."""
    turns = turn(result, kind, "softmax"), turn(result, "softmax", kind)
    return None if turns[0] is None else turns[0] / turns[1]


FULL = TIERS["full"]
FEWEST, MOST = FULL.tables[0], FULL.tables[-1]
WITH_MLP = tuple(NAMES)[1:]
FEW = {"kind": WITH_MLP, "m": FULL.tables[:2]}
derived = partial(Claim, source="derived here")
raventos = partial(Claim, source="Raventós et al. 2306.15063")
POSITION = "the position on new tasks, 0 at the table's Bayes rule and 1 at ridge regression"
CLAIMS = (
    derived("memorise", statement="On {m} old tasks {kind} layers have a lower risk than any rule "
            "that is linear in the labels", quantity="the risk over that of the best such rule, "
            "which knows mean and covariance of the tasks", statistic="ratio", at_most=1.0,
            over=FEW, sample=partial(rule_ratio, rule="linear", task="old"), simultaneous=True,
            null="mlp"),
    derived("mlp", statement="An MLP lowers the risk of linear attention on {m} old tasks",
            quantity="the risk with an MLP over that without, on the same prompts",
            sample=mlp_ratio, statistic="ratio", at_most=1.0, over={"m": FEW["m"]},
            simultaneous=True, null="none: the ratio is paired, and 1 without an effect"),
    derived("few", statement=f"Trained on {FEWEST} tasks, {{kind}} layers answer new tasks more "
            "like the table's Bayes rule than like ridge", quantity=POSITION,
            sample=partial(new_position, m=FEWEST), at_most=0.5, over={"kind": WITH_MLP},
            null="none: the position is 1/2 half-way"),
    raventos("many", statement=f"Trained on {MOST} tasks, {{kind}} layers answer new tasks more "
             "like ridge than like the table's Bayes rule", quantity=POSITION,
             sample=partial(new_position, m=MOST), at_least=0.5, over={"kind": WITH_MLP},
             null="none: the position is 1/2 half-way"),
    raventos("beyond", statement="Trained on {m} tasks, {kind} layers have a lower risk on new "
             "tasks than the Bayes rule of their training", quantity="the risk over that of the "
             "table's Bayes rule, on new tasks",
             sample=partial(rule_ratio, rule="table", task="new"), statistic="ratio", at_most=1.0,
             over={"kind": WITH_MLP, "m": FULL.tables[2:]},
             null="none: the ratio is paired, and 1 without a difference"),
    derived("turn", statement="The number of tasks from which on {kind} layers are nearer to ridge",
            quantity="the M at which the position on new tasks first exceeds 1/2, within "
            f"{FEWEST} to {MOST}", sample=turn, statistic="ratio", over={"kind": tuple(NAMES)},
            null="none: an estimate"),
    derived("earlier", statement="{kind} layers turn to ridge at fewer tasks than softmax layers",
            quantity="the M of their turn over that of softmax layers on the same tables",
            sample=turn_ratio, statistic="ratio", at_most=1.0, over={"kind": WITH_MLP[:-1]},
            null="none: the ratio is paired, and 1 without a difference"),
)  # fmt: skip

LOOKS = plotting.looks(NAMES, "Pod^vs", (plotting.SKY, *plotting.COLOURS))
RULE_NAMES = {"table": ("the table's Bayes rule", "--"), "ridge": ("ridge regression", "-")}


def plot(result, config):  # -> Figure, caption
    figure, (left, middle, right) = plotting.figure(6.75, 2.9, (1, 3), width_ratios=(1, 1, 0.5))
    for ax, task in zip((left, middle, right), TASKS, strict=False):
        for rule, (label, style) in RULE_NAMES.items():
            risks = result["rule_risk"].sel(rule=rule, task=task).mean("run")
            plotting.line(ax, result["M"], risks, label, plotting.GREY, style)
        for kind in config.kinds:
            kept = learned(result, kind)
            if kept is not None:
                risks = result["risk"].sel(kind=kind, task=task).transpose("run", "M").values[kept]
                look = dict(label=NAMES[kind].replace(" without", "\nwithout"), mfc="white", lw=0.8)
                plotting.mean_points(ax, result["M"], risks, **look, **LOOKS[kind])
        plotting.log_axes(ax, x=True, y=True, ticks=config.tables)
        ax.set(xlabel="pretraining tasks M", ylabel="risk", title=f"{task} tasks".capitalize())
    right.axis("off")
    right.set_title("", loc="left")
    right.legend(*left.get_legend_handles_labels(), loc="center left", borderaxespad=0)
    turns = {NAMES[kind]: turn(result, kind) for kind in config.kinds}
    found = ", ".join(
        f"{np.exp(np.log(x).mean()):.2g} for {name}" for name, x in turns.items() if x is not None
    )
    kept = sum(len(x) for x in turns.values() if x is not None)
    return figure, (
        f"Risks on the tasks of the pretraining (a) and on new ones (b), means of runs. "
        f"The number of tasks from which on a layer is nearer to ridge than to the table's Bayes "
        f"rule on new tasks, within {config.tables[0]} to {config.tables[-1]}: {found}. "
        f"{kept} of {config.runs * len(config.kinds)} runs learned; the others are left out."
    )


if __name__ == "__main__":
    main(__file__)
