# %% [markdown]
# # Does depth amplify?
#
# - A1 (2508.00385) says that layers enlarge the ratio of two demonstrations' flows. In random
#   stacks of large weights they do, of small weights they do not.
# - Layers that are steps of descent can reverse the order of two flows: a formula says when.
# - At the end you construct such a pair yourself.
#
# *Lesson 3 of 5, 15 minutes. You need lesson 1 and the derivative of a product.*
#
# **Guess first.** Of two demonstrations one has twice the flow of the other after one layer. Is
# it further ahead after six? Does your guess depend on the size of the weights?

# %% tags=["setup"]
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.analyses import amplification, disparity
from lsa_lab.lab import plotting
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.notebooks import check
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.theory import amplification as theory

jax.config.update("jax_enable_x64", True)

# %%
plotting.use_in_notebook()

# %% [markdown]
# ## The flow of one demonstration
#
# The *flow* of a demonstration $d = [x, y]$ is the derivative of the prediction with respect to
# it. The stacks here are random, of six layers with one head each; as in A1 the query is a key
# too.

# %%
num_layers, d = 6, 4
unmasked = partial(linear_attention.forward, keys="all")
random_stack = partial(linear_attention.init, num_layers=num_layers, num_heads=1, d=d)
stack = random_stack(jax.random.key(0), scale=0.15)

# %% [markdown]
# One layer has a closed form, $J = P\,(s I + d\,(Kq)^\top)$: $s = d \cdot Kq$ is the relevance of
# the demonstration, $Pd$ what it writes, $P$ and $K$ are `w_pv` and `w_kq`. Automatic
# differentiation of the layer gives the same.

# %%
task = LinearTask(n=2, d=d, weight_std=0.5)
pair = jax.jit(sample)(jax.random.key(1), task)
alone = pair.replace(x=pair.x[:1], y=pair.y[:1])  # the first demonstration, alone
demonstration, query = jnp.append(alone.x, alone.y), jnp.append(alone.x_query, 0.0)
one_layer = jax.tree.map(lambda weights: weights[:1], stack)
by_autodiff = jax.jit(amplification.token_flow, static_argnums=0)(unmasked, one_layer, alone)
by_hand = theory.one_shot_jacobian(stack.w_kq[0, 0], stack.w_pv[0, 0], demonstration, query)
print(f"largest difference: {jnp.abs(by_autodiff[0, 0].T - by_hand).max():.0e}")

# %% [markdown]
# Of two layers the formula is long, but the derivative is there. A1 compares two demonstrations,
# each alone in a prompt of its own: here is the ratio of the sizes of their flows after each layer.


# %%
@partial(jax.jit, static_argnums=0)
def lone_flows(forward, params, prompt):  # -> [L, n, e]
    """Return the flow of each demonstration in a prompt of its own."""

    def flow(x, y):
        own = prompt.replace(x=x[None], y=y[None])
        return amplification.demonstration_flow(forward, params, own)[:, 0]

    return jax.vmap(flow, out_axes=1)(prompt.x, prompt.y)


ratios = amplification.amplification_ratio(lone_flows(unmasked, stack, pair))
print("ratio after layers 1 to 6:", np.round(ratios, 2))

# %% [markdown]
# ## Many stacks, many pairs
#
# One pair proves nothing: take 16 random stacks, and 64 pairs in each. **Change `weight_scale`**,
# the standard deviation of the weights, to 0.05 or 0.25, and run the cells below it again.

# %%
weight_scale = 0.2

# %%
runs, pairs = 16, 64
key_stacks, key_pairs = jax.random.split(jax.random.key(2))
stacks = jax.vmap(partial(random_stack, scale=1.0))(jax.random.split(key_stacks, runs))
draw_pairs = jax.jit(jax.vmap(jax.vmap(partial(sample, task=task))))
batch = draw_pairs(jax.random.split(key_pairs, (runs, pairs)))  # [R, B]


@jax.jit
def log_ratios(stacks, batch, scale):  # -> [R, B, L]
    """Return log |flow 1| - log |flow 2|, the demonstration ahead after layer 1 on top."""

    def log_ratio(params, pair):
        return amplification.log_ratio(lone_flows(unmasked, params, pair))

    stacks = jax.tree.map(lambda weights: scale * weights, stacks)
    return jax.vmap(jax.vmap(log_ratio, (None, 0)))(stacks, batch)


ratios = log_ratios(stacks, batch, weight_scale)

# %% [markdown]
# "Amplifies" can be read in two ways, and the answers differ. The *disparity*, the median size of
# the log ratio over the pairs, asks whether flows become more unequal. The *lead*, the median log
# ratio with the demonstration that is ahead after layer 1 on top, asks whether that one gains; it
# falls where layers only reshuffle. Thin: the stacks. Thick: their mean, with its 95 % interval.


