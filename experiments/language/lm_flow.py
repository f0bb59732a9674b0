"""Does depth amplify the ratio of two gradients in a language model, and does GradS help it (A1)?

A demonstration's gradient is that of the margin between the two labels' logits; after an earlier
layer the margin is read through the logit lens. Gradients of two demonstrations are compared with
each alone before the query, and with several in one prompt: as the model reads the prompt, and
averaged over rotations, in which each demonstration stands at every place once. What a
demonstration is worth is the log-probability of the right label with it alone before the query.
Units are collections of texts.
"""

from dataclasses import dataclass

import jax
import numpy as np
import xarray as xr
from scipy.stats import rankdata

from experiments.language import models as language_models
from experiments.language import texts
from experiments.language.drawing import draw_rows, name_rows
from lsa_lab.lab import Claim, compute_each, geometric_mean, main, plotting, stack_rows

MODES = ("alone", "in one prompt", "averaged over rotations")
MODELS = ("trained", "untrained")
RIVALS = ("random", "similarity", "BM25")  # of A1, in a fixed list
RULES = ("GradS", *RIVALS)
LABEL = "the same label"
PREDICTORS = ("gradient", "similarity", "BM25", LABEL)


@dataclass(frozen=True)
class Config:
    model: str = "smollm2"  # a source of lsa_lab.lm, or the path of a GGUF file or of a folder
    collections: tuple[str, ...] = texts.TWELVE
    sets: int = 2  # of texts, for each collection
    width: int = 24  # tokens of a question
    places: int = 3  # layers after which gradients are taken, evenly from the first to the last
    shots: int = 4  # demonstrations of a prompt
    rotated: int = 2  # queries after each rotation of them
    pool: int = 10  # demonstrations that stand alone before a query, to select from
    asked: int = 3  # queries for which demonstrations are selected
    draws: int = 2  # random selections for each query
    seed: int = 1801


SMOKE = dict(width=8, places=2, shots=2, pool=4, asked=2, draws=1)
QUICK = SMOKE | dict(sets=1, width=16, rotated=1)
TIERS = {
    "smoke": Config(language_models.RANDOM, (texts.INVENTED,), **SMOKE, seed=1),
    "quick": Config(collections=("rotten tomatoes", "space/hockey"), **QUICK, seed=2),
    "full": Config(),
}


def find_log_sizes(squares, spans):  # [m, B, l, P] -> [m, n, B, l]
    sums = [squares[..., first:stop].sum(-1) for first, stop in spans]
    return np.log(np.stack(sums, axis=1)) / 2


def find_disparity(logs):  # [n, ...] -> [...]
    """Return the mean |log ratio| of two gradients, over all pairs of demonstrations."""
    i, j = np.triu_indices(len(logs), 1)
    return np.abs(logs[i] - logs[j]).mean(0)


def read(model, prefixes, questions, pool, layers=()):
    reading = language_models.read_prompts(
        model.params, prefixes, questions, pool.words, config=model.config, layers=layers
    )
    return jax.tree.map(lambda array: np.asarray(array, float), reading)


def compare_rotations(model, pool, shown, queries, layers):  # -> [l], [l]
    """Return the disparity in one prompt, as read and with gradients averaged over rotations."""
    count = len(shown)
    places = (np.arange(count)[:, None] + np.arange(count)) % count  # of each demonstration
    prefixes = np.stack([pool.write(shown[np.argsort(place)]) for place in places])
    asked = np.stack([pool.questions[queries]] * count)
    squares = read(model, prefixes, asked, pool, layers).squares
    logs = find_log_sizes(squares, pool.find_spans(count))  # [rotation, place, B, l]
    as_read = np.mean([find_disparity(each) for each in logs], axis=0)
    logs = np.stack([each[place] for each, place in zip(logs, places, strict=True)])
    return as_read.mean(0), find_disparity(logs.mean(0)).mean(0)


def correlate(score, worth):  # [m, B] x 2 -> []
    """Return the rank correlation over the pool, a mean over queries; 0 for a constant score."""
    rows = []
    for x, y in zip(score.T, worth.T, strict=True):
        varies = np.ptp(x) > 0 and np.ptp(y) > 0
        rows.append(np.corrcoef(rankdata(x), rankdata(y))[0, 1] if varies else 0.0)
    return np.mean(rows)


