# %% [markdown]
# # Train a transformer, and take it apart
#
# - A transformer of three layers learns linear regression in context, in seconds.
# - Its trace, attention, heads, layer maps and singular values say what each layer does.
# - At the end you read the weights that a trained layer implies from its layer map.
#
# *Lesson 2 of 5, 15 minutes. You need lesson 1 and singular values.*
#
# **Guess first.** After which of three trained layers is the answer nearest to ridge
# regression's? Which layer can lose half of its singular values?

# %% tags=["setup"]
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import treescope

from lsa_lab import estimators, prompts
from lsa_lab.analyses import clipping, heads, implicit_gd
from lsa_lab.lab import plotting
from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.models.trace import layer_predictions
from lsa_lab.notebooks import check
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.training import Training, fit

# %%
plotting.use_in_notebook()

# %% [markdown]
# ## Train
#
# Every prompt has its own regression weights; the model never sees them. Its only way to predict is
# to learn from the demonstrations in the prompt.

# %% tags=["setup"]
task = LinearTask(n=12, d=3, noise_std=0.3)


def draw(key, size):
    """Draw a batch of prompts: the library's functions take one, vmap makes them take many."""
    return jax.vmap(partial(sample, task=task))(jax.random.split(key, size))


# %% [markdown]
# Softmax attention, four heads in each of three layers, no MLP, no norm. `fit` trains any model: it
# takes a loss, a way to draw a batch, and an optimizer. The same words train linear attention, with
# two heads a layer.

# %%
softmax = transformer.Config(token_width=4, num_layers=3, heads=4, key_width=4)
treescope.display(transformer.init(jax.random.key(0), softmax))  # its weights before training


def errors(config, params, batch, mask=None):  # [B]
    predict = jax.vmap(lambda p: transformer.predict(params, prompts.tokens(p), config, mask))
    return (predict(batch) - batch.y_query) ** 2


def train(config, steps):
    """Train by Adam on fresh prompts, with a step size that falls to zero."""
    rate = optax.cosine_decay_schedule(0.02, steps)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))

    def loss(params, batch):
        return errors(config, params, batch).mean()

    training = Training(loss, partial(draw, size=64), optimizer, steps)
    return fit(training, transformer.init(jax.random.key(1), config), jax.random.key(2))


linear = replace(softmax, kernel="linear", heads=2, init_scale=0.3)
runs = {"softmax": train(softmax, 1000), "linear": train(linear, 600)}
for name, run in runs.items():
    print(name, "attention:", run.status)

# %% [markdown]
# The record of the loss, against the risk of ridge regression with the right penalty, the best that
# any learner can do here:

# %%
batch = draw(jax.random.key(3), 1000)  # prompts that no training saw
ridge = jax.jit(jax.vmap(lambda p: estimators.ridge(p, 0.3**2 / 12) @ p.x_query))(batch)
ridge_risk = float(np.mean((ridge - batch.y_query) ** 2))

picture, (ax,) = plotting.figure(6.75, 2.4)
for name, run in runs.items():
    loss = run.history["loss"].reshape(-1, 10).mean(1)
    color = plotting.METHOD[name]["color"]
    ax.plot(10 * np.arange(len(loss)) + 5, loss, color=color, label=f"{name} attention")
ax.axhline(ridge_risk, color="grey", ls=":", label="ridge regression")
ax.set(title="Training", yscale="log", xlabel="step", ylim=(ridge_risk / 2, 10))
ax.set(ylabel="loss, means of 10 steps")
ax.legend()
picture

# %% [markdown]
# ## Its trace
#
# `forward` leaves the stream before the first layer and after each, and what every head wrote.
# Nothing else moves the stream: minus what the heads wrote into the query's label slot, summed, is
# the prediction.

# %%
params, prompt = runs["softmax"].params, jax.tree.map(lambda leaf: leaf[0], batch)
trace = transformer.forward(params, prompts.tokens(prompt), softmax)
print("stream", trace.stream.shape, "heads", trace.heads.shape)
print("predictions after 0 to 3 layers", layer_predictions(trace), "target", prompt.y_query)
print(-trace.heads[:, :, -1, -1].sum(), "from the heads,", layer_predictions(trace)[-1], "read out")

# %% [markdown]
# ## Its layers, beside descent and ridge
#
# The prediction after each layer, on 1000 prompts, beside as many steps of gradient descent with
# the step size that is best after three.


# %%
@partial(jax.jit, static_argnums=0)
def layer_risks(predictions, *arguments):  # [L+1]
    predicted = jax.vmap(lambda p: predictions(p, *arguments))(batch)
    return ((predicted - batch.y_query[:, None]) ** 2).mean(0)