# %%
@jax.jit
def readings(ratios):  # [R, B, L] -> [R, L] twice
    spread, _ = jax.vmap(disparity.median_of_finite)(jnp.abs(ratios))
    return spread, jax.vmap(disparity.summarise)(ratios).median


layers = np.arange(1, num_layers + 1)
picture, axes = plotting.figure(6.75, 2.6, (1, 2))
names = ("disparity: median |log ratio|", "lead: median log ratio")
for ax, name, values in zip(axes, names, readings(ratios), strict=True):
    ax.plot(layers, values.T, color="grey", alpha=0.5, lw=0.5)
    plotting.mean_points(ax, layers, values, fmt="o-")
    ax.axhline(0, color=plotting.BLACK, lw=0.5)
    ax.set(title=name, xlabel="layer", ylim=axes[0].get_ylim())
picture

# %% [markdown]
# Medians hide the pairs that go the other way, and those of which a flow overflowed: linear
# attention is a polynomial of degree $3^L$. `disparity.summarise` counts both.

# %%
summary = jax.jit(jax.vmap(disparity.summarise))(ratios)
print(f"ratio larger after layer 6 than after layer 1: {summary.larger.mean():.0%} of the pairs")
print(f"the other demonstration ahead after layer 6:   {summary.flips.mean():.0%} of the pairs")
print(f"left out for an overflow: {summary.dropped.sum()} of {runs * pairs}")

# %% [markdown]
# ## It is a matter of size
#
# Here are the same stacks at every scale. Of small weights the flow after $l$ layers is the sum of
# $l$ flows of one layer. If the layers are equal, no ratio moves. If they differ, the sum is an
# average, and the disparity falls (docs/theory, "The amplification theorem").

# %%
scales = np.array([0.01, 0.03, 0.05, 0.1, 0.15, 0.2, 0.25])
tied = jax.tree.map(lambda weights: jnp.broadcast_to(weights[:, :1], weights.shape), stacks)
picture, (ax,) = plotting.figure(5, 2.6)
for kind, label in ((stacks, "layers that differ"), (tied, "equal layers")):
    spreads = (readings(log_ratios(kind, batch, scale))[0] for scale in scales)
    growth = np.stack([spread[:, -1] / spread[:, 0] for spread in spreads], axis=1)  # [R, scales]
    plotting.mean_points(ax, scales, growth, label, "median", fmt="o-", capsize=2)
ax.axhline(1, color=plotting.BLACK, lw=0.5)
ax.axvline(weight_scale, color="grey", lw=0.5, ls=":")
plotting.log_axes(ax, x=True, y=True, ticks=scales)
ax.set(title="Growth of the disparity", xlabel="weight scale", ylabel="layer 6 over layer 1")
ax.legend()
picture

# %% [markdown]
# ## A stack in which depth reverses the order
#
# In `constructions.gradient_descent` every layer is one step of descent. With one demonstration
# the flow from its label is
#
# $$\partial \hat y_L / \partial y = (x \cdot x_q / |x|^2)\,\bigl(1 - (1 - \eta |x|^2)^L\bigr)$$
#
# (docs/theory, "The one-shot descent flow"). One step rewards $x \cdot x_q$, many steps reward $x
# \cdot x_q / |x|^2$: a short demonstration catches up with a long one. Points: the network,
# differentiated. Lines: the formula.

# %%
steps = jnp.full(16, 0.15)
descent = constructions.gradient_descent(steps, d=2)
examples = {  # x of the demonstration ahead after one step, x of the other, the query
    "the longer one ahead": ([[2.0, 0.0], [0.6, 0.0]], [1.0, 0.3]),
    "the shorter one ahead": ([[0.6, 0.0], [1.8, 1.0]], [1.0, -1.4]),
}
closed_form = jax.jit(jax.vmap(theory.one_shot_descent_flow, (None, 0, None)))

picture, (ax,) = plotting.figure(5, 2.6)
depths = np.arange(1, len(steps) + 1)
for color, (label, (x, x_query)) in zip(plotting.COLOURS, examples.items(), strict=False):
    x, x_query = jnp.array(x), jnp.array(x_query)
    two = Prompt(x, jnp.ones(2), x_query, jnp.zeros(()))
    network = lone_flows(linear_attention.forward, descent, two)[..., -1]  # from the label
    formula = closed_form(steps, x, x_query)
    ax.plot(depths, network[:, 0] / network[:, 1], "o", color=color, label=label)
    plotting.line(ax, depths, formula[0] / formula[1], color=color)