def find_log_probability(margin, labels):  # [..., B], [B] -> [..., B], of the right label
    return -np.logaddexp(0, -(2 * labels - 1) * margin)


def ask_selected(model, pool, singles, queries, scores, config):  # [rules + draws, m, B] -> [., B]
    """Return log-probabilities after the demonstrations of the largest scores, the best last."""
    chosen = scores.argsort(axis=1, kind="stable")[:, -config.shots :]  # [rules, shots, B]
    rows = chosen.transpose(0, 2, 1).reshape(-1, config.shots)
    prefixes = np.stack([pool.write(singles[row]) for row in rows])
    asked = np.concatenate([pool.questions[queries]] * len(scores))[:, None]
    margin = read(model, prefixes, asked, pool).margin.reshape(len(scores), -1)
    return find_log_probability(margin, pool.labels[queries])


def measure_set(config, model, pool, seeds):
    rng = np.random.default_rng(seeds)
    sizes = config.shots, config.pool, config.asked
    shown, singles, queries = texts.draw_rows(rng, pool.labels, *sizes)
    layers = language_models.select_layers(model.config.num_layers, config.places)
    key = jax.random.key(int(rng.integers(2**31)))
    drawn = language_models.draw_untrained(key, config=model.config, dtype=np.float32)
    prefixes = np.stack([pool.write([row]) for row in singles])  # each alone
    asked = np.stack([pool.questions[queries]] * len(singles))
    disparities = []
    for each in (model._replace(params=drawn), model):
        reading = read(each, prefixes, asked, pool, layers)  # margins [m, B]
        logs = find_log_sizes(reading.squares, pool.find_spans(1))[:, 0]  # [m, B, l]
        together = compare_rotations(each, pool, shown, queries[: config.rotated], layers)
        disparities.insert(0, [find_disparity(logs).mean(0), *together])
    ids, middle = pool.questions[[*singles, *queries]], model.config.num_layers // 2
    rows = language_models.average_rows(model.params, ids, config=model.config, layer=middle)
    words = [[pool.texts[row] for row in part] for part in (singles, queries)]
    scores = {
        "gradient": logs[..., -1],
        "similarity": language_models.find_cosines(rows[: config.pool], rows[config.pool :]),
        "BM25": texts.score_bm25(*words),
        LABEL: (pool.labels[singles][:, None] == pool.labels[queries]).astype(float),
    }
    worth = find_log_probability(reading.margin, pool.labels[queries])
    chance = rng.random((config.draws, config.pool, config.asked))
    tried = np.concatenate([[scores[name] for name in PREDICTORS[:3]], chance])
    answers = ask_selected(model, pool, singles, queries, tried, config).mean(1)
    by_rule = dict(zip(("GradS", "similarity", "BM25"), answers, strict=False))
    by_rule["random"] = answers[3:].mean()
    return {
        "disparity": np.array(disparities),
        "correlation": np.array([correlate(scores[name], worth) for name in PREDICTORS]),
        "log_probability": np.array([by_rule[rule] for rule in RULES]),
    }


def compute(config, models):
    model = language_models.load_model(config.model)
    pools = texts.read_pools(config, model.tokenizer)
    items = [(c, s) for c in range(len(pools)) for s in range(config.sets)]

    def run(item):
        return measure_set(config, model, pools[item[0]], [config.seed, *item])

    rows = compute_each("sets of texts", items, run)
    axes = {"disparity": ("weights", "mode", "layer"), "correlation": ("predictor",)}
    axes["log_probability"] = ("rule",)
    axes = {name: ("collection", "set", *own) for name, own in axes.items()}
    data = stack_rows(rows, axes, (len(pools), config.sets))
    names = {"collection": list(config.collections), "weights": list(MODELS), "mode": list(MODES)}
    names |= {"predictor": list(PREDICTORS), "rule": list(RULES)}
    layers = list(language_models.select_layers(model.config.num_layers, config.places))
    return xr.Dataset(data, names | {"layer": layers})


def find_growth(result, mode, weights="trained"):  # -> [R], of collections
    """Return the disparity after the last layer over that after the first."""
    sizes = result["disparity"].sel(mode=mode, weights=weights).mean("set")
    return (sizes.isel(layer=-1) / sizes.isel(layer=0)).values


def beyond_untrained(result, mode):  # -> [R]
    return find_growth(result, mode) / find_growth(result, mode, "untrained")


