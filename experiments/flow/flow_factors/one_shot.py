"""What one demonstration does to the answer of attention that knows a part of the task.

s = η x·x_query is its relevance and r = y - w_0·x its novelty (docs/theory, "The one-shot flow",
"Attention with a prior").
"""

import jax.numpy as jnp
import numpy as np

from experiments.flow.flow_factors.config import Config
from lsa_lab.analyses.amplification import demonstration_flow
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import amplification


def draw(config: Config, run: int) -> tuple[Prompt, np.ndarray]:  # prompts [M], w_0 [M, d]
    """Prompts of one demonstration each, and the coordinates of w that the weights know."""
    rng = np.random.default_rng([config.seed, run])
    shape, d = (config.draws, config.d), config.d
    w, x, x_query = rng.standard_normal((3, *shape))
    in_weights = np.argsort(rng.random(shape)) < config.known
    for covariates, density in ((x, config.density), (x_query, config.query_density)):
        covariates *= (rng.random(shape) < density) / np.sqrt(density * d)
    y, y_query = ((w * covariates).sum(1) for covariates in (x, x_query))
    return Prompt(x[:, None], y[:, None], x_query, y_query), np.where(in_weights, w, 0)


def effects(prompt: Prompt, prior, step_size) -> dict:  # {name: []}
    """What one demonstration does to ŷ in ``prior_attention``, and its two factors."""
    params = constructions.prior_attention(step_size[None], prior)
    empty = prompt.replace(x=jnp.zeros_like(prompt.x), y=jnp.zeros_like(prompt.y))
    rows = tokens(prompt)
    after, before = (predict(linear_attention.forward(params, t)) for t in (rows, tokens(empty)))
    missing = prompt.y_query - prior @ prompt.x_query
    return {
        "s": amplification.relevance(params.w_kq[0, 0], rows[0], rows[1]),
        "r": prompt.y[0] - prior @ prompt.x[0],
        "contribution": after - before,
        "flow": jnp.linalg.norm(demonstration_flow(linear_attention.forward, params, prompt)),
        "missing": missing,
        "zero_shot": missing**2,
        "reduction": missing**2 - (missing - (after - before)) ** 2,
    }


def bayes_contribution(prompt: Prompt, prior) -> np.ndarray:  # [M]
    """What one demonstration adds to the answer of the Bayes rule for w ~ N(w_0, P), P the
    coordinates that the weights do not know: x_query·Px r / |Px|²."""
    x, unknown = prompt.x[:, 0], prior == 0
    missing = prompt.y[:, 0] - (prior * x).sum(1)
    sizes = (x**2 * unknown).sum(1)
    score = (x * unknown * prompt.x_query).sum(1)
    return score * missing / np.where(sizes > 0, sizes, 1)
