# %% [markdown]
# # Judge your own layer
#
# - A card says which algorithm a layer of twenty lines runs, and how far it is from the best rule.
# - The same layer in flax gives the same predictions; equinox and PyTorch are shown.
# - The card detects a model that is the best in training and absurd on other prompts.
#
# *A workshop, 10 minutes. You need lesson 5 and a layer in JAX.*
#
# **Guess first.** A model answers its training prompts as well as the Bayes rule does. Does it
# run the Bayes rule? Which prompts would tell?
#
# To run it: `make notebooks`, then open `.cache/notebooks/judge_your_own_layer.ipynb`.

# %% tags=["setup"]
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.card import Tier, UnfitError, identify, report_card
from lsa_lab.lab import plotting
from lsa_lab.tasks.linear import LinearTask

# %%
plotting.use_in_notebook()

# %% [markdown]
# ## A layer
#
# A card needs two functions. `init(key)` returns weights. `forward(params, tokens)` reads one
# prompt, `[x_t, x_{t-1}, y_{t-1}]` at every place, and predicts every $y_t$ from the pairs before.
# This layer learns a map of the keys and a step $\beta$, and writes with the delta rule,
# $w \leftarrow w + \beta\, (y - w \cdot k)\, k / |k|^2$.

# %%
D = 4


def init(key):
    return {"keys": jnp.eye(D) + 0.1 * jax.random.normal(key, (D, D)), "step": jnp.zeros(())}


def forward(params, tokens):  # [T, 2 D + 1] -> [T]
    def step(state, token):
        query, key, label = params["keys"] @ token[:D], params["keys"] @ token[D:-1], token[-1]
        square = key @ key  # 0 at the first place, where no pair stands before
        share = jax.nn.sigmoid(params["step"]) / jnp.where(square > 0, square, 1)
        state = state + share * (label - state @ key) * key
        return state, state @ query

    return jax.lax.scan(step, jnp.zeros_like(tokens[0, :D]), tokens)[1]


# %% [markdown]
# ## Its card
#
# A card to read has `tier="laptop"` and takes minutes. This one has two seeds and short training.

# %%
SMALL = Tier(steps=200, pilot_steps=40, batch=16, prompts=128, d=D, runs=2, lengths=(64,))
card = report_card(forward, init, tier=SMALL)
print(card.headline)
for name in ("nearest rule", "share of the new label", "risk over the Kalman filter"):
    probe = card.probes[name]
    verdict = f" {probe.verdict}" if probe.verdict else ""
    null = "" if probe.null is None else f", null {probe.null:.3g}"
    print(f"{name}: {probe.value}{verdict}{null}. {probe.note}")

# %% [markdown]
# The layer is a delta rule: for a repeated key it predicts mostly the new label, and if weights
# drift it is closer to the Kalman filter than ridge is. Two seeds leave both undecided. The grey
# curves are closed learning curves; ridge is the best.

# %%
picture, (ax,) = plotting.figure(5.5, 3.0)
curves = card.curves["risk"]
for name, curve in curves["rules"].items():
    ax.plot(curve, color="grey", lw=1)
    ax.text(len(curve), curve[-1], name, fontsize=7, va="center")
for run in curves["runs"]:
    ax.plot(curves["places"], run, color=plotting.COLOURS[0])
plotting.log_axes(ax, y=True)
ax.set(xlabel="demonstrations", ylabel="risk", xlim=(0, 48))
picture

# %% [markdown]
# `card.save("figures/cards/mine")` writes the card, a page and a badge. The same from a shell:
# `lsa-lab card my_module:forward my_module:init --name mine`.
#
# ## The same layer elsewhere
#
# A linen module is a function of its variables already. With nnx, `nnx.split` and `nnx.merge` are.


# %%
class Delta(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        return forward(self.param("layer", init), tokens)


tokens = jnp.asarray(np.random.default_rng(0).normal(size=(9, 2 * D + 1)), jnp.float32)
module = Delta()
variables = module.init(jax.random.key(1), tokens)
layer_params = variables["params"]["layer"]
print(jnp.allclose(module.apply(variables, tokens), forward(layer_params, tokens)))
# report_card(module.apply, lambda key: module.init(key, tokens))

# %% [markdown]
# In equinox:
#
# ```python
# arrays, rest = eqx.partition(model, eqx.is_array)
# report_card(lambda arrays, tokens: eqx.combine(arrays, rest)(tokens), params=arrays)
# ```
#
# In PyTorch (`pip install torch`), which stays in PyTorch and is called back, slowly:
#
# ```python
# from lsa_lab.interop import from_torch
#
# forward, params = from_torch(module.eval(), np.zeros((1, 65, 17), np.float32))  # [B, T, w]
# card = report_card(forward, params=params)
# ```
#
# ## An attack
#
# On training prompts ridge regression is the best rule. This model is ridge on most of them, and
# predicts 5 for large covariates. After 32 demonstrations it has 1.3 times the risk of ridge; it
# runs no known rule.


# %%
def absurd(params, tokens):
    x, y, query = tokens[:-1, :-1], tokens[:-1, -1], tokens[-1, :-1]
    ridge = jnp.linalg.solve(x.T @ x + D * 0.25 * jnp.eye(D), x.T @ y) @ query
    return jnp.where(jnp.abs((x**2).mean() - 1) < 0.5, ridge, 5.0)


(nearest,) = identify(
    absurd, None, LinearTask(n=32, d=D, noise_std=0.5, weight_std=D**-0.5), causal=False
)
print(nearest.title, nearest.by_prompts)

# %% [markdown]
# ## Exercise
#
# A layer that centres labels may use only the labels that it has read. This one takes the mean over
# the whole prompt, and the card refuses it.


# %%
def centred(params, tokens):
    labels = tokens[:, -1]
    return forward(params, tokens.at[:, -1].set(labels - labels.mean()))


try:
    report_card(centred, params=init(jax.random.key(0)), tier=SMALL)
except UnfitError as error:
    print(error)

# %% [markdown]
# Write the mean of the labels so far, one for each place, the label at that place included.
#
# Hint. A cumulative sum, over a count.


# %% tags=["exercise"]
def running_mean(labels):  # [T] -> [T]
    return jnp.full_like(labels, labels.mean())  # your answer


# %% tags=["check"]
labels = jnp.asarray(np.random.default_rng(1).normal(size=7))
means = [labels[: t + 1].mean() for t in range(7)]
solved = bool(jnp.allclose(running_mean(labels), jnp.stack(means), atol=1e-5))
print("solved" if solved else "not yet")

# %% [markdown] tags=["solution"]
# <details><summary>A solution</summary>
#
# ```python
# def running_mean(labels):
#     return jnp.cumsum(labels) / jnp.arange(1, len(labels) + 1, dtype=labels.dtype)
# ```
#
# </details>

# %% [markdown]
# ## What you have seen
#
# A card trains a layer by a fixed recipe and measures what accuracy does not show: the known rule
# with the nearest predictions, the length at which the error stops falling, and the effect of a
# shift. Accuracy on training prompts does not identify the rule, so the card uses prompts on which
# rules differ. It refuses a layer that reads a later token.
#
# Next: [bring_your_own_model](bring_your_own_model.ipynb).