def predicts(result, predictor):  # -> [R]
    return result["correlation"].sel(predictor=predictor).mean("set").values


def predicts_less(result, predictor):  # -> [R]
    return predicts(result, "gradient") - predicts(result, predictor)


def grads_less(result, rival):  # -> [R], in nats
    means = result["log_probability"].mean("set")
    return (means.sel(rule="GradS") - means.sel(rule=rival)).values


SHOWN = "(demonstrations {mode})"
GROWTH = "the disparity of gradients after the last layer over that after the first"
PAIRED = "none: the difference is paired, and 0 if both do alike"
CLAIMS = (
    Claim("beyond_untrained", "A1, Open question 2", "Training raises the factor by which a "
          f"language model's layers make gradients unequal {SHOWN}", f"{GROWTH}, trained over "
          "untrained weights", beyond_untrained, at_least=1.0, statistic="ratio",
          over={"mode": MODES}, null="none: the ratio is paired, and 1 if training does nothing"),
    Claim("growth", "A1, Open question 2", "A language model's layers make the gradients of "
          f"demonstrations more unequal {SHOWN}", GROWTH, find_growth, at_least=1.0,
          statistic="ratio", over={"mode": MODES}, null="beyond_untrained"),
    Claim("predicts", "A1, Effectiveness", "In a language model {predictor} predicts what a "
          "demonstration is worth", "the rank correlation with the log-probability of the query's "
          "label after the demonstration alone", predicts, at_least=0.0,
          over={"predictor": PREDICTORS}, null="none: by chance 0"),
    Claim("predicts_less", "A1, Effectiveness",
          "In a language model the gradient predicts what a demonstration is worth better than "
          "{predictor} does", "the rank correlation with worth of the gradient less that of the "
          "other", predicts_less, at_least=0.0, over={"predictor": PREDICTORS[1:]}, null=PAIRED),
    Claim("grads_less", "A1, Abstract", "GradS selects better demonstrations for a language model "
          "than {rival} does", "the log-probability of the right label after demonstrations that "
          "GradS selects less that after those of the other rule, on the same queries", grads_less,
          at_least=0.0, over={"rival": RIVALS}, null=PAIRED),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.7, (1, 2))
    relative = result["disparity"].mean("set") / result["disparity"].mean("set").isel(layer=0)
    for weights, more in ((MODELS[0], {}), (MODELS[1], dict(ls="--", mfc="white"))):
        for i, mode in enumerate(MODES):
            runs = relative.sel(mode=mode, weights=weights).transpose("collection", "layer")
            label = mode if weights == MODELS[0] else "untrained" if i == 0 else None
            look = dict(color=plotting.COLOURS[i], marker="os^"[i], label=label, capsize=1.5) | more
            places = runs["layer"] + 0.3 * (i - 1) * (runs["layer"] > runs["layer"][0])
            plotting.mean_points(left, places, runs, statistic="ratio", **look)
    left.set_ylim(0.8 * min(1, float(relative.min())), 1.2 * float(relative.max()))
    plotting.log_axes(left, y=True, y_ticks=(0.25, 0.5, 1, 2, 4, 8, 16, 32))
    left.axhline(1, color="grey", lw=0.8)
    left.set(xlabel="layer", ylabel="disparity / that of layer 1", title="Gradients by layer")
    left.legend()
    gains = [grads_less(result, rival) for rival in RIVALS]
    draw_rows(right, range(len(RIVALS)), gains)
    name_rows(right, RIVALS)
    right.set(xlabel="nats of the right label", title="GradS less other rules")
    alone, as_read, _ = (geometric_mean(beyond_untrained(result, mode)) for mode in MODES)
    gradient = predicts(result, "gradient").mean()
    return figure, (
        f"Training multiplies the growth of the disparity over the layers of "
        f"{language_models.describe_model(config.model)} by {alone:.2f} with each demonstration "
        f"alone, and by {as_read:.2f} with {config.shots} in one prompt. Demonstrations that GradS "
        f"selects change the log-probability of the right label by {gains[0].mean():+.2f} nats "
        f"against random ones; a nat is a factor e of the probability. The rank correlation of "
        f"gradient and worth is {gradient:.2f}. Points are means over {len(gains[0])} collections "
        "(strokes) with 95 % intervals."
    )


if __name__ == "__main__":
    main(__file__)
