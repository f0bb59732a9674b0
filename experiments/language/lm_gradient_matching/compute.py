"""Choose from the pool of each run by every rule, and ask fresh sentences after the chosen."""

import jax
import numpy as np

from experiments.language import decoders, readouts
from experiments.language import sentences as texts
from experiments.language.lm_gradient_matching import choices
from experiments.language.lm_gradient_matching.config import DRAWN, RULES, Config
from experiments.language.sentences import Writer
from lsa_lab.lm.prefix import Example
from lsa_lab.lm.text import Sentences


def compute(config: Config, *, progress=None, checkpoints=None):
    model = decoders.decoder(config)
    tasks = [texts.of_one_width(task, model.tokenizer, config.width) for _, task in config.tasks]

    def measure(place: int, run: int) -> dict[str, np.ndarray]:
        return measure_pool(config, *tasks[place], place, run, model)

    counts = (config.orders,) * len(RULES) + (config.draws, config.strata)
    rules = np.repeat((*RULES, *DRAWN), counts)
    axes = {
        "score": ("n", "subset", "sentence", "label"),
        "right": ("sentence",),
        "score_without": ("sentence", "label"),
        "validation_score": ("n", "draw", "validation", "label"),
        "validation_right": ("validation",),
        "gap": ("n", "subset"),
        "divergence": ("n", "subset"),
        "random_divergence": ("n",),
    }
    place = progress, checkpoints, "lm_gradient_matching: pools"
    dataset = decoders.table(config, measure, axes, *place, n=config.sizes)
    return dataset.assign_coords(rule=("subset", rules))


def measure_pool(config, sentences, writer, place, run, model) -> dict[str, np.ndarray]:
    """One pool: its gradients, the subsets of every size, and what is answered after each."""
    stream = np.random.SeedSequence([config.seed, place, run])
    first, second = stream.generate_state(2).tolist()
    sizes = config.pool, config.validation, config.fresh
    pool, validation, fresh = sets = sentences.split(first, *sizes, balanced=True)
    keys = jax.random.split(jax.random.key(second), 1 + len(config.sizes))
    ids, last = writer.questions(pool)
    examples = Example(ids, last, np.asarray(pool.labels))
    nothing, words = writer.demonstrations(pool.take([]))[0], writer.label_ids
    rows = choices.gradients(config, model, examples, words, keys[0])
    alone = readouts.ask(readouts.alone, model, nothing, ids, last, words, layer=config.middle)
    by_size = [
        measure_size(config, size, writer, model, sets, rows, alone.rows, key)
        for size, key in zip(config.sizes, keys[1:], strict=True)
    ]
    arrays = {name: np.stack([each[name] for each in by_size]) for name in by_size[0]}
    return arrays | {
        "right": np.asarray(fresh.labels),
        "validation_right": np.asarray(validation.labels),
        "score_without": scores(model, writer, [pool.take([])], fresh)[0],
    }


def measure_size(config, size, writer, model, parts, rows, points, key) -> dict[str, np.ndarray]:
    """What every rule chooses of one size, how far it is from the pool, and the answers after."""
    pool, validation, fresh = parts
    labels = np.asarray(pool.labels)
    chosen = choices.subsets(config, size, rows, points, labels, key)
    chosen = np.concatenate(
        [np.repeat(chosen[: len(RULES)], config.orders, axis=0), chosen[len(RULES) :]]
    )
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    last = rng.random(len(pool.classes))
    prompts = [pool.take(choices.take_turns(rng, each, labels, last)) for each in chosen]
    begin = len(RULES) * config.orders
    tried = prompts[begin : begin + config.draws]
    others = prompts[:begin] + prompts[begin + config.draws :]
    both = Sentences(
        fresh.name,
        fresh.texts + validation.texts,
        np.concatenate([fresh.labels, validation.labels]),
        fresh.classes,
    )
    of_tried, of_others = scores(model, writer, tried, both), scores(model, writer, others, fresh)
    tried_fresh, tried_validation = np.split(of_tried, [len(fresh)], axis=1)
    counts = np.array([np.bincount(labels[each], minlength=len(pool.classes)) for each in chosen])
    random = np.random.default_rng(size).permuted(np.tile(labels, (4000, 1)), axis=1)[:, :size]
    of_random = (random[..., None] == np.arange(len(pool.classes))).sum(1)
    whole = np.bincount(labels, minlength=len(pool.classes))
    return {
        "score": np.concatenate([of_others[:begin], tried_fresh, of_others[begin:]]),
        "validation_score": tried_validation,
        "gap": choices.gaps(rows, chosen),
        "divergence": divergence(counts, whole),
        "random_divergence": divergence(of_random, whole).mean(),
    }


def scores(model, writer: Writer, prompts, queries) -> np.ndarray:  # [S, B, C]
    """The scores of the labels of queries after each prompt."""
    prefixes = np.stack([writer.demonstrations(each)[0] for each in prompts])
    arrays = prefixes, *writer.questions(queries), writer.label_ids
    return readouts.ask(readouts.scores, model, *arrays)


def divergence(counts, whole) -> np.ndarray:  # [..., C], [C] -> [...]
    """KL(p, q) of the shares p of the labels in a subset from those q in the pool."""
    p, q = counts / counts.sum(-1, keepdims=True), whole / whole.sum()
    return (p * np.log(np.where(p > 0, p, 1) / q)).sum(-1)
