"""The questions about how a model gets its answers, and about what they cost."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from lsa_lab.card.batches import Batch, bayes_predictions, drawn_batch, labelled
from lsa_lab.card.identity import LIKE, NONE, PROMPTS, nearest_rules, repeated_keys
from lsa_lab.card.probe import Probe, judged
from lsa_lab.card.probes import Bench

_FLOWS = 64  # prompts of a run whose derivatives are taken
_NO_ANSWER = 0.2  # both labels' shares in an answer, below which it is none to a key
_REPEATS = 5  # timings, of which the shortest counts


def rules(bench: Bench) -> list[Probe]:
    """The nearest known rule after each layer and at the end."""
    size = max(bench.tier.prompts // len(bench.params) // 2, 32)
    nearest_of = nearest_rules(bench.subject, bench.params, bench.law, bench.tier.n, size)
    kept = ("title", "distance", "random")
    if not bench.trained:
        nearest_of = [replace(nearest, runs=PROMPTS) for nearest in nearest_of]
    bench.curves["rules"] = [{name: getattr(rule, name) for name in kept} for rule in nearest_of]
    last, depth = nearest_of[-1], len(nearest_of)
    layers = [
        Probe(f"rule after layer {i + 1} of {depth}", "rule", "Which known rule is nearest?",
              nearest.title, None, note=f"{nearest.point}, distance {nearest.distance:.3g}")
        for i, nearest in enumerate(nearest_of[:-1])
    ]  # fmt: skip
    near = last.name != NONE
    alike = f"; the card cannot tell it from {', '.join(last.alike)}" if near and last.alike else ""
    after = f"next {last.second} at {last.second_distance:.3g}, decided by {last.decided_by}"
    note = (
        f"{'' if near else f'nearest is {last.closest}, '}{last.point}; {last.agree} agree; "
        f"{after if last.second else 'no other is farther'}{alike}"
    )
    name = Probe(
        "nearest rule", "rule", "Which known rule does it run?", last.title, None, note=note
    )
    distance = judged(
        "distance to the nearest rule", "rule", f"The answers are within {LIKE} of a known rule's.",
        last.samples, ratio=True, at_most=LIKE, null=last.random,
        null_is="the median rule of the list", facts={"by_prompts": last.by_prompts},
    )  # fmt: skip
    return [name, distance, *layers]


def overwriting(bench: Bench) -> list[Probe]:
    """Keys that come again with new labels: the share of the new label in the answer."""
    n = bench.tier.n
    shares: list[float] = []
    ridges: list[float] = []
    for run, params in enumerate(bench.params):
        rng = np.random.default_rng([run, 5])
        pairs = n // 2
        batch, *_ = repeated_keys(rng, bench.law, bench.tier.prompts, pairs)
        batch, old, new = _asked_again(batch, pairs)
        answers = bench.subject.answers(params, batch.prompt, [n])[:, 0]
        law = replace(bench.law, tasks=None)
        for kept, values in ((shares, answers), (ridges, bayes_predictions(batch, law)[:, n])):
            whole = np.isfinite(values).all()
            rows = values if whole else np.zeros_like(values)
            (a, b), *_ = np.linalg.lstsq(np.stack([new, old], 1), rows, rcond=None)
            kept.append(a / (a + b) if a + b > _NO_ANSWER else np.nan)
    says = (
        "A key that is shown again with another label is overwritten: at least 0.75 is the new one."
    )
    return [judged("share of the new label", "overwriting", says, shares, at_least=0.75,
                   null=float(np.mean(ridges)), null_is="ridge, which averages")]  # fmt: skip


def _asked_again(batch: Batch, pairs: int) -> tuple[Batch, np.ndarray, np.ndarray]:
    """The batch with a query that is a key of its prompt, and the key's old and new target."""
    key = pairs // 2
    x, targets = batch.x, batch.targets.copy()
    x[:, -1], targets[:, -1] = x[:, key], targets[:, pairs + key]
    labels = np.concatenate([np.asarray(batch.prompt.y), targets[:, -1:]], 1)
    return labelled(x, targets, labels), targets[:, key], targets[:, pairs + key]


