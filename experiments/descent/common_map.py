"""How far are trained softmax models from one linear map for all tokens (A2, Section 4 (i))?

In linear attention one matrix for each layer takes every token of a prompt to that layer (A2,
Theorem 1; a test of the theorem computes it, and models without it fail that test). Softmax, a
causal mask, norms and MLPs leave no such matrix. The best one, by least squares over the tokens of
one prompt, misses a share |H - H₀Wᵀ| / |H - H₀| of what the layers have written. With T tokens of e
coordinates it misses √(1 - e/T) of writes that have nothing to do with the tokens.
"""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
import xarray as xr

from experiments.models.model import Model, prepare_prompt
from experiments.models.named import REGRESSION, NamedModels
from experiments.models.tasks import distribution, draw
from lsa_lab import prompts
from lsa_lab.analyses.common_map import best_common_map
from lsa_lab.lab import Claim, main, plotting

LOOKS = {
    "linear attention": plotting.METHOD["linear"],
    "softmax attention": plotting.METHOD["softmax"],
    "causal attention": plotting.METHOD["softmax, causal"],
    "transformer": plotting.METHOD["softmax, norm, MLP"],
}
STATES = ("trained", "untrained")


@dataclass(frozen=True)
class Config(NamedModels):
    names: tuple[str, ...] = REGRESSION  # of trained models
    seeds: int = 16  # of each model
    prompts: int = 64  # of each run
    seed: int = 1046


TIERS = {
    "smoke": Config(REGRESSION[:2], small=True, seeds=2, prompts=2, seed=1),
    "quick": Config(seeds=9, prompts=16, seed=2),
    "full": Config(),
}


@partial(jax.jit, static_argnums=(0, 3))
def measure(spec, params, keys, size):  # params [R, ...], keys [R] -> [R, L]
    task = distribution(spec.task)

    def measure_run(row):
        params, key = row

        def share(prompt):  # that the best common map of the first t layers misses [L]
            read, _ = prepare_prompt(spec.architecture, prompt)
            stream = Model(spec, params).forward(prompt).stream
            return best_common_map(prompts.tokens(read), stream).unexplained[1:]

        return jax.vmap(share)(draw(key, task, size)).mean(0)

    return jax.lax.map(measure_run, (params, keys))


def compute(config, models):
    shares = []
    for runs in models.values():
        seeds = np.flatnonzero(runs.finished[-1])[: config.seeds]
        if len(seeds) < config.seeds:
            raise ArithmeticError(f"{len(seeds)} seeds finished; {config.seeds} are needed")
        keys = jax.random.split(jax.random.key(config.seed), config.seeds)
        initial = jax.tree.map(lambda leaf, seeds=seeds: leaf[seeds], runs.initial)
        for params in (runs.models(seeds=seeds).params, initial):
            params = jax.tree.map(lambda leaf: np.asarray(leaf, float), params)
            shares.append(np.asarray(measure(runs.spec, params, keys, config.prompts)))
    shape = (len(models), len(STATES), *shares[0].shape)
    coordinates = {"model": list(models), "state": list(STATES)}
    coordinates["layer"] = np.arange(1, shape[-1] + 1)
    task = next(iter(models.values())).spec.task
    chance = (1 - (task.d + 1) / (max(task.lengths) + 1)) ** 0.5
    data = {"missed": (("model", "state", "run", "layer"), np.reshape(shares, shape))}
    return xr.Dataset(data | {"chance": chance}, coordinates)


def missed(result, model, state="trained"):  # -> [R]
    if model not in result["model"]:
        return None
    return result["missed"].sel(model=model, state=state).isel(layer=-1).values


estimate = partial(Claim, source="A2, Section 4 (i)", over={"model": REGRESSION[1:]})
SHARE = "|H - H₀Wᵀ| / |H - H₀| at the last layer, mean over prompts"
CLAIMS = (
    estimate("misses", statement="The best common map of all tokens misses a part of what the "
             "layers of a trained {model} write", quantity=SHARE, sample=missed, null="untrained",
             note="linear attention, which has a common map, misses rounding errors"),
    estimate("untrained", statement="The same before the training of a {model}",
             quantity=SHARE, sample=partial(missed, state="untrained"),
             null="none: this claim is the null of another claim"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.5, (1, 2), sharey=True)
    layers, chance = result["layer"].values, 100 * float(result["chance"])
    for ax, state in zip((left, right), STATES, strict=True):
        for name in result["model"].values:
            runs = 100 * result["missed"].sel(model=name, state=state)
            plotting.mean_points(ax, layers, runs, name, lw=0.8, capsize=2, **LOOKS[name])
        ax.axhline(chance, color="grey", lw=0.8, ls=":", label="unrelated to the tokens")
        ax.set(xlabel="layer", title=f"{state.capitalize()} models", xticks=layers, ylim=(-3, 100))
    left.set_ylabel("% of the writes that no map explains")
    right.legend(loc=(0.45, 0.06))
    names = [name for name in config.names if name != "linear attention"]
    values = [f"{100 * missed(result, name).mean():.2g} % ({name})" for name in names]
    exact = 100 * float(result["missed"].sel(model="linear attention").max())
    return figure, (
        "The best common map of a prompt's tokens misses, of what all layers of trained models "
        f"write, {', '.join(values)}. Of linear attention it misses at most {exact:.0e} %. It "
        f"would miss {chance:.2g} % of writes that are unrelated to the tokens. Points are means "
        f"of {config.seeds} seeds."
    )


if __name__ == "__main__":
    main(__file__)
