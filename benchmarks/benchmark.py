"""Compare the library with plain JAX, and with torch where it is installed, in one table.

    make bench                   # every case, a quarter of an hour on a quiet machine
    make bench ONLY=gradient     # the cases whose names contain a word

*Ours* is the library as a user calls it; *plain JAX* is what a careful newcomer writes: the formula
of one prompt, `vmap`, `jit`. The forms of a case take turns in one process, so that what slows the
machine for a while slows all of them. A ratio is that of two turns beside each other. A machine
that other programs use is refused.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lsa_lab.lab import settings

if __name__ == "__main__":
    settings.configure()

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lsa_lab import prompts
from lsa_lab.analyses import amplification, clipping
from lsa_lab.models import linear_attention, moments, recurrent, transformer
from lsa_lab.provenance import find_commit
from lsa_lab.selection.gradient_matching import match
from lsa_lab.tasks.linear import LinearTask, sample, sample_batch
from lsa_lab.training import Training, fit
from lsa_lab.training.executors import count_cores

LIMIT = 0.05  # the largest share of the cores that other programs may take
TURN = 0.2  # seconds of a turn of a form, at least
TURNS, FEWEST, LONG = 7, 3, 60.0  # fewer turns, but three, once they have taken so many seconds
OURS, PLAIN = "ours", "plain JAX"
DTYPE = "float32"  # of all cases, and float64 in the test
Forms = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Case:
    """A comparison: ``build(**sizes)`` returns the forms by name, ours first.

    ``small`` are the sizes of the test, where all forms return the same numbers. The time of a form
    is divided by its share of the work in ``shares``.
    """

    name: str
    build: Callable[..., Forms]
    sizes: dict[str, Any]
    small: dict[str, Any]
    shares: dict[str, float] = field(default_factory=dict)


def compile_forms(forms: dict[str, Callable], *arguments: Any) -> Forms:
    return {name: partial(jax.jit(form), *arguments) for name, form in forms.items()}


# Linear attention


def draw_stack(layers: int, d: int, scale: float = 0.02) -> linear_attention.Params:
    return linear_attention.init(jax.random.key(0), layers, 1, d, scale, DTYPE)


def plain_scores(tokens, kq, pv):  # [T, e] -> [T, e]
    """Return W_pv E M (Eᵀ W_kq E) / n; the query is no key."""
    mask = jnp.ones(len(tokens), tokens.dtype).at[-1].set(0)
    return ((tokens @ kq.T) @ tokens.T * mask[None]) @ tokens @ pv.T / (len(tokens) - 1)


def plain_products(tokens, kq, pv):  # [T, e] -> [T, e]
    """Return the same with the products in the other order, which forms no scores."""
    moment = tokens[:-1].T @ tokens[:-1] / (len(tokens) - 1)
    return tokens @ (pv @ moment @ kq).T


def predict_plainly(update, params, tokens):  # -> [L]
    """Return minus the query's label slot after every layer of linear attention."""
    predicted = []
    for kq, pv in zip(params.w_kq[:, 0], params.w_pv[:, 0], strict=True):
        tokens = tokens + update(tokens, kq, pv)
        predicted.append(-tokens[-1, -1])
    return jnp.stack(predicted)


def plain_prompt(key, n, d):
    """Return tokens [n + 1, d + 1], the query last, and its label."""
    key_x, key_w = jax.random.split(key)
    x = jax.random.normal(key_x, (n + 1, d), DTYPE)
    y = x @ jax.random.normal(key_w, (d,), DTYPE)
    return jnp.concatenate([x, y[:, None]], axis=1).at[-1, -1].set(0), y[-1]


def plain_loss(update, params, batch):
    tokens, targets = batch
    predict = jax.vmap(partial(predict_plainly, update), (None, 0))
    return jnp.mean((predict(params, tokens)[:, -1] - targets) ** 2)


def as_tokens(batch):  # -> [B, n+1, e], [B]
    return jax.vmap(prompts.tokens)(batch), batch.y_query


def loss_on_prompts(params, batch):
    return jnp.mean((moments.predictions(params, batch) - batch.y_query) ** 2)