def recall(bench: Bench) -> list[Probe]:
    """Pairs without a law, keys on a sphere and labels N(0, 1): the error when one is asked for."""
    d, probes = bench.tier.d, []
    for pairs in (d // 2, d, 2 * d):
        errors, ridges = [], []
        for run, params in enumerate(bench.params):
            rng = np.random.default_rng([run, 6, pairs])
            x = rng.normal(size=(bench.tier.prompts, pairs + 1, d))
            x *= np.sqrt(d) / np.linalg.norm(x, axis=-1, keepdims=True)
            labels = rng.normal(size=x.shape[:2])
            index, rows = rng.integers(pairs, size=len(x)), np.arange(len(x))
            x[:, -1], labels[:, -1] = x[rows, index], labels[rows, index]
            batch = labelled(x, labels, labels)
            answers = bench.subject.answers(params, batch.prompt, [pairs])[:, 0]
            errors.append(((answers - labels[:, -1]) ** 2).mean())
            ridge = bayes_predictions(batch, replace(bench.law, tasks=None))[:, -1]
            ridges.append(((ridge - labels[:, -1]) ** 2).mean())
        says = f"Of {pairs} pairs with keys of width {d} it recalls one as well as ridge does."
        probes.append(
            judged(f"recall error over ridge's, {pairs} pairs", "recall", says,
                   np.array(errors) / ridges, ratio=True, at_most=1.1, null=1 / np.mean(ridges),
                   null_is="the answer 0", note=f"squared error {np.mean(errors):.3g} of 1")
        )  # fmt: skip
    return probes


def order(bench: Bench) -> list[Probe]:
    """How far the answer moves when demonstrations are permuted, in units of the answer."""
    n, moved = bench.tier.n, []
    for run, params in enumerate(bench.params):
        rng = np.random.default_rng([run, 7])
        batch = drawn_batch(rng, bench.law, bench.tier.prompts, n)
        turn = rng.permutation(n)
        turned = batch.prompt.replace(x=batch.prompt.x[:, turn], y=batch.prompt.y[:, turn])
        before, after = (
            bench.subject.answers(params, p, [n])[:, 0] for p in (batch.prompt, turned)
        )
        moved.append(((before - after) ** 2).mean() / max((before**2).mean(), 1e-12))
    says = "A permutation of the demonstrations moves the answer by at most 0.01 of its square."
    return [judged("squared change under a permutation", "order", says, moved, ratio=True,
                   at_most=0.01, null=2.0, null_is="answers to unrelated prompts")]  # fmt: skip


def flows(bench: Bench) -> list[Probe]:
    """Derivatives of the answer by the labels: who has a say, and how alike it is to ridge."""
    subject, n = bench.subject, bench.tier.n

    def answer(y: Any, params: Any, prompt: Any) -> Any:
        return subject.slots(params, subject.tokens(prompt.replace(y=y)))[-1, -1]

    flow = jax.jit(jax.vmap(jax.grad(answer), (0, None, 0)))
    strongest, alike, lasts = [], [], []
    for params, batch in zip(bench.params, bench.batches(8, bench.law), strict=True):
        part = jax.tree.map(lambda leaf: jnp.asarray(leaf[:_FLOWS], subject.dtype), batch.prompt)
        rows = np.asarray(flow(part.y, params, part), float)
        sizes = np.abs(rows) / np.maximum(np.abs(rows).sum(1, keepdims=True), 1e-12)
        sizes = sizes if rows.any() else sizes * np.nan  # no label has a say: there are no shares
        x, query = np.asarray(part.x, float), np.asarray(part.x_query, float)
        gram = np.einsum("bni,bnj->bij", x, x) + bench.law.noise_var * bench.law.d * np.eye(
            x.shape[2]
        )
        ridge = np.einsum("bni,bi->bn", x, np.linalg.solve(gram, query[..., None])[..., 0])
        norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(ridge, axis=1)
        strongest.append(sizes.max(1).mean())
        alike.append(((rows * ridge).sum(1) / np.maximum(norms, 1e-12)).mean())
        lasts.append(sizes[:, -n // 4 :].sum(1).mean())
    says = "Labels move the answer as they move ridge's: the cosine is at least 0.9."
    return [
        judged("cosine of flows with ridge's", "flows", says, alike, at_least=0.9, null=0.0,
               null_is="random flows"),
        judged("share of the strongest demonstration", "flows", "Does one demonstration decide?",
               strongest, null=1 / n, null_is="equal shares"),
        judged("share of the last quarter", "flows", "Do the last demonstrations count most?",
               lasts, null=0.25, null_is="equal shares"),
    ]  # fmt: skip


def precision(bench: Bench) -> list[Probe]:
    """The answers in bfloat16 and, of a model in float64, float32, beside those as it is."""
    subject, n, probes = bench.subject, bench.tier.n, []
    batches = bench.batches(9, bench.law)
    usual = bench.answers(batches, [n])
    kinds = ["bfloat16"] + ["float32"] * (jnp.dtype(subject.dtype).itemsize == 8)
    for kind in kinds:
        low = replace(subject, dtype=jnp.dtype(kind))
        try:
            cast = [_cast(kind, params) for params in bench.params]
            answers = replace(bench, subject=low, params=cast).answers(batches, [n])
        except (TypeError, ValueError, NotImplementedError) as error:
            note = f"not measured: {type(error).__name__}"
            says = f"Does it run in {kind}?"
            probes.append(Probe(f"change in {kind}", "precision", says, "no", None, note=note))
            continue
        change = [((a - b) ** 2).mean() / max((b**2).mean(), 1e-12)
                  for a, b in zip(answers, usual, strict=True)]  # fmt: skip
        says = f"In {kind} the answers move by at most 0.01 of their square."
        probes.append(judged(f"change in {kind}", "precision", says, change, ratio=True,
                             at_most=0.01, null=2.0, null_is="unrelated answers"))  # fmt: skip
    return probes


@partial(jax.jit, static_argnums=0)
def _cast(kind: str, params: Any) -> Any:
    def cast(leaf: Array) -> Array:
        return leaf.astype(kind) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, params)


def speed(bench: Bench) -> list[Probe]:
    """Milliseconds and bytes a token, of one prompt on this machine."""
    subject, probes = bench.subject, []
    for length in bench.tier.lengths:
        tokens = jnp.ones((length, subject.width), subject.dtype)
        program = jax.jit(subject.slots).lower(bench.params[0], tokens).compile()
        run = partial(program, bench.params[0], tokens)
        seconds = min(_seconds(run) for _ in range(_REPEATS))
        memory = program.memory_analysis()
        spare = float(memory.temp_size_in_bytes) / length if memory is not None else float("nan")
        name = f"T = {length}"
        note = "bytes that XLA reserves beside tokens and params"
        probes += [
            Probe(f"milliseconds a token, {name}", "speed", "What does a token cost?",
                  1e3 * seconds / length, None),
            Probe(f"bytes a token, {name}", "speed", "What memory does a token need?", spare, None,
                  note=note),
        ]  # fmt: skip
    if bench.states is not None:
        tokens = jnp.ones((2, subject.width), subject.dtype)
        shape = jax.eval_shape(bench.states, bench.params[0], tokens)
        carried = sum(leaf.size // 2 for leaf in jax.tree.leaves(shape))
        probes.append(Probe("numbers in the state", "speed", "What is carried from token to token?",
                            float(carried), None))  # fmt: skip
    return probes


def _seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - began
