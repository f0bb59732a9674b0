"""Do demonstrations that match gradients teach a language model better (A3)?

A prefix, trainable rows before a text, learns the labels of a pool of texts while the model is
frozen; demonstrations are matched by the gradients of these texts along that training. The
baselines are random subsets, random ones with the label shares of the pool, and no demonstrations
at all. In a prompt the classes take turns, the same class last in all prompts of a pool: the order
alone moves the answers more than the choice does. The answers are about texts in no pool, and their
loss is the cross-entropy of the label among both label words. Units are collections of texts.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.language import models as language_models
from experiments.language import texts
from experiments.language.drawing import draw_rows, name_rows
from experiments.matching import measures
from lsa_lab.lab import Claim, compute_each, main, plotting, stack_rows
from lsa_lab.lm import prefix
from lsa_lab.selection import baselines, gradient_matching
from lsa_lab.selection.prefix import Recipe, example_gradients, mean_loss

MATCHED = "matched"
BASELINES = ("random", "stratified", "none")
RULES = (MATCHED, *BASELINES)
TOGETHER = 8  # examples that are differentiated side by side


@dataclass(frozen=True)
class Config:
    model: str = "smollm2"  # a source of lsa_lab.lm, or the path of a GGUF file or of a folder
    collections: tuple[str, ...] = texts.TWELVE
    pools: int = 2  # of each collection
    width: int = 20  # tokens of a question
    m: int = 24  # texts of a pool
    shots: int = 8  # demonstrations that are chosen
    fresh: int = 12  # texts that are asked about
    orders: int = 2  # in which the matched demonstrations stand
    draws: int = 3  # random subsets, and as many stratified ones
    prefix_length: int = 4  # rows of the prefix
    epochs: int = 2  # of its training
    batch: int = 8
    saves: int = 2  # checkpoints whose gradients are matched
    learning_rate: float = 0.01  # of the prefix
    seed: int = 1407


SMOKE = dict(width=8, m=8, shots=4, fresh=4, orders=1, draws=2, batch=4)
TIERS = {
    "smoke": Config(language_models.RANDOM, (texts.INVENTED,), 2, **SMOKE, seed=1),
    "quick": Config(collections=("rotten tomatoes", "space/hockey"), pools=1, m=12, shots=4,
                    fresh=6, orders=1, draws=1, seed=2),
    "full": Config(),
}  # fmt: skip


@partial(jax.jit, static_argnames="config")
def differentiate(params, path, examples, words, *, config):  # [C, k, D], Example [m] -> [m, p]
    loss = partial(prefix.loss, config=config, label_ids=words)
    return example_gradients(loss, params, path, examples, together=TOGETHER)


def write_examples(ids, labels):  # [m, W], [m] -> Example [m]
    return prefix.Example(ids, jnp.full(len(ids), ids.shape[1] - 1), labels)


def find_gradients(config, model, words, ids, labels, key, label):  # -> [m, C k D]
    sizes = dict(epochs=config.epochs, batch=config.batch, saves=config.saves)
    recipe = Recipe(config.prefix_length, learning_rate=config.learning_rate, **sizes)
    loss = partial(prefix.loss, config=model.config, label_ids=jnp.asarray(words))

    def batch_loss(rows, batch, data):
        return mean_loss(loss, data[2], rows, write_examples(*batch))

    keys = jax.random.split(key)
    starts = prefix.init(keys[0], model.params, config.prefix_length)[None]
    # The weights are leaves of the run: as constants they would be part of the program.
    data = jax.tree.map(lambda leaf: np.asarray(leaf)[None], (ids, labels, model.params))
    path = measures.train_path(batch_loss, recipe, starts, keys[1:], data, label)[0]
    examples = write_examples(ids, labels)
    gradients = differentiate(model.params, path, examples, words, config=model.config)
    return np.asarray(gradients, float)


def choose(config, gradients, labels, key):  # -> [S, shots]
    """Return the matched subset in each of its orders, random subsets, and stratified ones."""
    keys = jax.random.split(key, 1 + config.draws)
    matched = np.asarray(gradient_matching.match(gradients, config.shots).indices)
    random = baselines.random_subsets(keys[0], config.m, config.shots, config.draws)
    strata = [baselines.stratified(key, labels, config.shots) for key in keys[1:]]
    return np.concatenate([[matched] * config.orders, random, strata])


def take_turns(rng, members, labels, last):  # [n], [m], [2] -> [n]
    """Return members in a random order in which their classes take turns.

    The i-th of the k members of class c has the place (i + last_c) / k, with last_c in (0, 1).
    """
    order = rng.permutation(members)
    places = np.empty(len(order))
    for c, shift in enumerate(last):
        chosen = labels[order] == c
        places[chosen] = (np.arange(chosen.sum()) + shift) / max(chosen.sum(), 1)
    return order[np.argsort(places, kind="stable")]


def find_loss(model, pool, shown, asked):  # [S] rows of texts, [B] -> [S]
    """Return the mean cross-entropy of the labels of the texts asked about, after each prompt."""
    prefixes = np.stack([pool.write(rows) for rows in shown])
    questions = np.stack([pool.questions[asked]] * len(shown))
    prompts = prefixes, questions, pool.words
    reading = language_models.read_prompts(model.params, *prompts, config=model.config)
    signs = 2 * pool.labels[asked] - 1
    return np.logaddexp(0, -signs * np.asarray(reading.margin, float)).mean(1)


def find_divergence(labels):  # [S, n] -> [S]
    """Return KL(subset | pool) of the label shares; the pool has both classes equally often."""
    shares = np.stack([1 - labels.mean(1), labels.mean(1)])
    return (shares * np.log(np.where(shares > 0, 2 * shares, 1))).sum(0)


def measure_pool(config, model, pool, seeds):  # -> {"loss": [rules], "divergence": [rules]}
    """Choose from one pool by every rule, and ask about fresh texts after the chosen."""
    rng = np.random.default_rng(seeds)
    rows, asked = texts.draw_rows(rng, pool.labels, config.m, config.fresh)
    labels = pool.labels[rows]
    keys = jax.random.split(jax.random.key(int(rng.integers(2**31))))
    label = f"prefix {'-'.join(map(str, seeds[1:]))}"
    examples = pool.words, pool.questions[rows], labels
    gradients = find_gradients(config, model, *examples, keys[0], label)
    chosen, last = choose(config, gradients, labels, keys[1]), rng.random(2)
    prompts = [rows[take_turns(rng, members, labels, last)] for members in chosen]
    parts = [config.orders, config.orders + config.draws]

    def average(values):
        return [part.mean() for part in np.split(values, parts)]

    without = find_loss(model, pool, [np.zeros(0, int)], asked)
    losses = [*average(find_loss(model, pool, prompts, asked)), without[0]]
    divergences = [*average(find_divergence(labels[chosen])), 0.0]
    return {"loss": np.array(losses), "divergence": np.array(divergences)}


def compute(config, models):
    model = language_models.load_model(config.model)
    pools = texts.read_pools(config, model.tokenizer)
    items = [(c, p) for c in range(len(pools)) for p in range(config.pools)]

    def run(item):
        return measure_pool(config, model, pools[item[0]], [config.seed, *item])

    rows = compute_each("pools", items, run)
    axes = dict.fromkeys(rows[0], ("collection", "pool", "rule"))
    data = stack_rows(rows, axes, (len(pools), config.pools))
    return xr.Dataset(data, {"collection": list(config.collections), "rule": list(RULES)})


def subtract(result, baseline, name="loss"):  # -> [R], of collections
    """Return what ``name`` is after matched demonstrations less that of a baseline."""
    means = result[name].mean("pool")
    return (means.sel(rule=MATCHED) - means.sel(rule=baseline)).values


WHOM = {"random": "random ones", "none": "none"}
WHOM["stratified"] = "random ones with the label shares of the pool"
N = TIERS["full"].shots
PAIRED = "none: the difference is paired, and 0 without an effect"


def answer_claim(baseline, null=PAIRED):
    """Return the claim that matched demonstrations answer better than a baseline."""
    statement = f"After {N} matched demonstrations a language model answers better than after"
    quantity = f"the cross-entropy of labels in nats, after matched less after {WHOM[baseline]}"
    sample = partial(subtract, baseline=baseline)
    name = f"matched_less_{baseline}"
    return Claim(name, "A3, Abstract, open models", f"{statement} {WHOM[baseline]}", quantity,
                 sample, at_most=0.0, null=null)  # fmt: skip


CLAIMS = (
    answer_claim("random", "matched_less_stratified"),
    answer_claim("stratified"),
    answer_claim("none"),
    Claim("label_shares", "A3, Table 6", f"{N} matched texts have label shares closer to the "
          "shares of their pool than random ones", "the KL divergence of the label shares from "
          "those of the pool, matched less random",
          partial(subtract, baseline="random", name="divergence"), at_most=0.0, null=PAIRED),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.3, (1, 2))
    differences = [subtract(result, baseline) for baseline in BASELINES]
    names = [WHOM["random"], "random ones,\nequal shares", "no demonstrations"]
    draw_rows(left, range(3), differences)
    name_rows(left, names)
    left.set(xlabel="nats less those after", title="Loss after matched ones")
    values = result["divergence"].mean("pool")
    draw_rows(right, range(3), [values.sel(rule=rule).values for rule in RULES[:3]])
    name_rows(right, RULES[:3])
    right.set(xlabel="KL divergence from the pool", title="Label shares")
    random, stratified, none = (np.mean(each) for each in differences)
    return figure, (
        f"After {config.shots} matched demonstrations of {config.m} the loss of "
        f"{language_models.describe_model(config.model)} is {random:+.3f} nats from that after "
        f"random ones, {stratified:+.3f} from that after random ones with the label shares of the "
        f"pool, and {none:+.3f} from that without demonstrations. Points are means over "
        f"{len(differences[0])} collections (strokes), with 95 % intervals."
    )


if __name__ == "__main__":
    main(__file__)