def train(n, d, layers, batch, steps, runs=1, fixed=False) -> Forms:
    """Take steps of Adam by ``fit``, and by a jitted step; with ``fixed`` on one batch alone."""
    task, optimizer = LinearTask(n, d, dtype=DTYPE), optax.adam(1e-4)
    params, keys = draw_stack(layers, d), jax.random.split(jax.random.key(1), runs)
    same = sample_batch(jax.random.key(2), task, batch)
    draw_ours = (lambda _: same) if fixed else partial(sample_batch, task=task, size=batch)
    training = Training(loss_on_prompts, draw_ours, optimizer, steps)
    copies = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (runs, *leaf.shape)), params)

    def draw_plainly(key):
        draw_one = partial(plain_prompt, n=n, d=d)
        return as_tokens(same) if fixed else jax.vmap(draw_one)(jax.random.split(key, batch))

    @jax.jit
    def step(params, state, key):
        grads = jax.grad(partial(plain_loss, plain_scores))(params, draw_plainly(key))
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    def plain():
        ends = []
        for key in keys:
            now, state = params, optimizer.init(params)
            for key_of_step in jax.random.split(key, steps):
                now, state = step(now, state, key_of_step)
            ends.append(now)
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *ends)

    return {OURS: lambda: fit(training, copies, keys, chunk=steps).params, PLAIN: plain}


def differentiate(n, d, layers, batch) -> Forms:
    """Return the gradient of the loss on given prompts, in every form."""
    params, task = draw_stack(layers, d), LinearTask(n, d, dtype=DTYPE)
    same = jax.jit(partial(sample_batch, task=task, size=batch))(jax.random.key(2))
    pairs, ours = as_tokens(same), jax.grad(loss_on_prompts)
    plain = {f"{PLAIN}, products": plain_products, f"{PLAIN}, scores": plain_scores}
    slopes = {name: jax.grad(partial(plain_loss, update)) for name, update in plain.items()}
    forms = {OURS: partial(moments.compiled(ours), params, same)}
    forms |= compile_forms({"ours without compiler options": ours}, params, same)
    forms |= compile_forms(slopes, params, pairs)
    if find_spec("torch") and jax.default_backend() == "cpu":
        forms["torch, products"] = torch_gradient(params, *pairs)
    return forms


def torch_gradient(params, tokens, targets) -> Callable:
    import torch

    tokens, targets = (torch.tensor(np.array(array)) for array in (tokens, targets))
    leaves = (np.array(leaf) for leaf in (params.w_kq, params.w_pv))
    w_kq, w_pv = (torch.tensor(leaf, requires_grad=True) for leaf in leaves)

    def gradient():
        rows = tokens
        for kq, pv in zip(w_kq[:, 0], w_pv[:, 0], strict=True):
            moment = rows[:, :-1].mT @ rows[:, :-1] / (rows.shape[1] - 1)
            rows = rows + rows @ (pv @ moment @ kq).mT
        return torch.autograd.grad(((rows[:, -1, -1] + targets) ** 2).mean(), (w_kq, w_pv))

    return gradient


# Softmax attention


