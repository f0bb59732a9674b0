"""How far is one step of gradient descent from ridge regression?

Prompts have n demonstrations of y = w·x + noise in d dimensions, w ~ N(0, I/d). The step size of
descent from 0 is the best one for this law; ridge regression is the best possible rule.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from lsa_lab import estimators, lab
from lsa_lab.lab import Claim, main, plotting
from lsa_lab.tasks.linear import LinearTask, sample


@dataclass(frozen=True)
class Config:
    d: int = 8  # covariates
    lengths: tuple[int, ...] = (4, 8, 16, 32, 64)  # values of n
    noise_std: float = 0.5  # of the labels
    runs: int = 16  # independent sets of prompts
    prompts: int = 500  # in each run
    seed: int = 1


TIERS = {
    "smoke": Config(lengths=(4, 8), runs=3, prompts=20),
    "quick": Config(runs=9, prompts=200),
    "full": Config(),
}


def compute(config, models):  # -> Dataset (length, rule, run)
    risks = lab.compute_each("lengths", config.lengths, lambda n: measure(config, n))
    axes = {"length": list(config.lengths), "rule": ["descent", "ridge"]}
    return xr.Dataset({"risk": (("length", "rule", "run"), np.stack(risks))}, axes)


def measure(config, n):  # -> [2, R]
    """Return the excess risks |w - ŵ|² of both rules, a mean over the prompts of each run."""
    d, noise_var = config.d, config.noise_std**2
    task = LinearTask(n, d, noise_std=config.noise_std, weight_std=d**-0.5)
    step = 1 / (1 + (1 + d + d * noise_var) / n)

    def errors(key):
        prompt = sample(key, task)
        descent = step * prompt.x.T @ prompt.y / n
        ridge = estimators.ridge(prompt, d * noise_var / n)
        return (jnp.stack([descent, ridge]) @ prompt.x_query - prompt.y_query) ** 2

    key = jax.random.fold_in(jax.random.key(config.seed), n)
    keys = jax.random.split(key, (config.runs, config.prompts))
    return jax.jit(jax.vmap(jax.vmap(errors)))(keys).mean(1).T


def ratio(result, length):  # -> [R], or None
    if length not in result.length:
        return None
    risk = result.risk.sel(length=length)
    return (risk.sel(rule="descent") / risk.sel(rule="ridge")).values


CLAIMS = (
    Claim("ratio", "derived here",
          "With {length} demonstrations one step of descent has more risk than ridge regression",
          "the risk of descent over that of ridge regression on the same prompts",
          ratio, at_least=1.0, statistic="ratio", over={"length": (8, 64)},
          null="none: the ratio is paired, and 1 without a difference"),
)  # fmt: skip


def plot(result, config):
    picture, (ax,) = plotting.figure(3.4, 2.4)
    runs = {rule: result.risk.sel(rule=rule) for rule in result.rule.values}
    plotting.series(ax, config.lengths, runs, plotting.METHOD, capsize=2)
    plotting.log_axes(ax, x=True, y=True, ticks=config.lengths)
    ax.set(xlabel="demonstrations n", ylabel="risk", title="Risk of two rules")
    ax.legend()
    last = lab.geometric_mean(ratio(result, config.lengths[-1]))
    return picture, (
        f"With {config.lengths[-1]} demonstrations one step of gradient descent has {last:.3g} "
        f"times the risk of ridge regression. Points are means of {config.runs} runs."
    )


if __name__ == "__main__":
    main(__file__)
