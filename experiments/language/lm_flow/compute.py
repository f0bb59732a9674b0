"""Flows to the demonstrations of a prompt, layer by layer, and prompts selected by them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.language import decoders, readouts, sentences
from experiments.language.lm_flow.config import READS, RULES, Config
from experiments.language.sentences import Sets, Writer
from lsa_lab import lm
from lsa_lab.lm import flow, weights
from lsa_lab.lm.readings import log_probabilities
from lsa_lab.lm.text import Sentences
from lsa_lab.store import parts
from lsa_lab.store.results import in_short

_random = jax.jit(weights.init, static_argnames=("config", "dtype"))


class Run(NamedTuple):
    """One run's sentences, and the model that reads them."""

    model: lm.Decoder
    writer: Writer
    sets: Sets
    config: Config  # of the part
    whole: Config  # of the experiment
    number: int


class Singles(NamedTuple):
    """What m demonstrations do, each alone before B queries."""

    worth: np.ndarray  # [m, B]  what it adds to the log-probability of the query's label
    moved: np.ndarray  # [m, B]  what it adds to the margin of the labels
    novelty: np.ndarray  # [m]  the loss of its own label, as a query
    relevance: np.ndarray  # [m, B]  cosines of mean rows after a layer


def alone_flows(run: Run) -> dict[str, np.ndarray]:  # log flow [n, query, layer, read]
    """Each demonstration before the queries by itself."""
    queries = run.sets.fresh.take(range(run.config.queries))
    return {"alone": log_flows(run, singletons(run.sets.demonstrations), queries)[:, 0]}


def shared_flows(run: Run) -> dict[str, np.ndarray]:  # log flow [rotation, n, query, layer, read]
    """All demonstrations in one prompt, for every rotation of them."""
    steps = np.arange(run.config.shots)
    at = (steps[:, None] + steps) % len(steps)  # where each stands in each rotation
    prompts = [run.sets.demonstrations.take(np.argsort(place)) for place in at]
    flows = log_flows(run, prompts, run.sets.fresh.take(range(run.config.queries)))
    return {"shared": np.stack([own[place] for own, place in zip(flows, at, strict=True)])}


def untrained_flows(run: Run) -> dict[str, np.ndarray]:  # [rotation, n, query, layer, read]
    """The same of random weights in the place of the model's."""
    key = jax.random.fold_in(jax.random.key(run.config.seed), run.number)
    params = _random(key, config=run.model.config, dtype=jnp.float32)
    shared = shared_flows(run._replace(model=run.model._replace(params=params)))
    return {"untrained": shared["shared"]}


def single_worths(run: Run) -> dict[str, np.ndarray]:  # worth and same_label [m, B], novelty [m]
    """What each of the pool is worth before every fresh sentence."""
    of, same = singles(run), run.sets.others.labels[:, None] == run.sets.fresh.labels
    return {"worth": of.worth, "novelty": of.novelty, "relevance": of.relevance, "same_label": same}


def score_pool(run: Run) -> dict[str, np.ndarray]:
    """Flows [m, B, L, 2], scores [rule, m, B] and worth [m, B] of single demonstrations."""
    _, queries, pool = run.sets
    flows, of = log_flows(run, singletons(pool), queries)[:, 0], singles(run)
    scores = {
        "GradS": flows[..., -1, 0],
        "GradS, row": flows[..., -1, 1],
        "contribution": np.abs(of.moved),
        "similarity": of.relevance,
        "BM25": sentences.bm25(pool.texts, queries.texts),
        "oracle": of.worth,
    }
    scores = np.stack([scores[rule] for rule in RULES])
    return {"flow": flows, "score": scores, "worth": of.worth, "label": queries.labels}


def selected_prompts(run: Run, scores: np.ndarray) -> dict[str, np.ndarray]:  # [rule, m, B]
    """Log odds of the second label after what every rule selects for each query, the best nearest
    to it, and after random selections."""
    (_, queries, pool), shots = run.sets, run.config.shots
    rng = np.random.default_rng([run.config.seed, 1, run.number])
    shape = (run.config.random_draws, len(pool), len(queries))
    all_scores = np.concatenate([scores, rng.random(shape)])
    chosen = all_scores.argsort(axis=1, kind="stable")[:, -shots:]  # [rule + draw, shots, B]
    rows = chosen.transpose(0, 2, 1).reshape(-1, shots)
    prefixes = np.stack([run.writer.demonstrations(pool.take(row))[0] for row in rows])
    own = run.writer.questions(queries)
    questions = [np.tile(part, (len(chosen), *[1] * (part.ndim - 1))) for part in own]
    arrays = prefixes, *questions, run.writer.label_ids
    logits = readouts.ask(readouts.paired_scores, run.model, *arrays)
    margins = (logits[:, 1] - logits[:, 0]).reshape(len(chosen), len(queries))
    return {"prompt": margins[: len(scores)], "random_prompt": margins[len(scores) :]}