def encoder_config(d, layers, width, heads) -> transformer.Config:
    shape = dict(width=width, norm=True, mlp_width=4 * width)
    return transformer.Config(d + 1, layers, heads, width // heads, **shape)


def predict_softmax(n, d, layers, width, heads, batch) -> Forms:
    """Return one forward pass of a batch of prompts through an encoder with norms and MLPs."""
    config = encoder_config(d, layers, width, heads)
    params = transformer.init(jax.random.key(0), config, DTYPE)
    tokens, _ = as_tokens(sample_batch(jax.random.key(1), LinearTask(n, d, dtype=DTYPE), batch))
    ours = partial(transformer.predict, config=config)
    forms = {OURS: jax.vmap(ours, (None, 0)), PLAIN: jax.vmap(plain_encoder, (None, 0))}
    return compile_forms(forms, params, tokens)


def plain_encoder(params, tokens):  # -> []
    """Return minus the query's label slot; all tokens read the demonstrations."""
    stream = tokens @ params.read_in.T
    is_key = jnp.arange(len(tokens))[None, None] < len(tokens) - 1
    for layer in range(len(params.w_q)):
        scale, offset = params.attention_norm_scale[layer], params.attention_norm_offset[layer]
        rows = plain_norm(stream, scale, offset)
        q, k, v = (jnp.einsum("td,hkd->htk", rows, leaf[layer])
                   for leaf in (params.w_q, params.w_k, params.w_v))  # fmt: skip
        read = jax.nn.softmax(jnp.where(is_key, q @ k.mT, -jnp.inf)) @ v
        stream = stream + jnp.einsum("htk,hdk->td", read, params.w_o[layer])
        rows = plain_norm(stream, params.mlp_norm_scale[layer], params.mlp_norm_offset[layer])
        hidden = jax.nn.gelu(rows @ params.mlp_in[layer].T + params.mlp_in_bias[layer][None])
        stream = stream + hidden @ params.mlp_out[layer].T + params.mlp_out_bias[layer][None]
    return -stream[-1] @ params.read_out


def plain_norm(rows, scale, offset):
    centred = rows - rows.mean(-1, keepdims=True)
    deviation = jnp.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return centred / deviation * scale[None] + offset[None]


def clip(n, d, layers, width, heads, batch, runs, ranks, shots) -> Forms:
    """Return the mean risk after the edits of the first layer at the first rank, [M, S, R].

    Ours computes the whole grid of layers and ranks, the plain loop this part of it alone.
    """
    config, modules = encoder_config(d, layers, width, heads), ("w_q", "w_k", "mlp_in", "mlp_out")
    init = partial(transformer.init, config=config, dtype=DTYPE)
    params = jax.vmap(init)(jax.random.split(jax.random.key(1), runs))
    same = sample_batch(jax.random.key(0), LinearTask(n, d, noise_std=0.1, dtype=DTYPE), batch)
    tokens, targets = as_tokens(same)

    def risk(params, batch):
        tokens, targets = as_tokens(batch)
        predict = jax.vmap(partial(transformer.predict, config=config), (None, 0))
        return (predict(params, tokens) - targets) ** 2

    @jax.jit
    def plain_risk(params, tokens):
        predict = jax.vmap(jax.vmap(plain_encoder, (None, 0)), (0, None))
        return ((predict(params, tokens) - targets[None]) ** 2).mean(1)

    def plain():
        risks = []
        for name in modules:
            matrices = getattr(params, name)
            cut = matrices.at[:, 0].set(plain_cut(matrices[:, 0], ranks[0]))
            edited = params.replace(**{name: cut})
            shorter = (jnp.concatenate([tokens[:, :s], tokens[:, -1:]], axis=1) for s in shots)
            risks.append([plain_risk(edited, rows) for rows in shorter])
        return risks

    grid = dict(modules=modules, rates=[1 - rank / width for rank in ranks], shots=shots)

    def ours():
        risks = clipping.curve(risk, params, same, **grid).clipped.mean[:, :, 0, :, 0]
        return [list(row) for row in risks.T]

    return {OURS: ours, PLAIN: plain}


def plain_cut(matrices, rank):  # [R, ..., p, q], heads above each other
    """Return the matrices with their largest singular values alone."""
    flat = matrices.reshape(len(matrices), -1, matrices.shape[-1])
    left, values, right = jnp.linalg.svd(flat, full_matrices=False)
    kept = (left[:, :, :rank] * values[:, None, :rank]) @ right[:, :rank]
    return kept.reshape(matrices.shape)


# Analyses, selection and recurrent layers


def flow(n, d, layers) -> Forms:
    """Return ∂ŷ_l/∂e_i of linear attention, [L, n, e]."""
    params = draw_stack(layers, d, 0.1)
    prompt = sample(jax.random.key(1), LinearTask(n, d, dtype=DTYPE))
    ours = compile_forms({OURS: amplification.moment_flow}, params, prompt)
    return ours | compile_forms({PLAIN: plain_flow}, params, prompts.tokens(prompt))


def plain_flow(params, tokens):
    def read(demonstrations):
        rows = jnp.concatenate([demonstrations, tokens[-1:]])
        return predict_plainly(plain_products, params, rows)

    return jax.jacrev(read)(tokens[:-1])


def match_gradients(m, p, size) -> Forms:
    """Return the choice of a subset with the pool's mean gradient, in increasing order."""
    gradients = np.random.default_rng(0).standard_normal((m, p)).astype(DTYPE)
    return {
        OURS: lambda: jnp.sort(match(gradients, size).indices),
        PLAIN: lambda: jnp.sort(plain_match(gradients, size)),
    }


def plain_match(gradients, size):
    """A jitted choice, then a jitted swap, called from Python until none helps."""
    centred = jnp.asarray(gradients)
    centred = centred - centred.mean(0, keepdims=True)
    total, is_taken, indices = jnp.zeros_like(centred[0]), jnp.zeros(len(centred), bool), []
    for _ in range(size):
        total, is_taken, j = plain_add(centred, total, is_taken)
        indices.append(j)
    chosen = jnp.stack(indices)
    while True:
        swapped, before, after = plain_swap(centred, chosen)
        if after >= (1 - 1e-6) * before:
            return chosen
        chosen = swapped


@jax.jit
def plain_add(centred, total, is_taken):
    gaps = jnp.linalg.norm(total[None] + centred, axis=1)
    j = jnp.argmin(jnp.where(is_taken, jnp.inf, gaps))
    return total + centred[j], is_taken.at[j].set(True), j


@jax.jit
def plain_swap(centred, chosen):
    """Return the best of all swaps by |C - c_i + c_j|², with the gap before and after it."""
    rows = centred[chosen]
    total = rows.sum(0)
    enters = (centred**2).sum(1) + 2 * centred @ total
    leaves = (rows**2).sum(1) - 2 * rows @ total
    change = enters[None] + leaves[:, None] - 2 * rows @ centred.T
    i, j = jnp.unravel_index(change.at[:, chosen].set(jnp.inf).argmin(), change.shape)
    swapped = chosen.at[i].set(j)
    return swapped, jnp.linalg.norm(total), jnp.linalg.norm(centred[swapped].sum(0))


def differentiate_delta(n, d, width, layers, batch) -> Forms:
    """Return the gradient of the loss over all prefixes; long prompts are read by chunks."""
    same = sample_batch(jax.random.key(0), LinearTask(n, d, dtype=DTYPE), batch)
    tokens = jax.vmap(prompts.bound_tokens)(same)
    labels = jnp.concatenate([same.y, same.y_query[:, None]], axis=1)
    config = recurrent.Config("delta", 2 * d + 1, layers, key_width=d, width=width, layout="bound")
    params = recurrent.init(jax.random.key(1), config, DTYPE)

    def loss(predict, params):
        return jnp.mean((jax.vmap(predict, (None, 0))(params, tokens) - labels) ** 2)

    ours = partial(recurrent.predict_prefixes, config=config)
    predictors = {OURS: ours, PLAIN: plain_delta}
    slopes = {name: jax.grad(partial(loss, predict)) for name, predict in predictors.items()}
    return compile_forms(slopes, params)


def plain_delta(params, tokens):  # -> [T]
    """Return the predictions by the recurrence S ← S + β k (v - Sᵀk)ᵀ, token by token."""
    stream = tokens @ params.read_in.T
    names = ("w_q", "w_k", "w_v", "w_o", "w_step", "b_step")
    for layer in range(len(params.w_q)):
        head = {name: getattr(params, name)[layer, 0] for name in names}

        def step(state, row, head=head):
            key, value, query = head["w_k"] @ row, head["w_v"] @ row, head["w_q"] @ row
            key = key / jnp.linalg.norm(key)
            beta = jax.nn.sigmoid(head["w_step"] @ row + head["b_step"])[0]
            state = state + beta * jnp.outer(key, value - state.T @ key)
            return state, state.T @ query

        width = len(head["w_k"])
        read = jax.lax.scan(step, jnp.zeros((width, width), tokens.dtype), stream)[1]
        stream = stream + read @ head["w_o"].T
    return -stream @ params.read_out


TRAINING = dict(n=20, d=5, layers=3, batch=1000, steps=100)
CLIPPING = dict(n=20, d=10, layers=4, width=32, heads=2, batch=1000, runs=8)
CLIPPING |= dict(ranks=[26, 18, 10, 2], shots=[4, 10, 20])
FEW = dict(n=6, d=2, layers=2, batch=4)
FEW_STEPS = FEW | dict(steps=3, fixed=True)
SMALL_DELTA = dict(n=9, d=2, width=4, layers=2, batch=2)
SMALL_CLIPPING = dict(n=4, d=2, layers=1, width=4, heads=2, batch=3, runs=2)
SMALL_CLIPPING |= dict(ranks=[2], shots=[2, 4])

# fmt: off
CASES = (
    Case("100 steps of training, prompts", train, TRAINING, FEW_STEPS),
    Case("10 steps of training, 32 runs", train, TRAINING | dict(steps=10, runs=32),
         FEW_STEPS | dict(runs=2)),
    Case("gradient, linear attention, n 20, d 5", differentiate,
         dict(n=20, d=5, layers=3, batch=1000), FEW),
    Case("gradient, linear attention, n 16, d 20", differentiate,
         dict(n=16, d=20, layers=3, batch=64), FEW | dict(n=3, d=4)),
    Case("gradient, linear attention, n 1 024, d 20", differentiate,
         dict(n=1024, d=20, layers=3, batch=64), FEW | dict(n=40)),
    Case("one forward, softmax encoder", predict_softmax,
         dict(n=64, d=16, layers=3, width=256, heads=8, batch=64),
         dict(n=3, d=2, layers=2, width=4, heads=2, batch=3)),
    Case("clipping grid", clip, CLIPPING, SMALL_CLIPPING,
         shares={PLAIN: 1 / (CLIPPING["layers"] * len(CLIPPING["ranks"]))}),
    Case("flow from 1 024 demonstrations", flow, dict(n=1024, d=20, layers=4),
         dict(n=5, d=2, layers=3)),
    Case("gradient matching", match_gradients, dict(m=10_000, p=4096, size=128),
         dict(m=50, p=8, size=6)),
    Case("gradient, delta rule, scan", differentiate_delta,
         dict(n=32, d=8, width=32, layers=2, batch=128), SMALL_DELTA),
    Case("gradient, delta rule, chunks", differentiate_delta,
         dict(n=4095, d=8, width=32, layers=1, batch=1), SMALL_DELTA | dict(n=70, layers=1)),
)
# fmt: on

# Measuring


def read_usage() -> np.ndarray | None:  # [3]
    """Return seconds on the clock, of these cores, and of this process; None outside Linux."""
    path = Path("/proc/stat")
    if not path.exists():
        return None
    names = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    rows = [line.split() for line in path.read_text().splitlines()]
    working = (1, 2, 3, 6, 7, 8)  # user, nice, system, irq, softirq, stolen: not idle or waiting
    ticks = sum(int(row[i]) for row in rows if row[0] in names for i in working)
    busy = ticks / os.sysconf("SC_CLK_TCK")
    return np.array([time.perf_counter(), busy, time.process_time()])


def share_of_others(before: np.ndarray | None, after: np.ndarray | None) -> float:
    """Return the share of the cores that other programs took; by the load where it is unknown."""
    if before is None or after is None:
        return max(0.0, os.getloadavg()[0] / count_cores() - 1)
    clock, busy, process = after - before
    return max(0.0, (busy - process) / (clock * count_cores()))


def refuse_load(share: float, when: str) -> None:
    if share > LIMIT:
        raise SystemExit(
            f"Other programs took {share:.0%} of the cores {when}. Times can be compared at "
            f"{LIMIT:.0%} or less: end these programs, or run this again on a quiet machine."
        )


def time_calls(form: Callable[[], Any], count: int) -> np.ndarray:  # [2]
    """Return the seconds of a call on the clock and of the processor, means over ``count``."""
    before = time.perf_counter(), time.process_time()
    for _ in range(count):
        result = form()
    jax.block_until_ready(result)
    return np.subtract((time.perf_counter(), time.process_time()), before) / count


def measure(case: Case) -> list[str]:
    """Return the rows of a case; refuse it if other programs used the machine meanwhile."""
    began, before = time.perf_counter(), read_usage()
    forms = case.build(**case.sizes)
    firsts = {name: time_calls(form, 1)[0] for name, form in forms.items()}
    counts = {name: max(1, round(TURN / time_calls(form, 1)[0])) for name, form in forms.items()}
    turns: dict[str, list[np.ndarray]] = {name: [] for name in forms}
    for turn in range(TURNS):
        if turn >= FEWEST and time.perf_counter() - began > LONG:
            break
        for name, form in forms.items():
            turns[name].append(time_calls(form, counts[name]) / case.shares.get(name, 1))
    refuse_load(share_of_others(before, read_usage()), f"during “{case.name}”")
    rows = []
    for name in forms:
        wall, processor = np.transpose(turns[name])
        ratio = "" if name == OURS else describe(wall / np.transpose(turns[OURS])[0])
        times = describe(1e3 * wall), describe(1e3 * processor)
        rows.append(f"| {' | '.join((case.name, name, *times, ratio, f'{firsts[name]:.2g}'))} |")
    return rows


def describe(values: np.ndarray) -> str:
    """Return the median and, in brackets, the range."""
    return f"{np.median(values):.3g} ({values.min():.3g} to {values.max():.3g})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.benchmark")
    parser.add_argument("only", nargs="?", default="", help="a word in the names of the cases")
    only = parser.parse_args().only
    cases = [case for case in CASES if only.lower() in case.name.lower()]
    if not cases:
        parser.error(f"no case has {only!r} in its name: {'; '.join(case.name for case in CASES)}")
    before = read_usage()
    time.sleep(1)
    refuse_load(share_of_others(before, read_usage()), "while this program waited")
    device, commit = jax.devices()[0].device_kind, find_commit(Path(__file__).parent)
    print(
        f"{date.today()}, {platform.processor() or platform.machine()}, {count_cores()} cores, "
        f"device {device}, jax {jax.__version__}, commit {commit.get('commit', 'unknown')[:10]}"
    )
    print("\nMedians over turns, with their range. A ratio above 1 says that ours is faster.\n")
    columns = ["case", "form", "wall ms", "processor ms", "wall / ours", "first call s"]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}", flush=True)
    for case in cases:
        print(*measure(case), sep="\n", flush=True)


if __name__ == "__main__":
    main()
