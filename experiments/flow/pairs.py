"""Two demonstrations and the ratio of their flows, for many stacks and many pairs at once; and
random stacks of a given gain, the size of what a layer writes to a token over that of the token."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models.model import forward
from lsa_lab import prompts
from lsa_lab.analyses import disparity
from lsa_lab.analyses.amplification import demonstration_flow, log_sizes, token_flow
from lsa_lab.estimators import gaussian_posterior_mean
from lsa_lab.models import linear_attention
from lsa_lab.prompts import Prompt

MODES = ("alone", "together")  # each demonstration in a prompt of its own, or both in one
MOST_RUNS, MOST_PAIRS = 32, 8192  # in one program
UNMASKED = partial(linear_attention.forward, keys="all")  # as in A1: the query is a key
_MATRICES = ("w_kq", "w_pv", "w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_out")


def draw(rng, runs, count, d):  # -> Prompt [R, B] of two demonstrations
    """Tasks w ~ N(w0, I/2), w0 ~ N(0, I/2) the same for a run."""
    prior = rng.normal(size=(runs, d)) / 2**0.5
    weights = prior[:, None] + rng.normal(size=(runs, count, d)) / 2**0.5
    x = rng.normal(size=(runs, count, 3, d))
    y = np.einsum("rbid,rbd->rbi", x, weights)
    return Prompt(x[:, :, :2], y[:, :, :2], x[:, :, 2], y[:, :, 2])


def log_ratios(forward, params, prompt):  # -> [2, 2, L]: modes, readings
    """log |flow| of the first demonstration less that of the second: of each in a prompt of its
    own, and among all of the prompt; to all of the query's token (A1, Eq. 2), and to its label."""

    def sizes(prompt):  # -> [2, L, n]
        whole = token_flow(forward, params, prompt)
        answer = demonstration_flow(forward, params, prompt)
        return jnp.stack([log_sizes(whole.reshape(*whole.shape[:2], -1)), log_sizes(answer)])

    apart = prompt.replace(x=prompt.x[:2, None], y=prompt.y[:2, None])
    alone = jax.vmap(sizes, (Prompt(0, 0, None, None),))(apart)[..., 0]
    together = sizes(prompt)
    return jnp.stack([alone[0] - alone[1], together[..., 0] - together[..., 1]])


def measure(forward, params, batch):  # Params [R, ...], Prompt [R, B] -> [R, B, ..., L]
    """``log_ratios`` of every run's pairs in its own stack, some runs after the others: the
    derivatives of all of them would take gigabytes."""
    runs, pairs = batch.y_query.shape
    size = min(MOST_RUNS, max(1, MOST_PAIRS // pairs))
    parts = [
        jax.tree.map(lambda leaf, first=first: leaf[first : first + size], (params, batch))
        for first in range(0, runs, size)
    ]
    return jnp.concatenate([_measure(forward, *part) for part in parts])


@partial(jax.jit, static_argnums=0)
def _measure(forward, params, batch):
    return jax.vmap(jax.vmap(partial(log_ratios, forward), (None, 0)))(params, batch)


@partial(jax.jit, static_argnums=0)
def run_log_ratios(forward, params, batch):  # Params [R, ...], Prompt [R, B]
    """``log_ratios`` [R, B, 2, 2, L] of two of the shots of a prompt, a run after the other."""
    many = jax.vmap(partial(log_ratios, forward), (None, 0))
    return jax.lax.map(lambda row: many(*row), (params, batch))


@partial(jax.jit, static_argnums=1)
def least_risks(batches, noise_var):  # Prompt [R, B] -> [R]
    """The mean excess risk of the Bayes rule for w ~ N(0, I): the bar of a trained model."""

    def error(prompt):
        mean = gaussian_posterior_mean(prompt, 1.0, noise_var)
        return (mean @ prompt.x_query - prompt.y_query) ** 2

    return jax.vmap(jax.vmap(error))(batches).mean(1)


@jax.jit
def summarise(logs):  # [..., B, L] -> {name: [..., L] or [...]}
    """``disparity.summarise``, and the spread: the median of |log ratio|, whoever is ahead."""

    def summary(rows):
        spread, _ = disparity.median_of_finite(jnp.abs(rows))
        return vars(disparity.summarise(rows)) | {"spread": spread}

    values = jax.vmap(summary)(logs.reshape(-1, *logs.shape[-2:]))
    return jax.tree.map(lambda x: x.reshape(*logs.shape[:-2], *x.shape[1:]), values)


def stack_summaries(summaries):  # {name: [...]} of several -> {name: [several, ...]}
    return {name: np.stack([each[name] for each in summaries]) for name in summaries[0]}


def variables(prefix, axes, summary):  # -> {name: (axes, values)} of a Dataset
    """Those of a summary, in which some have the layers as a last axis."""
    layer = f"{prefix}layer"
    return {
        f"{prefix}{name}": ((*axes, *[layer] * (np.ndim(values) > len(axes))), values)
        for name, values in summary.items()
    }


def cast_float64(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), tree)


def random_linear(rng, runs, depth, d):  # -> Params [R, L, ...]
    """Random untied stacks of gain 1, for tokens whose squared length is about 2d."""
    weights = rng.normal(size=(2, runs, depth, 1, d + 1, d + 1))
    return linear_attention.Params(*weights / (2 * d * (d + 1) ** 0.5) ** 0.5)


def amplify(params, gain):
    """Matrices times √gain, of merged or of factored heads."""
    matrices = {name: getattr(params, name, None) for name in _MATRICES}
    return params.replace(**{k: gain**0.5 * v for k, v in matrices.items() if v is not None})


def tie(params):
    """Stacks whose every layer is their first."""
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf[:, :1], leaf.shape), params)


def plain_forward(spec):
    """(params, tokens) -> Trace of a trained stack that reads prompts as they are: what it does to
    them before the first layer, it does inside, and the stream is in the prompt's units."""
    inner = forward(spec)
    if not spec.architecture.normalise_prompt:
        return inner

    def run(params, rows):
        prompt = Prompt(rows[:-1, :-1], rows[:-1, -1], rows[-1, :-1], rows[-1, -1])
        own, scale = prompts.normalised(prompt)
        trace = inner(params, prompts.tokens(own))
        return trace.replace(stream=scale * trace.stream)

    return run