ax.axhline(1, color=plotting.BLACK, lw=0.5)
plotting.log_axes(ax, x=True, y=True, ticks=(1, 2, 4, 8, 16))
ax.set(title="Ratio of two flows in layers of descent", xlabel="layers", ylabel="ratio")
ax.legend()
picture

# %% [markdown]
# ## Softmax that reads one key
#
# The weight of a single key is 1, whatever the key. With one demonstration, and the query no key,
# no flow knows what it comes from: every ratio is 1.

# %%
config = transformer.Config(token_width=d + 1, num_layers=3, heads=1, key_width=d + 1)
softmax_stack = jax.jit(transformer.init)(jax.random.key(3), config)
softmax = partial(transformer.forward, config=config)
print(amplification.amplification_ratio(lone_flows(softmax, softmax_stack, pair)))

# %% [markdown]
# ## Exercises
#
# Write a number or an array in the place of each `None`, and run the two cells.
#
# One layer, $P = K = I$, has the demonstration $d = (1, 2)$ and the query's token $q = (3, 0)$.
#
# 1. *Easy.* Two flows have the ratio 2 after the first layer and 8 after the last. By which factor
#    has the logarithm of their ratio grown?
# 2. *Medium.* What is the flow of $d$ through this layer, $J = s P + P d\,(K q)^\top$?
# 3. *Medium.* What is the self-coupling of $d$, $d \cdot K P d$?
# 4. *Medium.* In equal layers what $d$ writes grows like $((1 + \kappa)^L - 1)/\kappa$. By which
#    factor does it grow from one layer to three, at $\kappa = 1$?
# 5. *Hard.* Layers descend with steps of 0.2 on one demonstration $x_1 = (2, 0)$; the query is
#    $(1, 0)$. Which flow has the label of $x_1$ after very many layers?

# %% tags=["exercise"]
answers = {1: None, 2: None, 3: None, 4: None, 5: None}

# %% tags=["check"]
demonstration, query = jnp.array([1.0, 2.0]), jnp.array([3.0, 0.0])
truths = {1: jnp.log(8.0) / jnp.log(2.0), 4: 7.0}
truths |= {2: theory.one_shot_jacobian(jnp.eye(2), jnp.eye(2), demonstration, query)}
truths |= {3: theory.self_coupling(jnp.eye(2), jnp.eye(2), demonstration)}
long = jnp.full(200, 0.2), jnp.array([2.0, 0.0]), jnp.array([1.0, 0.0])
truths |= {5: theory.one_shot_descent_flow(*long)[-1]}
solved = check(answers, truths)

# %% tags=["solution"]
answers = {
    1: 3.0,  # log 8 = 3 log 2
    2: 3 * jnp.eye(2) + jnp.outer(jnp.array([1.0, 2.0]), jnp.array([3.0, 0.0])),
    3: 5.0,
    4: 7.0,  # (2^3 - 1) / 1 over (2^1 - 1) / 1
    5: 0.5,  # x_1·x_query / |x_1|²: the shortest solution of one equation
}

# %% [markdown]
# ## Exercise 6, hard
#
# Steps of 0.2 descend on one demonstration; $x_1 = (1.5, 0.5)$ and the query is $(1, 0.5)$. **Find
# $x_2$ whose label has at most half the flow of $x_1$'s label after one layer, and at least twice
# as much after 64.**
#
# Hints. The formula of "A stack in which depth reverses the order" is enough. What of $x_2$ counts
# after one layer, and what after many? Multiples of the query are enough.

# %% tags=["exercise"]
x_2 = None  # your answer: jnp.array([..., ...])

# %% tags=["check"]
x_1, x_query, steps = jnp.array([1.5, 0.5]), jnp.array([1.0, 0.5]), jnp.full(64, 0.2)
solved = False
if x_2 is not None:
    flow_1, flow_2 = (theory.one_shot_descent_flow(steps, x, x_query) for x in (x_1, x_2))
    ratio = jnp.abs(flow_2 / flow_1)
    print(f"after one layer {ratio[0]:.2f}, after 64 layers {ratio[-1]:.2f}")
    solved = bool(ratio[0] <= 0.5 and ratio[-1] >= 2)
print("solved" if solved else "not yet")

# %% tags=["solution"]
x_2 = 0.5 * jnp.array([1.0, 0.5])

# %% [markdown]
# ## What you have seen
#
# Depth amplifies where layers push: in random stacks of large weights. Layers that descend can
# reverse the order, so A1's statement is no law of every stack. Trained models that are
# near the Bayes rule in risk end as unequal as it, on prompts like those of training.
#
# Next: [choose_demonstrations](choose_demonstrations.ipynb): is a large flow a good demonstration?