def singles(run: Run) -> Singles:
    """The pool alone before every fresh sentence; rows after the middle layer tell similarity."""
    (_, queries, pool), writer = run.sets, run.writer
    questions, words, m = writer.questions(queries), writer.label_ids, len(pool)
    prefixes = np.stack([writer.demonstrations(each)[0] for each in singletons(pool)])
    after = log_probabilities(readouts.ask(readouts.scores, run.model, prefixes, *questions, words))
    nothing = writer.demonstrations(pool.take([]))[0]
    pairs = zip(writer.questions(pool), questions, strict=True)
    ids, last = (np.concatenate(pair) for pair in pairs)
    arrays, middle = (nothing, ids, last, words), run.whole.middle
    alone = readouts.ask(readouts.alone, run.model, *arrays, layer=middle)
    own, before = np.split(log_probabilities(alone.scores), [m])
    right = np.arange(len(queries)), queries.labels
    return Singles(
        worth=after[:, *right] - before[*right],
        moved=after[..., 1] - after[..., 0] - (before[..., 1] - before[..., 0]),
        novelty=-own[np.arange(m), pool.labels],
        relevance=readouts.cosines(alone.rows[:m], alone.rows[m:]),
    )


def singletons(demonstrations: Sentences) -> list[Sentences]:
    return [demonstrations.take([i]) for i in range(len(demonstrations))]


def log_flows(
    run: Run, prompts: list[Sentences], queries: Sentences
) -> np.ndarray:  # m prompts of n demonstrations, B queries -> [m, n, B, L, 2]
    """log |flow| from each demonstration of a prompt to a query, after ``config.layers``.

    It is the flow of the margin of the first two label words, through the logit lens, and of the
    query's row, the root mean square over random directions.
    """
    params, shape, words = run.model.params, run.model.config, run.writer.label_ids
    rng = np.random.default_rng([run.config.seed, run.number])
    directions = rng.standard_normal((run.whole.directions, shape.width))
    read = flow.stack_reads(
        flow.margin(params, shape, *words[:2]),
        flow.project(jnp.asarray(directions, params.embedding.dtype)),
    )
    written, spans = zip(*(run.writer.demonstrations(prompt) for prompt in prompts), strict=True)
    questions, layers = run.writer.questions(queries), tuple(run.config.layers)
    arrays = np.stack(written), *questions, read
    squares = readouts.ask(readouts.flows, run.model, *arrays, layers=layers)
    return np.stack([_log_sizes(own, each) for own, each in zip(squares, spans, strict=True)])


def _log_sizes(squares: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Logarithms [n, B, L, 2] of flows from spans [n, 2], of squared flows [B, L, K, P]."""
    sums = np.stack([squares[..., first:stop].sum(-1) for first, stop in spans])
    return np.log(np.stack([sums[..., 0], sums[..., 1:].mean(-1)], axis=-1)) / 2


FLOW = ("demonstration", "query", "layer", "read")


def compute(config: Config, *, progress=None, checkpoints=None):
    model = decoders.decoder(config)

    def table(part, measure, axes, **own):  # the runs of a part
        runs = run_maker(model, config, part)
        folder = checkpoints and checkpoints / measure.__name__
        place = progress, folder, f"lm_flow: {measure.__name__}"
        own |= dict(layer=part.layers, read=READS)
        return decoders.table(part, lambda *cell: measure(runs(*cell)), axes, *place, **own)

    return parts.join(compare_flows(config, table), grads=select(config.grads, table))


def run_maker(model, whole: Config, part):
    """What gives run ``number`` on the task at a place its sentences."""
    texts = []
    for _, task in part.tasks:
        kept = sentences.read(task)
        kept = sentences.short(kept, model.tokenizer, whole.fewest_tokens, whole.most_tokens)
        writer = sentences.writer(model.tokenizer, sentences.template(task), kept)
        texts.append((task, kept, writer))

    def make(place: int, number: int) -> Run:
        task, kept, writer = texts[place]
        sets = sentences.sets(kept, task, part, number, place, others=part.pool)
        return Run(model, writer, sets, part, whole, number)

    return make


def compare_flows(config: Config, table):
    """Flows alone, in one prompt and of random weights, and what demonstrations are worth."""
    single, prompts = ("single", "fresh"), ("rotation", *FLOW)
    axes = dict.fromkeys(("worth", "same_label", "relevance"), single) | {"novelty": single[:1]}
    measures = {alone_flows: {"alone": FLOW}, shared_flows: {"shared": prompts}}
    measures |= {untrained_flows: {"untrained": prompts}, single_worths: axes}
    return xr.merge([table(config, *each) for each in measures.items()]).map(in_short)


def select(config, table):
    """Scores of single demonstrations by every rule, their worth, and the prompts selected."""

    def score_and_select(run: Run):
        scored = score_pool(run)
        return scored | selected_prompts(run, scored["score"])

    pair = FLOW[:2]
    axes = {"flow": FLOW, "score": ("rule", *pair), "worth": pair, "label": pair[1:]}
    axes |= {"prompt": ("rule", "query"), "random_prompt": ("draw", "query")}
    return table(config, score_and_select, axes, rule=RULES).map(in_short)
