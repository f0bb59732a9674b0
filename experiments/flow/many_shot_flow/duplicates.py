"""Many demonstrations, some of them near-duplicates of others."""

import numpy as np

from experiments.flow.many_shot_flow.config import Config
from lsa_lab.prompts import Prompt


def draw(config: Config) -> tuple:
    """Two independent halves of the longest prompt [R, B, n/2, d], w and x_query [R, B, d]."""
    rng = np.random.default_rng(config.seed)
    each = (config.runs, config.prompts)
    most = max(*config.counts, config.n)
    halves = rng.standard_normal((2, *each, most - most // 2, config.d))
    return *halves, *rng.standard_normal((2, *each, config.d))


def prompts_of(config: Config, normals: tuple, count: int, pairs: int) -> Prompt:  # [C, R, B]
    """Demonstrations 2i + 1, i < pairs, are cx + √(1 - c²)z of the x before them; others are z.

    Nothing but c differs along the first axis: every prompt is its own control.
    """
    first, second, w, x_query = normals
    half = count - count // 2
    first, second = first[:, :, :half], second[:, :, :half]
    c = np.array(config.correlations)[:, None] * (np.arange(half) < pairs)  # [C, n/2]
    c = c[:, None, None, :, None]
    partner = c * first + np.sqrt(1 - c**2) * second
    x = np.stack([np.broadcast_to(first, partner.shape), partner], axis=-2)
    x = x.reshape(*x.shape[:3], 2 * half, config.d)[..., :count, :]
    y, y_query = np.einsum("crbnd,rbd->crbn", x, w), (w * x_query).sum(-1)
    again = [np.broadcast_to(part, (len(x), *part.shape)) for part in (x_query, y_query)]
    return Prompt(x, y, *again)
