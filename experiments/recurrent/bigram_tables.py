"""Which layers divide counts: trained layers and the risks that theory predicts (derived here).

Every prompt is a Markov chain with a table of its own, whose rows are Dirichlet(c, ..., c), and the
layer is to give the distribution of the next symbol. Before training, theory says: a mesa layer is
the Bayes rule (ridge on one-hot keys is (count + c)/(visits + Kc)); DeltaNet keeps an exponential
mean at its best constant step; linear attention counts and cannot divide by the visits; softmax
attention averages the symbols that followed, and others weigh 1/w of them. The claims on risks are
of layers that start near such a rule, with other steps, scales and penalties; as many start from
random weights, and we count how many arrive.
"""

from dataclasses import dataclass
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from scipy.optimize import minimize, minimize_scalar

from experiments import training
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.models import recurrent, transformer
from lsa_lab.tasks import markov
from lsa_lab.theory import bigrams

NAMES = {"mesa": "mesa", "softmax": "softmax attention", "delta": "DeltaNet"}
NAMES |= {"gated_delta": "Gated DeltaNet", "additive": "linear attention"}
PREDICTED = ("mesa", "softmax", "delta", "additive")
STARTS = ("near", "random")


@dataclass(frozen=True)
class Config:
    kinds: tuple[str, ...] = tuple(NAMES)  # layers
    symbols: tuple[int, ...] = (3, 5)  # values of K
    length: int = 12  # transitions of a chain for each symbol; risks are of its second half
    concentration: float = 0.5  # c
    steps: int = 4000
    batch: int = 16
    learning_rate: float = 0.02
    test_chains: int = 2000  # of each run, the same for every layer
    runs: int = 9  # trainings of each kind, number of symbols and start
    seed: int = 1063


SMOKE = dict(kinds=("mesa", "delta"), symbols=(3,), length=4, batch=8, test_chains=50, runs=3)
QUICK = dict(kinds=("mesa", "delta", "additive"), symbols=(3,), test_chains=500, runs=3)
TIERS = {
    "smoke": Config(**SMOKE, steps=10, seed=1),
    "quick": Config(**QUICK, steps=500, seed=2),
    "full": Config(),
}


def make_layer(kind, num_symbols):  # -> module, config
    """Return a layer that writes p̂ - 1/K to K slots beside its tokens."""
    K = num_symbols
    if kind == "softmax":
        return transformer, transformer.Config(3 * K, 1, 1, K, keys="causal")
    return recurrent, recurrent.Config(kind, 3 * K, key_width=K, layout="bound")


def answer(params, symbols, kind, num_symbols):  # -> [T, K]
    module, shape = make_layer(kind, num_symbols)
    rows = markov.tokens(symbols, num_symbols, params.w_q.dtype)
    rows = jnp.pad(rows, ((0, 0), (0, num_symbols)))
    return 1 / num_symbols + module.forward(params, rows, shape).stream[-1, :, -num_symbols:]


def start(key, near, kind, num_symbols):
    """Draw random weights and, where ``near`` is 1, add one-hot keys, values and reads."""
    module, shape = make_layer(kind, num_symbols)
    params, K = module.init(key, shape, jnp.float32), num_symbols
    current, before, slots = near * jnp.eye(3 * K, dtype=jnp.float32).reshape(3, 1, 1, K, 3 * K)
    added = dict(w_q=current, w_k=before, w_v=current, w_o=slots.mT)
    return params.replace(**{name: getattr(params, name) + new for name, new in added.items()})


def train(config, kind, num_symbols):  # -> params [2 R, ...], near starts first
    K = num_symbols
    rate, steps, half = config.learning_rate, config.steps, config.length * K // 2
    task = markov.MarkovTask(config.length * K, K, config.concentration, jnp.float32)

    def sample(key):
        return jax.vmap(markov.sample, (0, None))(jax.random.split(key, config.batch), task)

    def loss(params, batch):
        def error(chain):
            errors = answer(params, chain.symbols, kind, K) - chain.table[chain.symbols]
            return jnp.mean((errors**2).sum(1)[half:])

        return jax.vmap(error)(batch).mean()

    key = jax.random.fold_in(jax.random.key(config.seed), 100 * K + list(NAMES).index(kind))
    near = jnp.repeat(jnp.asarray([1.0, 0.0], jnp.float32), config.runs)
    key_init, key_data = (jax.random.split(each, len(near)) for each in jax.random.split(key))
    params = jax.vmap(partial(start, kind=kind, num_symbols=K))(key_init, near)
    recipe = loss, sample, training.build_adam(rate, steps, end=rate / 100, clip=0.3), steps
    return training.train(f"{kind}, K = {K}", *recipe, params, key_data)


