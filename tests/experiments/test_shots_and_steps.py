"""`shots_and_steps`: errors by shots and checkpoints, beside loops over runs and prompts."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.descent.shots_and_steps.compute import curves, errors_of_rules
from experiments.descent.shots_and_steps.config import Config
from experiments.models.regression import of_kernel
from lsa_lab.models.linear_attention import Params
from lsa_lab.prompts import Prompt

D, B = 2, 3
CONFIG = Config(d=D, n=4, shots=(1, 2, 4, 5), depth=2, runs=2, looks=2, test_prompts=B)
rng = np.random.default_rng(0)
# Two runs without noise, then two with it.
PROMPTS = Prompt(*(rng.normal(size=(4, B, *shape)) for shape in ((5, D), (5,), (D,), ())))
NOISE = np.array([0.0, 0.0, 0.5, 0.5])


def test_errors_of_rules_are_those_of_the_first_demonstrations():
    rules = jax.jit(partial(errors_of_rules, CONFIG))(
        jax.tree.map(jnp.asarray, PROMPTS), jnp.asarray(NOISE)
    )
    expected = np.zeros((2, 4, 4))
    for run, (s, n) in ((r, pair) for r in range(4) for pair in enumerate(CONFIG.shots)):
        for b in range(B):
            x, y = PROMPTS.x[run, b, :n], PROMPTS.y[run, b, :n]
            bayes = ols = np.linalg.pinv(x) @ y
            if NOISE[run]:
                bayes = np.linalg.solve(x.T @ x + NOISE[run] ** 2 * np.eye(D), x.T @ y)
            for rule, w in enumerate((ols, bayes)):
                miss = (w @ PROMPTS.x_query[run, b] - PROMPTS.y_query[run, b]) ** 2
                expected[rule, run, s] += miss / B
    np.testing.assert_allclose(rules, expected, rtol=1e-8)


def test_curves_of_linear_stacks_are_those_of_loops():
    path = Params(*(0.5 * rng.normal(size=(4, 3, 2, 1, D + 1, D + 1)) for _ in range(2)))
    spec = of_kernel("linear", CONFIG, seeds=4, checkpoints=2)
    risks = np.zeros((4, 3, len(CONFIG.shots)))
    for run, c, b in np.ndindex(4, 3, B):
        for s, n in enumerate(CONFIG.shots):
            rows, w = np.column_stack([PROMPTS.x[run, b, :n], PROMPTS.y[run, b, :n]]), np.eye(D + 1)
            for t in range(2):
                moment = w @ (rows.T @ rows / n) @ w.T
                w = w + path.w_pv[run, c, t, 0] @ moment @ path.w_kq[run, c, t, 0] @ w
            miss = -w[-1, :D] @ PROMPTS.x_query[run, b] - PROMPTS.y_query[run, b]
            risks[run, c, s] += miss**2 / B
    both = jax.tree.map(jnp.asarray, (path, PROMPTS))
    last, early, learning = curves(spec, *both, CONFIG)
    by_noise = risks.reshape(2, 2, 3, -1)
    np.testing.assert_allclose(last, by_noise[:, :, -1])
    np.testing.assert_allclose(early, by_noise[:, :, 1])
    np.testing.assert_allclose(learning, by_noise[..., 2])  # n = 4
