"""Close heads at cached streams, and one by one; find the best common maps of a prompt."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.language import decoders
from experiments.language import sentences as texts
from experiments.language.lm_heads import closings
from experiments.language.lm_heads.answers import changes
from experiments.language.lm_heads.closings import Closings
from experiments.language.lm_heads.config import Config
from experiments.language.sentences import Writer
from lsa_lab.analyses import heads
from lsa_lab.lm import decoder, weights
from lsa_lab.lm.text import Sentences
from lsa_lab.store.results import in_short


@functools.partial(jax.jit, static_argnames="config")
def _stream(params, ids, *, config):  # [T] -> [L+1, T, D]
    return decoder.forward(params, decoder.embed(params, ids, config), config).stream


def _word_means(rows, whole, ids) -> np.ndarray:  # [L+1, T, D] x 2, [T] -> [L+1]
    """|rows - mean of their word| / |whole| of words that recur: Σ n/(n-1) |h - h̄|² is unbiased."""
    words, counts = np.unique(ids, return_counts=True)
    of_word = (words[counts > 1, None] == ids).astype(float)  # [words, T]
    counts, recur = counts[counts > 1], of_word.any(0)
    means = np.einsum("kt,ltd->lkd", of_word / counts[:, None], rows)
    missed = rows - np.einsum("kt,lkd->ltd", of_word, means)
    factor = np.sqrt(of_word.T @ (counts / (counts - 1)))
    pair = (missed * factor[:, None])[:, recur], whole[:, recur]
    part, all_of_it = (np.linalg.norm(each, axis=(1, 2)) for each in pair)
    return np.divide(part, all_of_it, out=np.zeros_like(part), where=all_of_it > 0)


class Run:
    """The prompt and the sentences of one set: those that heads are chosen on come first."""

    def __init__(self, config: Config, model, sentences: Sentences, writer: Writer, place, number):
        self.config, self.model, self.writer = config, model, writer
        self.stream = np.random.SeedSequence([config.seed, place, number]).generate_state(2)
        sizes = (config.shots, config.searched, config.fresh, config.masked_fresh, config.map_shots)
        parts = sentences.split(int(self.stream[0]), *sizes, balanced=True)
        demonstrations, searched, fresh, masked, shared = parts
        self.prefix = writer.demonstrations(demonstrations)[0]
        self.shared = writer.demonstrations(shared)[0]
        both = [writer.questions(each) for each in (searched, fresh)]
        self.ids, self.last = (np.concatenate(pair) for pair in zip(*both, strict=True))
        self.labels = np.concatenate([searched.labels, fresh.labels])
        self.masked = writer.questions(masked)

    @property
    def key(self):
        return jax.random.key(int(self.stream[1]))

    def closings(self, layers, questions) -> Closings:
        return Closings(self.model, self.prefix, *questions, self.writer.label_ids, layers)

    def slopes(self, params) -> np.ndarray:  # [searched, L, H]
        few = self.config.searched
        rows = self.prefix, self.ids[:few], self.last[:few], self.labels[:few]
        words, shape = self.writer.label_ids, self.model.config
        return np.asarray(closings.slopes(params, *rows, words, config=shape), float)


def compute(config: Config, *, progress=None, checkpoints=None):
    model = closings.add_write_biases(decoders.decoder(config))
    tasks = [texts.of_one_width(task, model.tokenizer, config.width) for _, task in config.tasks]

    def table(part, axes):
        def measure(place, number):
            return part(Run(config, model, *tasks[place], place, number))

        name = part.__name__
        folder = checkpoints and checkpoints / name
        place = progress, folder, f"lm_heads: {name}"
        return decoders.table(config, measure, axes, *place, layer=config.layers)

    head, masked = ("layer", "head", "sentence", "label"), ("masked_sentence", "label")
    front = head[:1] + head[2:]
    closed = {"whole": head[2:], "right": head[2:3], "zero": head, "mean": head}
    pruned = dict.fromkeys(("absolute_slope", "random_slope"), ("depth", "head"))
    pruned |= {"open": masked, "masked": ("mask", *masked), "drawn": ("draw", *masked)}
    return xr.merge(
        [
            table(close_layers, closed | {"none": front, "top_kept": front}),
            table(keep_a_part, pruned),
            table(common_maps, {"by_word": ("after",)}),
        ]
    ).map(in_short)


def close_layers(run: Run) -> dict[str, np.ndarray]:
    """Answers with the heads of some layers closed, one by one, all, and all but the top one."""
    config, shape, few = run.config, run.model.config, run.config.searched
    closing = run.closings(config.layers, (run.ids, run.last))
    whole = closing.scores(config.layers[-1])
    means = closings.mean_writes(run.model.params, run.prefix, config=shape)
    rows = {name: [] for name in ("zero", "mean", "none", "top_kept")}
    for layer in config.layers:
        every = [(layer, head) for head in range(shape.num_heads)]
        masks = [closings.close_heads(shape, place) for place in every]
        zero = np.stack([closing.scores(layer, mask) for mask in masks])
        fills = [means[place] for place in every]
        mean = [closing.scores(layer, *each) for each in zip(masks, fills, strict=True)]
        top = int(changes(whole[:few], zero[:, :few]).argmax())
        others = [place for place in every if place[1] != top]
        rows["zero"].append(zero)
        rows["mean"].append(np.stack(mean))
        rows["none"].append(closing.scores(layer, closings.close_heads(shape, *every)))
        rows["top_kept"].append(closing.scores(layer, closings.close_heads(shape, *others)))
    return {"whole": whole, "right": run.labels} | {k: np.stack(v) for k, v in rows.items()}


def keep_a_part(run: Run) -> dict[str, np.ndarray]:
    """Slopes of all heads, trained and not, and answers of the whole model with a part of them."""
    config, shape = run.config, run.model.config
    trained = run.slopes(run.model.params)
    random = run.slopes(weights.init(run.key, shape, "float32"))
    importance = jnp.asarray(np.abs(trained).mean(0))
    keys = jax.random.split(run.key, config.draws)
    masks = [jnp.ones_like(importance), heads.prune(importance)]
    masks += [heads.prune_first_layer(importance), _largest(importance, config.kept)]
    masks += [_largest(jax.random.uniform(key, importance.shape), config.kept) for key in keys]
    closing = run.closings((0,), run.masked)
    scores = np.stack([closing.scores(0, mask) for mask in masks])
    return {
        "absolute_slope": np.abs(trained).mean(0),
        "random_slope": np.abs(random).mean(0),
        "open": scores[0],
        "masked": scores[1:4],
        "drawn": scores[4:],
    }


def common_maps(run: Run) -> dict[str, np.ndarray]:
    """What any function of a token's word misses after each layer, as every map of H_0 is one, of
    words that recur in one long prompt: a share of |H_l - H_0|. The first token is left out, which
    is a hundred times as long as the others in some layers."""
    stream = _stream(run.model.params, jnp.asarray(run.shared), config=run.model.config)
    rest = np.asarray(stream, float)[:, 1:]
    return {"by_word": _word_means(rest, rest - rest[:1], run.shared[1:])}


def _largest(scores, count: int):  # [L, H] -> mask [L, H]
    ranks = jnp.argsort(jnp.argsort(-scores, axis=1), axis=1)
    return (ranks < count).astype(scores.dtype)
