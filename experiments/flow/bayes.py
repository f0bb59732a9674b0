"""The null of growth by depth: flows of the Bayes rule on the prompts that a model reads.

A model that answers as the Bayes rule does has its flows in the end, whatever they were before
(docs/theory, "Near in risk, near in flow").
"""

from functools import partial

import jax
import numpy as np

from lsa_lab import prompts
from lsa_lab.analyses.amplification import demonstration_flow, log_sizes
from lsa_lab.estimators import gaussian_posterior_mean, sparse_posterior_mean


def answer_and_flow(prompt, noise_var, sparsity=None):  # -> [], [n, e]
    """ŷ of the posterior mean for w ~ N(0, I), or for so many weights N(0, 1) and others 0, and
    its derivative by each demonstration."""

    def answer(tokens):
        own = prompt.replace(x=tokens[:, :-1], y=tokens[:, -1])
        if sparsity is None:
            mean = gaussian_posterior_mean(own, 1.0, noise_var)
        else:
            mean = sparse_posterior_mean(own, sparsity, 1.0, noise_var)
        return mean @ prompt.x_query

    return jax.value_and_grad(answer)(prompts.tokens(prompt)[:-1])


@partial(jax.jit, static_argnums=(0, 1, 2))
def log_flows(forward, noise_var, alone, params, batch):  # Params [R], Prompt [R, B]
    """log |flow| [R, B, L, n] of every run's model, and [R, B, n] of the Bayes rule; ``alone``: of
    the first two demonstrations, each in a prompt of its own."""

    def both(params, prompt):
        ours = log_sizes(demonstration_flow(forward, params, prompt))
        return ours, log_sizes(answer_and_flow(prompt, noise_var)[1][None])[0]

    def apart(params, prompt):
        single = [prompt.replace(x=prompt.x[i : i + 1], y=prompt.y[i : i + 1]) for i in range(2)]
        rows = [both(params, each) for each in single]
        return jax.tree.map(lambda *leaves: jax.numpy.concatenate(leaves, axis=-1), *rows)

    of_prompt = jax.vmap(apart if alone else both, (None, 0))
    return jax.lax.map(lambda run: of_prompt(*run), (params, batch))


def compare(ours, bayes):  # [R, B, L, n], [R, B, n] -> {name: [R, L + 1] or [R, L]}
    """Medians over prompts and pairs, the Bayes rule's last: of |log ratio|, and of the log ratio
    with the flow on top that is larger at the first layer; and the mean over prompts of Pearson's
    correlation of a layer's log flows with the Bayes rule's."""
    i, j = np.triu_indices(ours.shape[-1], 1)
    ours, bayes = np.asarray(ours), np.asarray(bayes)
    logs = np.concatenate([ours, bayes[:, :, None]], axis=2)  # [R, B, L + 1, n]
    ratios = logs[..., i] - logs[..., j]
    apart = logs - logs.mean(-1, keepdims=True)
    apart = apart / np.linalg.norm(apart, axis=-1, keepdims=True)
    return {
        "disparity": np.median(np.abs(ratios), axis=(1, 3)),
        "lead": np.median(ratios * np.sign(ratios[:, :, :1]), axis=(1, 3)),
        "agreement": (apart[:, :, :-1] * apart[:, :, -1:]).sum(-1).mean(1),
    }