def draw_chains(rng, num_symbols, config, count):  # -> symbols [B, T], rows p [B, T, K]
    """Draw chains with NumPy, apart from the sampler of the training."""
    K, B = num_symbols, np.arange(count)
    table = rng.dirichlet([config.concentration] * K, (count, K))
    ends, symbols = table.cumsum(2)[..., :-1], np.empty((count, config.length * K + 1), int)
    symbols[:, 0] = rng.integers(K, size=count)
    for t in range(1, symbols.shape[1]):
        number = rng.random(count)[:, None]
        symbols[:, t] = (ends[B, symbols[:, t - 1]] <= number).sum(1)
    return symbols, table[B[:, None], symbols]


def count_visits(symbols):  # [B, T] -> [B, T]
    """Return how often the symbol at each place has been left before."""
    left = np.cumsum(symbols[:, :-1, None] == np.arange(symbols.max() + 1), 1)
    left = np.pad(left, ((0, 0), (1, 0), (0, 0)))
    return np.take_along_axis(left, symbols[..., None], 2)[..., 0]


@cache
def predict(kind, num_symbols, config):
    """Return risk, and numbers that a layer will have, from chains and no training."""
    K, c, half = num_symbols, config.concentration, config.length * num_symbols // 2
    rng = np.random.default_rng([config.seed, K])
    symbols, rows = draw_chains(rng, K, config, 3000)
    visits, tokens = count_visits(symbols)[:, half:], 1.0 + np.arange(half, symbols.shape[1])
    m, shares = np.unique(visits, return_counts=True)
    shares = shares / shares.sum()
    if kind == "mesa":
        return {"risk": float(shares @ bigrams.counting(m, K, c, 1 / (m + K * c)))}
    if kind == "delta":
        best = minimize(
            lambda free: float(shares @ bigrams.delta_rule(m, K, c, *free)),
            [0.15, 1.0], method="Nelder-Mead", bounds=[(0.01, 0.9), (0.5, 2.0)],
        )  # fmt: skip
        return {"risk": best.fun, "step": best.x[0], "scale": best.x[1]}
    if kind == "additive":
        part = visits / tokens
        weight = part.mean() / (part**2 + K * c * visits / tokens**2).mean()
        risks = bigrams.counting(visits, K, c, weight / tokens[None])
        return {"risk": float(risks.mean()), "weight": float(weight)}
    return predict_softmax(symbols, rows - 1 / K, half)


def predict_softmax(symbols, targets, half):
    """Return the least risk of a mean in which a symbol that followed weighs w, and others 1."""
    K = targets.shape[-1]
    ends = np.eye(K)[symbols] - 1 / K
    followed = np.array([symbols[:, :-1] == k for k in range(K)])[..., None] * ends[:, 1:]
    followed = np.pad(followed.cumsum(2), ((0, 0), (0, 0), (1, 0), (0, 0)))  # [K, B, T, K]
    followed = np.take_along_axis(followed, symbols[None, ..., None], 0)[0, :, half:]
    every, visits = ends.cumsum(1)[:, half:], count_visits(symbols)[:, half:, None]
    counts, targets = 1.0 + np.arange(half, symbols.shape[1])[:, None], targets[:, half:]

    def fit_scale(log_weight):
        extra = np.expm1(log_weight)
        mean = (every + extra * followed) / (counts + extra * visits)
        scale = (mean * targets).sum() / (mean**2).sum()
        return scale, ((scale * mean - targets) ** 2).sum(-1).mean()

    best = minimize_scalar(lambda free: fit_scale(free)[1], bounds=(0, 10), method="bounded")
    return {"risk": best.fun, "log w": best.x, "scale": fit_scale(best.x)[0]}


