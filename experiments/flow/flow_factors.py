"""Does the gradient of a demonstration tell what the demonstration is worth (A1, Eq. 2)?

One demonstration stands before attention that knows some coordinates w_0 of the task w
(docs/theory, "Attention with a prior"). Its relevance is s = x·x_query, its novelty r = y - w_0·x,
its effect what it takes off the squared error of one layer. A1 says that selection by gradients
fails where a model knows too little: the share of known coordinates is swept. Last, trained models
read prompts with and without the last demonstration, as the Bayes rule does.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.flow import measures
from experiments.models.named import NamedModels
from lsa_lab.analyses.amplification import demonstration_flow
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows
from lsa_lab.models import constructions, linear_attention, moments
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt, tokens

KINDS = ("relevant and new", "irrelevant", "learnt")
SCORES = ("gradient", "gradient × input")


@dataclass(frozen=True)
class Config(NamedModels):
    """w ~ N(0, I); covariates are sparse, E|x|² = 1."""

    d: int = 10  # covariates
    knowns: tuple[int, ...] = (1, 3, 5, 7, 9)  # coordinates of w that the weights know
    density: float = 0.3  # of the non-zeros of a demonstration
    query_density: float = 0.5  # of the non-zeros of a query
    draws: int = 40_000  # of task, demonstration and query, for each run
    runs: int = 32
    classes: int = 10  # of relevance and of novelty, by quantiles
    names: tuple[str, ...] = ("linear attention", "softmax attention", "transformer")
    prompts: int = 4000  # for each trained model
    model_classes: int = 4  # of relevance and of novelty among other demonstrations
    seed: int = 1203


SMOKE = dict(knowns=(1, 2, 3), draws=2000, runs=3, classes=3, prompts=200, model_classes=2)
TIERS = {
    "smoke": Config(d=4, **SMOKE, names=("linear attention",), small=True, seed=1),
    "quick": Config(runs=16, names=("linear attention",), prompts=1000, seed=2),
    "full": Config(),
}


def draw_prompts(rng, config, known):  # -> Prompt [M], w_0 [M, d]
    shape, d = (config.draws, config.d), config.d
    w, x, x_query = rng.standard_normal((3, *shape))
    in_weights = np.argsort(rng.random(shape), axis=1) < known
    for covariates, density in ((x, config.density), (x_query, config.query_density)):
        covariates *= (rng.random(shape) < density) / np.sqrt(density * d)
    y, y_query = ((w * covariates).sum(1) for covariates in (x, x_query))
    return Prompt(x[:, None], y[:, None], x_query, y_query), np.where(in_weights, w, 0)


@partial(jax.jit, static_argnames="batch_size")
def measure_effects(prompts, priors, step, batch_size):  # Prompt [M], [M, d] -> {name: [M]}
    def measure(prompt, prior):
        params = constructions.prior_attention(step[None], prior)
        rows = tokens(prompt)
        gradient = demonstration_flow(linear_attention.forward, params, prompt)[0, 0]
        contribution = predict(linear_attention.forward(params, rows))  # less w_0·x_query
        missing = prompt.y_query - prior @ prompt.x_query
        return {
            "s": prompt.x[0] @ prompt.x_query,
            "r": prompt.y[0] - prior @ prompt.x[0],
            "gradient": jnp.linalg.norm(gradient),
            "gradient × input": jnp.abs(gradient @ rows[0]),
            "contribution": contribution,
            "before": missing**2,
            "after": (missing - contribution) ** 2,
        }

    return jax.lax.map(lambda each: measure(*each), (prompts, priors), batch_size=batch_size)


def bayes_contribution(prompts, priors):  # -> [M]
    """Return what one demonstration adds to the Bayes rule's answer for w ~ N(w_0, P).

    P selects the coordinates that the weights do not know: x_query·Px r / |Px|².
    """
    x, unknown = prompts.x[:, 0], priors == 0
    missing = prompts.y[:, 0] - (priors * x).sum(1)
    sizes = (x**2 * unknown).sum(1)
    return (x * unknown * prompts.x_query).sum(1) * missing / np.where(sizes > 0, sizes, 1)


def summarise(effects, bayes, count):  # bayes: what the Bayes rule's answer gains
    s, r = effects["s"], effects["r"]
    irrelevant, learnt = (np.abs(x) <= 1e-12 * np.sqrt((x**2).mean()) for x in (s, r))
    kinds = ~irrelevant & ~learnt, irrelevant & ~learnt, ~irrelevant & learnt
    inside = kinds[0]
    # Elsewhere both are zero up to rounding, which must not decide ranks.
    reduction = np.where(inside, effects["before"] - effects["after"], 0)
    contribution = np.where(inside, effects["contribution"], 0)
    classes = (measures.find_classes(np.abs(factor[inside]), count) for factor in (s, r))
    grid = measures.average_cells(reduction[inside], *classes, count)
    sizes = [[np.median(effects[name][kind]) for kind in kinds] for name in SCORES]
    expected = contribution * (2 * bayes - contribution)  # reduction, given the prompt
    return {
        "size": np.array(sizes) / np.array(sizes)[:, :1],
        "r2": np.array(measures.fit_grid(grid)),
        "error": effects["after"][inside].mean() / effects["before"][inside].mean(),
        "rank": [measures.correlate_ranks(reduction, x) for x in (effects["gradient"], expected)],
    }


def run_known(config, item):  # -> {name: [R, ...]}
    (index, known), rows = item, []
    fourth = 3 / (config.density * config.d) + (config.d - 1) / config.d  # E|x|⁴
    # The step of one demonstration with the least mean error for any w_0.
    step, size = np.asarray(1 / fourth), min(config.draws, 2000)
    for run in range(config.runs):
        rng = np.random.default_rng([config.seed, index, run])
        prompts, priors = draw_prompts(rng, config, known)
        effects = jax.device_get(measure_effects(prompts, priors, step, size))
        rows.append(summarise(effects, bayes_contribution(prompts, priors), config.classes))
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def answer_twice(models, prompts):  # Model [R], Prompt [R, B] -> [2, R, B]
    def answer(row):
        model, batch = row
        return jnp.stack([model.predict(jax.vmap(measures.drop_last)(batch)), model.predict(batch)])

    models = jax.tree.map(jnp.asarray, models)
    rows = moments.compiled(partial(jax.lax.map, answer))((models, prompts))
    return np.asarray(rows, float).swapaxes(0, 1)


def map_gains(before, after, best, factors, count):  # [B] x 3 -> [count, count]
    """Return the mean of what the last demonstration takes off the error, in classes of factors."""
    classes = (measures.find_classes(factors[name], count) for name in ("gradient", "surprise"))
    return measures.average_cells((before - best) ** 2 - (after - best) ** 2, *classes, count)


def compare_model(config, runs):  # -> {name: [R, ...]}
    """Return the likeness of a model's map to the Bayes rule's, and the excess risks of both."""
    prompts = measures.draw_prompts(config.seed, runs.spec, config.prompts)
    exact = jax.tree.map(lambda leaf: leaf.astype(float), prompts)
    factors = jax.device_get(measures.measure_bayes(exact, runs.spec.task.noise_std**2))
    trained, best = runs.models(), factors["after"]
    pairs = [(factors["before"], best)]  # answers without and with it: Bayes, trained, untrained
    others = trained, trained.replace(params=runs.initial)
    pairs += [answer_twice(model, prompts) for model in others]
    likeness = []
    for run in range(len(best)):
        factor = {name: values[run] for name, values in factors.items()}
        rows = [(x[run], y[run], best[run], factor, config.model_classes) for x, y in pairs]
        maps = [map_gains(*row).ravel() for row in rows]
        likeness.append(np.corrcoef(maps)[0, 1:])
    target = np.asarray(exact.y_query)
    risks = [((pair[1] - target) ** 2).mean(1) for pair in pairs[:2]]
    return {"likeness": np.stack(likeness), "risk": np.stack(risks, axis=1)}


def compute(config, models):
    items = list(enumerate(config.knowns))
    rows = compute_each("known coordinates", items, partial(run_known, config))
    dims = {"size": ("score", "kind"), "r2": ("form",), "error": (), "rank": ("predictor",)}
    dims = {name: ("known", "run", *inner) for name, inner in dims.items()}
    data = stack_rows(rows, dims)
    places = {"known": list(config.knowns), "score": list(SCORES), "kind": list(KINDS)}
    places |= {"form": ["product", "sum"], "predictor": ["gradient", "highest"]}
    rows = compute_each("models", [*models.values()], partial(compare_model, config))
    dims = {"likeness": ("model", "run", "stage"), "risk": ("model", "run", "rule")}
    compared = stack_rows(rows, dims)
    stages = {"stage": ["trained", "untrained"], "rule": ["Bayes rule", "model"]}
    many = xr.Dataset(compared, {"model": list(models), **stages})
    return xr.DataTree.from_dict({"one": xr.Dataset(data, places), "many": many})


FAR = 1.5  # times the Bayes rule's excess risk: a model above it has not converged


def select(result, name, middle=True):  # -> DataArray (run, ...)
    """Return a summary where half of the coordinates are known, or where the fewest are."""
    known = result["one"].sizes["known"] // 2 if middle else 0
    return result["one"][name].isel(known=known).transpose("run", ...)


def gradient_size(result, kind):  # -> [R]
    return select(result, "size").sel(score="gradient", kind=kind).values


def product_less_sum(result):  # -> [R]
    r2 = select(result, "r2")
    return (r2.sel(form="product") - r2.sel(form="sum")).values


def share_of_ceiling(result, middle=True):  # -> [R]
    rank = select(result, "rank", middle)
    return (rank.sel(predictor="gradient") / rank.sel(predictor="highest")).values


def likeness_gained(result, model):  # -> [R], or None
    group = result["many"]
    if model not in group["model"] or find_risk_ratio(group.sel(model=model)) > FAR:
        return None
    likeness = group["likeness"].sel(model=model)
    return (likeness.sel(stage="trained") - likeness.sel(stage="untrained")).values


def find_risk_ratio(group):
    risk = group["risk"].mean("run")
    return float((risk.sel(rule="model") / risk.sel(rule="Bayes rule")).max())


SHARE = "the rank correlation with the reduction of the error over the highest one that a "
SHARE += "predictor can have, given the prompt"
CLAIMS = (
    Claim("gradient", "A1, Eq. 2, dichotomy", "Almost no gradient flows from a demonstration that "
          "is {kind}", "the median size of its gradient over that of relevant and new ones",
          gradient_size, at_most=0.1, over={"kind": KINDS[1:]},
          null="none: of gradient times input the ratio is exactly 0, by a theorem"),
    Claim("helps", "A1, Eq. 2, effect", "A relevant and new demonstration lowers the mean error",
          "the error of one layer with the demonstration over that without it",
          lambda result: select(result, "error").values, at_most=1.0, statistic="ratio",
          null="none: the ratio is paired, and 1 without an effect"),
    Claim("product_less_sum", "A1, Open question 1", "What a demonstration takes off the error is "
          "a product of relevance and novelty rather than a sum", "R² over classes of both of the "
          "best f(s) g(r) less that of the best f(s) + g(r)", product_less_sum, at_least=0.0,
          null="none: the difference is paired, both forms have as many free numbers"),
    Claim("share_of_ceiling", "A1, Effectiveness", "The size of its gradient predicts what a "
          "demonstration takes off the error", SHARE, share_of_ceiling, at_least=0.0,
          null="none: 0 without a relation"),
    Claim("knows_little", "A1, Limitation, knowledge", "The gradient says less about the effect of "
          "a demonstration where the model knows less",
          f"{SHARE}, with the fewest known coordinates less with half of them known",
          lambda result: share_of_ceiling(result, middle=False) - share_of_ceiling(result),
          at_most=0.0, null="none: the difference is 0 without an effect of knowledge"),
    Claim("alike", "derived here", "Training brings what a demonstration of a given gradient and "
          "surprise is worth to {model} to what it is worth to the Bayes rule",
          "the correlation of both maps of mean gains, less the same before training",
          likeness_gained, at_least=0.0, statistic="median", over={"model": TIERS["full"].names},
          null="none: the difference is paired"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.6, (1, 2))
    places = np.arange(len(KINDS))
    for score, color, shift in zip(SCORES, plotting.COLOURS, (-0.18, 0.18), strict=False):
        sizes = select(result, "size").sel(score=score).mean("run")
        left.bar(places + shift, sizes, 0.34, color=color, label=score)
    left.set_xticks(places, KINDS)
    left.set(ylabel="median size, relative", title="Gradients by kind of demonstration")
    left.legend()
    shares = np.array(config.knowns) / config.d
    names = {"best predictor": "highest", "gradient": "gradient"}
    values = {label: result["one"]["rank"].sel(predictor=each) for label, each in names.items()}
    looks = plotting.looks(names, "^o", (plotting.BLACK, plotting.BLUE))
    plotting.series(right, shares, values, looks, capsize=2)
    right.axhline(0, color="grey", lw=0.8)
    right.set(
        xlabel="share of the task that the model knows", ylabel="rank correlation with effect"
    )
    right.set_title("What gradients say of the effect")
    right.legend()
    irrelevant = gradient_size(result, "irrelevant").mean()
    share = [x.mean() for x in (share_of_ceiling(result), share_of_ceiling(result, middle=False))]
    return figure, (
        f"An irrelevant demonstration keeps {irrelevant:.0%} of the gradient of a relevant and new "
        f"one. The gradient's rank correlation with the effect is {share[0]:.0%} of the highest "
        f"possible where half of the task is known, {share[1]:.0%} where the model knows least. "
        f"Trained models have at most {find_risk_ratio(result['many']):.2f} times the Bayes rule's "
        "risk."
    )


if __name__ == "__main__":
    main(__file__)
