"""What is measured in one run: scores of a pool by every rule, and the prompts that they select."""

from typing import NamedTuple

import numpy as np

from experiments.language import readouts, singles
from experiments.language.lm_grads import rules
from experiments.language.lm_grads.config import RULES, Config
from experiments.language.sentences import Sets
from experiments.language.written import Writer
from lsa_lab import lm


class Run(NamedTuple):
    """One run's sentences, and the model that reads them."""

    model: lm.Decoder
    writer: Writer
    sets: Sets  # queries are its fresh sentences, the pool is the others
    config: Config
    number: int


def of_pool(run: Run) -> dict[str, np.ndarray]:
    """Flows [m, B, L, 2], scores [rule, m, B] and worth [m, B] of single demonstrations, ..."""
    (_, queries, pool), config = run.sets, run.config
    each = [pool.take([i]) for i in range(len(pool))]
    flows = singles.log_flows(run.model, run.writer, each, queries, config, run.number)[:, 0]
    of = singles.measure(run.model, run.writer, pool, queries, config.middle)
    worth, (embedding, similarity) = singles.worth(of, queries), of.relevance
    margins = of.after[..., 1] - of.after[..., 0] - (of.before[..., 1] - of.before[..., 0])
    scores = {
        "GradS": flows[..., -1, 0],
        "GradS, row": flows[..., -1, 1],
        "GradS, earlier": flows[..., (flows.shape[2] - 1) // 2, 0],
        "GradS, Eq. 2": rules.eq_2(
            run.model, run.writer, pool, queries, run.model.config.num_layers
        ),
        "contribution": np.abs(margins),
        "similarity": similarity,
        "embedding": embedding,
        "BM25": rules.bm25(pool.texts, queries.texts),
        "oracle": worth,
    }
    return {
        "flow": flows,
        "score": np.stack([scores[rule] for rule in RULES]),
        "worth": worth,
        "before": of.before,
        "length": np.array([len(run.writer.opening(text)) for text in pool.texts]),
        "pool_label": pool.labels,
        "label": queries.labels,
    }


def of_prompts(run: Run, scores: np.ndarray) -> dict[str, np.ndarray]:  # [rule, m, B]
    """Log odds of the second label after what every rule selects for each query, the best nearest
    to it, and after random selections."""
    (_, queries, pool), shots = run.sets, run.config.shots
    rng = np.random.default_rng([run.config.seed, 1, run.number])
    shape = (run.config.random_draws, len(pool), len(queries))
    all_scores = np.concatenate([scores, rng.random(shape)])
    chosen = all_scores.argsort(axis=1, kind="stable")[:, -shots:]  # [rule + draw, shots, B]
    rows = chosen.transpose(0, 2, 1).reshape(-1, shots)
    prefixes = np.stack([run.writer.demonstrations(pool.take(row))[0] for row in rows])
    questions = [np.tile(part, (len(chosen), *[1] * (part.ndim - 1))) for part in _questions(run)]
    logits = readouts.paired_scores(run.model, prefixes, *questions, run.writer.label_ids)
    margins = (logits[:, 1] - logits[:, 0]).reshape(len(chosen), len(queries))
    return {
        "prompt": margins[: len(scores)],
        "random_prompt": margins[len(scores) :],
        "chosen": chosen[: len(scores)].transpose(0, 2, 1),
    }


def _questions(run: Run) -> tuple[np.ndarray, np.ndarray]:
    return run.writer.questions(run.sets.fresh)