def descent_path(p, step_size):
    return estimators.gradient_descent(p, jnp.full(3, step_size)) @ p.x_query


def model_path(p, params, config):
    return layer_predictions(transformer.forward(params, prompts.tokens(p), config))


steps = np.arange(0.1, 1.2, 0.05)
descent = min((layer_risks(descent_path, s) for s in steps), key=lambda risks: risks[-1])

picture, (ax,) = plotting.figure(6.75, 2.6)
plotting.line(ax, range(4), descent, "gradient descent")
for name, config, aside in (("softmax", softmax, -0.03), ("linear", linear, 0.03)):
    risks = layer_risks(partial(model_path, config=config), runs[name].params)
    look = plotting.METHOD[name]
    ax.plot(np.arange(4) + aside, risks, ls="", label=f"{name} attention", **look)
ax.axhline(ridge_risk, color="grey", ls=":", label="ridge regression")
ax.set(title="Risk by layer", yscale="log", xlabel="layer, or step", xticks=range(4))
ax.legend()
picture

# %% [markdown]
# Three layers do much better than three steps of plain descent, and layers in between need not
# predict at all: only the last one was trained to.
#
# ## Its attention
#
# The attention is a function of weights and stream. Here the query's: how much each head reads of
# each demonstration, sorted by how well its covariates agree with the query's, least at the left.

# %%
attention = transformer.attention(params, trace, softmax)  # [L, H, T, T]
order = np.argsort(np.asarray(prompt.x @ prompt.x_query))

picture, axes = plotting.figure(6.75, 1.9, (1, 3))
for layer, ax in enumerate(axes):
    rows = attention[layer, :, -1, order].T  # [H, n]
    image = ax.imshow(rows, vmin=0, vmax=attention[:, :, -1].max(), cmap="Blues", aspect="auto")
    ax.set(title=f"layer {layer + 1}", xlabel="demonstration, sorted", xticks=[])
    ax.set_yticks(range(4), [1, 2, 3, 4])
axes[0].set_ylabel("head")
picture.colorbar(image, ax=axes, label="attention of the query")
picture

# %% [markdown]
# In the first two layers of this run some heads read the demonstrations that agree and some those
# that disagree: a softmax is positive, and it takes two heads to weigh with a sign.
#
# ## Its heads
#
# The importance of a head is the risk without it less the risk with all. One program runs all
# thirteen masks on the same prompts.


# %%
def masked_risk(mask):  # [L, H] -> []
    return errors(softmax, params, batch, mask).mean()


importance = heads.importance(masked_risk, num_layers=3, num_heads=4)

picture, (ax,) = plotting.figure(4.5, 2.4)
image = ax.imshow(importance, cmap="Oranges", vmin=0)
ax.set(title="Importance of each head", xlabel="head", ylabel="layer")
ax.set_xticks(range(4), [1, 2, 3, 4])
ax.set_yticks(range(3), [1, 2, 3])
picture.colorbar(image, label="rise of the risk")
picture

# %%
# How many heads of each layer count, and the risk if all later layers keep their best head alone.
print("effective heads", heads.effective_heads(importance))
print("pruned risk", masked_risk(heads.prune(importance)), "full", masked_risk(jnp.ones((3, 4))))

# %% [markdown]
# ## Its layer maps
#
# In linear attention one matrix $W_t$ takes every token of a prompt to where it is after layer
# $t$: $h_t = W_t h_0$. `merge` multiplies a head's factors; `trajectory` holds the maps against
# the forward pass.

# %%
stack = transformer.merge(runs["linear"].params, linear)
maps = implicit_gd.trajectory(stack, prompt)
print("largest departure of a token from its map, relative:", maps.residual)
print("W_3, of x1, x2, x3 and y:")
print(np.round(maps.maps[-1], 2))

# %% [markdown]
# Softmax attention has no such matrix.
#
# ## Clip it
#
# How much of a matrix does the model need? Set the smallest singular values of one module of one
# layer to zero, and see what happens to the risk on the same prompts. A curve takes runs on the
# leading axis of every leaf: here one. The figure shows the factor by which the risk rises; the
# last point drops the module.

# %%
rates = (0.0, 0.25, 0.5, 0.75, clipping.DROP)
one_run = jax.tree.map(lambda leaf: leaf[None], params)
risks = partial(errors, softmax)
curve = clipping.curve(risks, one_run, batch, modules=("w_q", "w_o"), rates=rates)
print("risks [R, S, K, M, Q]: runs, shots, layers, modules, rates", curve.clipped.mean.shape)

