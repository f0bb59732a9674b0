"""Eight numbers that matter on a GPU, each beside the time that the roofline predicts.

    python -m benchmarks gpu            # minutes, on the first device
    python -m benchmarks gpu --quick    # small sizes: whether it runs

The roofline is the longer of the products at the peak of float32 outside the tensor cores, which
exact products have, and of the bytes that must move at the memory's peak, a random number to it
and back. It knows no launches of kernels and no steps that wait for each other, which small models
consist of. A card's prediction is that of its trainings alone.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import numpy as np

from benchmarks import analyses, flops, linear, lm, loops, recurrent, softmax
from benchmarks.cases import BY_NAME, POOL, W1, W7, W11, Work, _clipping, _linear
from benchmarks.timing import Form
from lsa_lab.card import layers, report_card
from lsa_lab.card.recipe import TIERS, Tier
from lsa_lab.lm import weights
from lsa_lab.lm.config import Config

TURNS, LONG = 3, 20  # no more turns once those that are done have taken so many seconds
# By words of JAX's name of a device: float32 operations and bytes a second, from NVIDIA's data
# sheets (docs/accelerators.md has their addresses).
PEAKS = {
    ("H100", "PCIe"): (51e12, 2.0e12),
    ("H100",): (67e12, 3.35e12),
    ("H200",): (67e12, 4.8e12),
    ("A100", "80GB"): (19.5e12, 2.039e12),
    ("A100",): (19.5e12, 1.555e12),
}
TINY = Config(2, 4, 2, 4, 8, 6, 12, 16, rotary_width=4)
CARD = layers.delta.config
SMALL = dict(num_layers=1, num_heads=1, key_width=2, width=4, mlp_width=4)
TINY_CARD = Tier(steps=100, pilot_steps=100, batch=8, prompts=32, d=3, runs=2, lengths=(16,))


class Row(NamedTuple):
    """A number: what is timed, what it needs, how many tokens a unit has, and a peer, if any."""

    name: str
    form: Callable[[], Form]
    work: Work
    tokens: int = 0
    plain: Callable[[], Form] | None = None  # the same as a newcomer writes it


def rows(quick: bool) -> list[Row]:
    few = dict(n=4, d=3, layers=1, batch=8)
    w1, runs = (few, 2) if quick else (W1, 256)
    w3 = BY_NAME["W3, 12 x 256"]
    wide = w3.sizes | (few | dict(width=8) if quick else {})
    grid = W7 | (few | dict(seeds=2, width=8, ranks=[2], shots=[2]) if quick else {})
    pool = POOL | (dict(m=20, queries=10, d=3) if quick else {})
    delta = W11 | dict(kinds=["delta"], units=[2], n=63 if quick else 4095)
    shape = (1, 5) if quick else (4, 256)
    tier = TINY_CARD if quick else Tier(**vars(TIERS["laptop"]) | {"runs": 8})
    tokens, e = shape[0] * shape[1], pool["d"] + 1
    weights_of_lm = 135e6
    return [
        Row(
            "W1",
            partial(linear.ours, **w1, chunk=100),
            _linear(**w1),
            plain=partial(linear.plain, **w1, steps=100),
        ),
        Row(
            "W3, 12 x 256",
            partial(softmax.ours, **wide, chunk=5),
            w3.work[0],
            plain=partial(softmax.plain, **wide, steps=10),
        ),
        Row(
            f"W5 with {runs} runs",
            partial(linear.ours, **w1, runs=runs, chunk=25),
            _linear(**w1, runs=runs),
            plain=partial(linear.plain, **w1, runs=runs, steps=10),
        ),
        Row(
            "flows of a pool, W8",
            partial(analyses.ours_pool, **pool, units=2),
            Work(2 * pool["m"] * pool["queries"] * e**2, moved=4 * pool["m"] * pool["queries"]),
        ),
        Row("clipping grid, W7", partial(analyses.ours_clipping, **grid), _clipping(**grid)),
        Row("delta by chunks, T 4096", partial(recurrent.ours, **delta), delta_work(**delta)),
        Row(
            "SmolLM2's logits",
            partial(logits, shape, quick),
            Work(2 * weights_of_lm * tokens, moved=4 * weights_of_lm),
            tokens,
        ),
        Row(f"card of delta, {tier.runs} seeds", partial(card, tier, quick), card_work(tier)),
    ]


def card(tier: Tier, quick: bool) -> Form:
    """A whole card of the delta rule: three pilots, the seeds, the probes."""
    config = replace(CARD, token_width=7, **SMALL) if quick else CARD
    layer = replace(layers.delta, config=config)

    def whole():
        with jax.enable_x64(False):  # as the command has it
            report_card(layer.forward, layer.init, tier=tier)

    return loops.once(whole)


def card_work(tier: Tier) -> Work:
    steps = len(tier.rates) * tier.pilot_steps + tier.runs * tier.steps
    heads = CARD.num_heads * flops.delta(tier.n + 1, CARD.width, CARD.key_width)
    layer = heads + 4 * (tier.n + 1) * CARD.width * CARD.mlp_width
    return Work(flops.BACKWARD_TOO * CARD.num_layers * layer * tier.batch * steps)


def delta_work(n: int, d: int, width: int, layers: int, batch: int, **_: object) -> Work:
    return Work(flops.BACKWARD_TOO * batch * layers * flops.delta(n + 1, width, d))


def logits(shape: tuple[int, int], quick: bool) -> Form:
    """SmolLM2's, of random weights where it has not been fetched: they take as long."""
    params, config = (weights.init(jax.random.key(0), TINY), TINY) if quick else lm.model()
    return loops.once(partial(lm.every_logit(params, config), lm.draw(shape) % config.vocabulary))


def predict(work: Work, kind: str) -> float | None:
    """The roofline's seconds on a device of this kind, None if its peaks are not known."""
    peaks = next((peak for words, peak in PEAKS.items() if all(w in kind for w in words)), None)
    return peaks and max(work.flops / peaks[0], (work.moved + 8 * work.normals) / peaks[1])


def main(quick: bool = False) -> None:
    """A table in Markdown, a row as soon as it is measured."""
    device = jax.devices()[0]
    print(f"{device.device_kind}, {loops.versions()}{', small sizes' if quick else ''}\n")
    columns = "what | measured | plain JAX | the roofline | measured / roofline | first call"
    print(f"| {columns} |\n|{' --- |' * 6}", flush=True)
    for row in rows(quick):
        first, wall = measure(row.form(), quick)
        peer = f"{measure(row.plain(), quick)[1]:.3g} s" if row.plain else ""
        least = predict(row.work, device.device_kind)
        rate = f", {row.tokens / wall:,.0f} tokens a second" if row.tokens else ""
        beside = "not known | -" if least is None else f"{least:.3g} s | {wall / least:.3g}"
        cells = f"{row.name} | {wall:.3g} s{rate} | {peer} | {beside} | {first:.3g} s"
        print(f"| {cells} |", flush=True)


def measure(form: Form, quick: bool) -> tuple[float, float]:
    """Seconds of the first turn, which compiles, and the median of a unit's in later ones."""
    began = time.perf_counter()
    form.turn()
    first, walls = time.perf_counter() - began, []
    while len(walls) < (1 if quick else TURNS) and time.perf_counter() - began - first < LONG:
        walls.append(form.turn()[0][0])
    return first, float(np.median(walls))