def predictions(config):
    places = [(kind, K) for K in config.symbols for kind in config.kinds if kind in PREDICTED]
    found = {f"{kind}, K = {K}": predict(kind, K, config) for kind, K in places}
    return {place: {name: float(v) for name, v in row.items()} for place, row in found.items()}


def average(errors, visits, count):  # [B, T], [B, T] -> [count + 1]
    """Return the mean error for each number of visits, and last over all."""
    few = visits < count
    sums = np.bincount(visits[few], errors[few], count)
    places = np.bincount(visits[few], minlength=count)
    means = np.where(places, sums / np.maximum(places, 1), np.nan)
    return np.append(means, errors.mean())


@partial(jax.jit, static_argnames=("kind", "num_symbols", "concentration"))
def measure(params, symbols, rows, kind, num_symbols, concentration):  # -> [B, T]
    """Return the squared errors of a layer, or of the Bayes table, on chains [B, T]."""

    def errors(row):
        symbols, targets = row
        if kind == "bayes":
            guess = markov.dirichlet_prediction(symbols, num_symbols, concentration)
        else:
            guess = answer(params, symbols, kind, num_symbols)
        return ((guess - targets) ** 2).sum(1)

    return jax.lax.map(errors, (symbols, rows), batch_size=100)


def compute(config, models):
    most, runs = 3 * config.length, config.runs  # visits
    shape = (len(config.kinds), len(config.symbols), most + 1, 2, runs)
    risk, bayes = np.empty(shape), np.empty((*shape[1:3], runs))
    step = np.full((len(config.symbols), 2, runs), np.nan)
    for j, K in enumerate(config.symbols):
        half = config.length * K // 2
        rngs = [np.random.default_rng([config.seed, K, run]) for run in range(runs)]
        tests = [draw_chains(rng, K, config, config.test_chains) for rng in rngs]

        def judge(params, kind, run, half=half, tests=tests, K=K):
            symbols, rows = tests[run]
            errors = measure(params, symbols, rows, kind, K, config.concentration)
            return average(np.asarray(errors)[:, half:], count_visits(symbols)[:, half:], most)

        bayes[j] = np.transpose([judge(None, "bayes", run) for run in range(runs)])
        for i, kind in enumerate(config.kinds):
            params = train(config, kind, K)
            for place in range(2 * runs):
                one = jax.tree.map(lambda leaf, place=place: leaf[place], params)
                risk[i, j, :, place // runs, place % runs] = judge(one, kind, place % runs)
            if kind == "delta":
                step[j] = jax.nn.sigmoid(mean_step(params, K)).reshape(2, runs)
    risk = np.where(np.isnan(risk[:, :, -1:]), np.inf, risk)  # a run that diverged
    names = {"kind": list(config.kinds), "K": list(config.symbols), "start": list(STARTS)}
    names["visits"] = [*range(most), -1]  # -1: over all places
    axes = ("kind", "K", "visits", "start", "run")
    data = {"risk": (axes, risk), "bayes": (("K", "visits", "run"), bayes)}
    return xr.Dataset(data | {"step": (("K", "start", "run"), step)}, names)


def mean_step(params, num_symbols):  # -> [R], before the sigmoid
    weights = params.w_step[:, 0, 0, 0, : 2 * num_symbols]
    return params.b_step[:, 0, 0, 0] + 2 * weights.mean(1)


def select(result, kind, K, start="near"):  # -> [R] risks over all places, or None
    if kind not in result["kind"] or K not in result["K"]:
        return None
    return result["risk"].sel(kind=kind, K=K, visits=-1, start=start).values


def over_prediction(result, kind, K):
    risks = select(result, kind, K)
    return None if risks is None else risks / predict(kind, K, FULL)["risk"]


def over_other(result, K, kind, other):
    """Return the risks of one kind over those of another on the same chains."""
    risks, others = select(result, kind, K), select(result, other, K)
    return None if risks is None or others is None else risks / others


def over_bayes(result, kind, K):
    risks = select(result, kind, K)
    return None if risks is None else risks / result["bayes"].sel(K=K, visits=-1).values


def step_difference(result, K):
    if select(result, "delta", K) is None:
        return None
    return result["step"].sel(K=K, start="near").values - predict("delta", K, FULL)["step"]


def arrival(result, kind):
    """Return for each random start whether its risk is at most 1.05 times the prediction."""
    risks = [select(result, kind, K, "random") for K in FULL.symbols]
    limits = [1.05 * predict(kind, K, FULL)["risk"] for K in FULL.symbols]
    found = [(r < m).astype(float) for r, m in zip(risks, limits, strict=True) if r is not None]
    return np.concatenate(found) if found else None


FULL = TIERS["full"]
K = {"K": FULL.symbols}
derived = partial(Claim, source="derived here")
CLAIMS = (
    derived("risk", statement="A trained {kind} layer has the risk that theory predicts with {K} "
            "symbols", quantity="the risk over its prediction", sample=over_prediction,
            statistic="ratio", at_least=0.95, at_most=1.05, over={"kind": PREDICTED, **K},
            simultaneous=True, null="none: the prediction has no free parameter"),
    derived("step", statement="A trained DeltaNet layer has the step that theory predicts with {K} "
            "symbols", quantity="its step less the prediction", sample=step_difference,
            at_least=-0.02, at_most=0.02, over=K, simultaneous=True,
            null="none: the prediction has no free parameter"),
    derived("gate", statement="Gates lower the risk of DeltaNet by less than 2 % with {K} symbols",
            quantity="the risk of Gated DeltaNet over that of DeltaNet on the same chains",
            sample=partial(over_other, kind="gated_delta", other="delta"), statistic="ratio",
            at_least=0.98, over=K, simultaneous=True,
            null="none: the ratio is paired, and 1 without a gain"),
    derived("divides", statement="Linear attention, which cannot divide, has at least 10 % more "
            "risk than mesa with {K} symbols", quantity="the risk of linear attention over that of "
            "mesa on the same chains", sample=partial(over_other, kind="additive", other="mesa"),
            statistic="ratio", at_least=1.1, over=K, simultaneous=True,
            null="none: the ratio is paired, and 1 for layers that divide alike"),
    derived("bayes", statement="The risk of a trained {kind} layer beside that of the Bayes table "
            "with {K} symbols", quantity="the risk over that of the Bayes table on the same chains",
            sample=over_bayes, statistic="ratio", over={"kind": tuple(NAMES), **K},
            null="none: an estimate"),
    derived("arrival", statement="The share of trainings of a {kind} layer that reach the "
            "predicted risk from random weights", quantity="1 for a risk of at most 1.05 times the "
            "prediction, else 0", sample=arrival, over={"kind": PREDICTED},
            null="none: an estimate"),
)  # fmt: skip

LOOKS = {"mesa": ("#000000", "o"), "delta": ("#009E73", "^"), "additive": ("#0072B2", "s")}


def plot(result, config):  # -> Figure, caption
    K, c = config.symbols[0], config.concentration
    figure, (ax,) = plotting.figure(4.2, 2.9)
    m = np.arange(1, config.length * 2)
    lines = {"mesa": bigrams.counting(m, K, c, 1 / (m + K * c))}
    best = predict("delta", K, config)
    lines["delta"] = bigrams.delta_rule(m, K, c, best["step"], best["scale"])
    tokens = 1.0 + config.length * K * 0.75
    weight = predict("additive", K, config)["weight"]
    lines["additive"] = bigrams.counting(m, K, c, weight / tokens)
    for kind, (color, marker) in LOOKS.items():
        if kind in config.kinds:
            plotting.line(ax, m, lines[kind], NAMES[kind], color)
            runs = result["risk"].sel(kind=kind, K=K, visits=m, start="near").values.T
            found, look = np.isfinite(runs).all(0), dict(fmt=marker, color=color, mfc="white")
            plotting.mean_points(ax, m[found], runs[:, found], **look)
    ax.set(xlabel="visits of the current symbol", ylabel="risk", ylim=(0, None))
    ax.legend()
    places = [(kind, k) for kind in PREDICTED for k in config.symbols if kind in config.kinds]
    off = [np.exp(np.log(select(result, *p) / predict(*p, config)["risk"]).mean()) for p in places]
    return figure, (
        f"Closed risks (lines; that of linear attention at the mean length) and trained layers "
        f"(points) with {K} symbols. Over all places the risks are {min(off):.3g} to "
        f"{max(off):.3g} times what was predicted before training."
    )


if __name__ == "__main__":
    main(__file__)