picture, axes = plotting.figure(6.75, 2.4, (1, 2))
for module, (ax, name) in enumerate(zip(axes, ("queries W_Q", "outputs W_O"), strict=True)):
    for layer in range(3):
        rise = curve.clipped.mean[0, 0, layer, module] / curve.unclipped.mean[0, 0]
        ax.plot(range(5), rise, f"{'os^'[layer]}-", label=f"layer {layer + 1}")
    ax.set(title=name, yscale="log", xlabel="share of singular values cut")
    ax.set_xticks(range(5), ["0", "1/4", "1/2", "3/4", "all"])
axes[0].set_ylabel("risk over the unclipped")
axes[0].legend()
picture

# %% [markdown]
# The prediction reads one coordinate of what the last layer writes: few directions of its $W_O$
# are enough. What the first layer writes is read by all later ones.
#
# All this is one training. `fit` takes a batch of keys and trains as many runs; the experiments
# judge what holds in most of them (`figures/clipping_curves`, `figures/head_pruning`).
#
# ## Exercises
#
# Write a number or an array in the place of each `None`, and run the two cells.
#
# 1. *Easy.* Which penalty of ridge regression is the Bayes rule's for labels with noise of standard
#    deviation 0.3, twelve demonstrations and weights of variance 1?
# 2. *Easy.* How many risks does the importance of all heads of three layers with four heads take,
#    with none left out and with one?
# 3. *Medium.* How many heads are in effect if two of four have equal importance and two have none?
# 4. *Medium.* Which share of $|M|_F^2$ does $M = \mathrm{diag}(4, 2, 1)$ lose with its two smaller
#    singular values?
# 5. *Hard.* One masked layer, $P = -I$, $K = I$, second moment $S = 2 I$ of width 4. What is its
#    layer map $W_1$?

# %% tags=["exercise"]
answers = {1: None, 2: None, 3: None, 4: None, 5: None}

# %% tags=["check"]
matrix = jnp.diag(jnp.array([4.0, 2.0, 1.0]))
kept = clipping.truncate(matrix, 1 - 1 / 3)
layer = linear_attention.Params(jnp.eye(4)[None, None], -jnp.eye(4)[None, None])
truths = {1: task.noise_std**2 / task.n, 2: 1 + 3 * 4}
truths |= {3: heads.effective_heads(jnp.array([[1.0, 1.0, 0.0, 0.0]]))[0]}
truths |= {4: 1 - jnp.sum(kept**2) / jnp.sum(matrix**2)}
truths |= {5: moments.layer_maps(layer, 2 * jnp.eye(4))[1]}
solved = check(answers, truths)

# %% tags=["solution"]
answers = {
    1: 0.3**2 / 12,  # the variance of the noise over n, in units of the prior's
    2: 13,  # all heads, and without each of the twelve
    3: 2,
    4: 5 / 21,  # squares: 16 is kept of 16 + 4 + 1
    5: -jnp.eye(4),  # I + P S K
}

# %% [markdown]
# ## Exercise 6, hard
#
# In linear attention every layer's prediction is linear in the query: $\hat y_t = w_t \cdot x$, as
# if the layers ran an algorithm for regression weights. Read the $w_t$, $t = 0, \dots, L$, from
# the layer maps.
#
# Hints. The query's token is $[x, 0]$, the prediction is *minus* its label slot, the last
# coordinate of $W_t [x, 0]$. `moments.layer_maps(stack, prompts.second_moment(prompt))` is `[L+1,
# d+1, d+1]`.


# %% tags=["exercise"]
def implied_weights(stack, prompt):
    """Return the weights w_t [L+1, d] that the layers imply."""
    return None  # your answer


# %% tags=["check"]
weights, solved = implied_weights(stack, prompt), False
if weights is None:
    print("Not answered yet.")
else:
    query = jnp.arange(1.0, prompt.x.shape[1] + 1)  # another one, after the same demonstrations
    tokens = prompts.tokens(prompt.replace(x_query=query))
    expected = layer_predictions(linear_attention.forward(stack, tokens))
    solved = np.allclose(weights @ query, expected, rtol=1e-3, atol=1e-3)
    print("Right." if solved else "Not yet.", "The last layer's:", weights[-1])
    print("Those of ridge regression:", estimators.ridge(prompt, 0.3**2 / 12))


# %% tags=["solution"]
def implied_weights(stack, prompt):
    maps = moments.layer_maps(stack, prompts.second_moment(prompt))
    return -maps[:, -1, :-1]


# %% [markdown]
# ## What you have seen
#
# A trained model can be read layer by layer: its risk comes within twice ridge regression's or
# so, its heads add up, and one matrix carries every token to a layer if attention is linear and
# masked. Clipping costs what a layer needs.
#
# Next: [does_depth_amplify](does_depth_amplify.ipynb): what does depth do to a demonstration?
