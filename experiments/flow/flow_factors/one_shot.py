"""What one demonstration does to the answer of attention that knows a part of the task.

s = η x·x_query is its relevance and r = y - w_0·x its novelty (THEORY I.1.1 and I.1.4).
"""

import jax.numpy as jnp
import numpy as np

from experiments.flow.flow_factors.config import Config
from lsa_lab.analyses.amplification import demonstration_flow
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.prompts import Prompt, tokens
from lsa_lab.theory import amplification

PREDICTORS = ("flow", "contribution", "relevance", "novelty", "relevance + novelty")
KINDS = ("neither", "irrelevant", "learned", "both")
ZEROS = ("", "s = 0", "r = 0", "s = r = 0")


def best_step(config: Config) -> float:
    """1/E|x|⁴: the step with the least mean error after one demonstration, for every ``known``.

    It removes the share (1/E|x|⁴)/d of the error without demonstrations (derived here).
    """
    return 1 / (3 / (config.density * config.d) + (config.d - 1) / config.d)


def draw(config: Config, run: int) -> tuple[Prompt, np.ndarray]:  # prompts [M], w_0 [M, d]
    rng = np.random.default_rng([config.seed, run])
    shape, d = (config.draws, config.d), config.d
    w, x, x_query = rng.standard_normal((3, *shape))
    known = np.argsort(rng.random(shape)) < config.known
    for covariates, density in ((x, config.density), (x_query, config.query_density)):
        covariates *= (rng.random(shape) < density) / np.sqrt(density * d)
    y, y_query = ((w * covariates).sum(1) for covariates in (x, x_query))
    return Prompt(x[:, None], y[:, None], x_query, y_query), np.where(known, w, 0)


def measured(prompt: Prompt, prior, step_size) -> dict:  # of numbers
    """What one demonstration does to ŷ in ``prior_attention``, and what theory says of it."""
    params = constructions.prior_attention(step_size[None], prior)
    empty = prompt.replace(x=jnp.zeros_like(prompt.x), y=jnp.zeros_like(prompt.y))
    rows = tokens(prompt)
    after, before = (predict(linear_attention.forward(params, t)) for t in (rows, tokens(empty)))
    matrices = params.w_kq[0, 0], params.w_pv[0, 0]
    jacobian = amplification.one_shot_jacobian(*matrices, rows[0], rows[1])
    missing = prompt.y_query - prior @ prompt.x_query
    return {
        "s": amplification.relevance(matrices[0], rows[0], rows[1]),
        "r": prompt.y[0] - prior @ prompt.x[0],
        "contribution": after - before,
        "flow": jnp.linalg.norm(demonstration_flow(linear_attention.forward, params, prompt)),
        "equation_2": jnp.linalg.norm(jacobian),
        "zero_shot": missing**2,
        "reduction": missing**2 - (missing - (after - before)) ** 2,
    }


def classes_of(sizes, count):  # [M] -> [M], [count]
    """0 for zeros, then the quantile class of the others; and its root mean square."""
    there = sizes > 1e-12 * np.sqrt((sizes**2).mean())
    edges = np.quantile(sizes[there], np.linspace(0, 1, count + 1)[1:-1])
    of_size = np.where(there, 1 + np.searchsorted(edges, sizes), 0)
    squares = np.bincount(of_size, sizes**2, count + 1) / np.bincount(of_size, None, count + 1)
    return of_size, np.sqrt(squares[1:])


def fits(grid):  # [K, K] -> [2]
    """The share of the grid's variance that the best f(s)·g(r), and f(s) + g(r), explain.

    Any f and g on the K classes: 2K - 1 free numbers in both forms.
    """
    u, sizes, v = np.linalg.svd(grid)
    product = sizes[0] * np.outer(u[:, 0], v[0])
    total = grid.mean(0)[None] + grid.mean(1)[:, None] - grid.mean()
    return [1 - ((grid - fit) ** 2).sum() / grid.var() / grid.size for fit in (product, total)]


def summary(found: dict, count: int) -> dict:
    """Of one run and one step size."""
    from scipy.stats import rankdata

    s, r, c, flow, reduction = (
        found[name] for name in ("s", "r", "contribution", "flow", "reduction")
    )
    (of_s, centre_s), (of_r, centre_r) = (classes_of(np.abs(size), count) for size in (s, r))
    zeros = (of_s == 0) + 2 * (of_r == 0)  # in the order of KINDS
    inside = zeros == 0
    cells = (of_s[inside] - 1) * count + of_r[inside] - 1
    numbers = np.bincount(cells, minlength=count**2)
    squares = [v[inside] / found["zero_shot"].mean() for v in (c**2, reduction)]
    squares.insert(1, flow[inside] ** 2 / (flow[inside] ** 2).mean())
    grids = np.stack([np.bincount(cells, v, count**2) / numbers for v in squares])
    grids = grids.reshape(3, count, count)
    roots = np.sign(grids) * np.sqrt(np.abs(grids))
    rms = [np.sqrt((v**2).mean()) for v in (s, r)]
    rivals = (flow, np.abs(c), np.abs(s), np.abs(r), np.abs(s) / rms[0] + np.abs(r) / rms[1])
    ranks = np.stack([rankdata(v) for v in (reduction, *rivals)])
    typical = [np.median(np.abs(v[inside])) for v in (flow, c)]
    of_kind = [[np.median(np.abs(v[zeros == k])) for k in range(4)] for v in (flow, c)]
    return {
        "grid": grids,
        "centre": np.stack([centre_s, centre_r]),
        "r2": np.array([[fits(grid) for grid in some] for some in (grids, roots)]),
        "correlation": np.corrcoef(ranks)[0, 1:],
        "of_kind": np.array(of_kind) / np.array(typical)[:, None],
        "share": np.bincount(zeros, minlength=4) / len(zeros),
        "helps": (reduction[inside] > 0).mean(),
        "gain": reduction.mean() / found["zero_shot"].mean(),
        "not_product": np.abs(c - s * r).max() / typical[1],
        "not_equation_2": np.abs(flow - found["equation_2"]).max() / typical[0],
    }
