# %% [markdown]
# # Design a layer
#
# - A layer of today keeps a state and takes a step on a loss at every token. Choose both.
# - Watch its learning curve beside the closed one and beside the Bayes rule.
# - Break it: a key that repeats, a task that drifts, a prompt that is longer than in training.
#
# *Lesson 5 of 5, 10 minutes. You need lesson 1.*
#
# **Guess first.** A layer keeps its last step size for ever. Does its error go to zero, or does
# it stop at a floor? What does a key that comes twice do to each layer?
#
# To run it: `make notebooks`, then open `.cache/notebooks/design_a_layer.ipynb`.

# %% tags=["setup"]
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab.models import effective
from lsa_lab.notebooks import Prompt, check, estimators, learning_curves, plotting
from lsa_lab.theory import drift


def loss(state, key, value):  # [d], [d], [] -> []
    return (state @ key - value) ** 2 / 2


def states(update, keys, values):  # -> [n + 1, d]
    """The state before the first token and after each."""

    def write(state, pair):
        state = update(state, *pair)
        return state, state

    first = jnp.zeros_like(keys[0])
    return jnp.concatenate([first[None], jax.lax.scan(write, first, (keys, values))[1]])


# %%
plotting.use_in_notebook()

# %% [markdown]
# ## A loss and a step give an update
#
# The state is a vector $w$ that answers $w \cdot k$ to a key $k$. One token brings a pair $(k, v)$,
# and the layer takes one step down a loss. Of the loss $-v\, w \cdot k$ the step is linear
# attention; of half the squared error it is the delta rule.


# %%
def descent(own_loss, step):
    return lambda state, key, value: state - step * jax.grad(own_loss)(state, key, value)


linear_attention = descent(lambda w, k, v: -v * (w @ k), 0.1)
delta_rule = descent(loss, 0.1)

w, k, v = jnp.array([1.0, 2.0]), jnp.array([0.5, 1.0]), jnp.array(3.0)
print("linear attention:", linear_attention(w, k, v), "by hand:", w + 0.1 * v * k)
print("the delta rule:  ", delta_rule(w, k, v), "by hand:", w + 0.1 * (v - w @ k) * k)

# %% [markdown]
# ## Its learning curve
#
# Keys are $N(0, I)$ and $v = w^* \cdot k + \varepsilon$. A curve is the mean of $|w_t - w^*|^2$
# after $t$ tokens. Points are simulated; lines are closed forms (docs/theory, "Constant steps,
# and labels as they are"). Ridge regression is the Bayes rule here: no layer is below it.

# %%
d, n, noise_var, count = 4, 128, 0.25, 500
rng = np.random.default_rng(0)
tasks = rng.normal(size=(count, 1, d)) / np.sqrt(d)
x = rng.normal(size=(count, n, d))
y = (x * tasks).sum(-1) + np.sqrt(noise_var) * rng.normal(size=(count, n))
tasks, x, y = (jnp.asarray(array, jnp.float32) for array in (tasks, x, y))


def curve(update):
    return ((jax.vmap(partial(states, update))(x, y) - tasks) ** 2).sum(-1).mean(0)


STEPS = (0.02, 0.1, 0.25)
picture, (ax,) = plotting.figure(5.5, 3.0)
ax.plot(learning_curves.ridge(n, d, noise_var), color="grey", label="ridge, the Bayes rule")
for step, color in zip(STEPS, plotting.COLOURS, strict=False):
    ax.plot(learning_curves.lms(n, d, noise_var, step), color=color, label=f"step {step:g}")
    ax.plot(range(0, n + 1, 8), curve(descent(loss, step))[::8], "o", ms=3, color=color)
plotting.log_axes(ax, y=True)
ax.set(xlabel="demonstrations", ylabel="excess risk")
ax.legend()
picture

# %% [markdown]
# A constant step is a bargain: a large one learns fast and ends on a high floor,
# $\beta d \sigma^2 / (2 - \beta(d + 2))$. A layer that is trained on short prompts chooses the
# large one, and keeps it on long prompts.

# %%
for step in STEPS:
    floor = step * d * noise_var / (2 - step * (d + 2))
    print(f"step {step:g}: floor {floor:.3f}, at {n} tokens {curve(descent(loss, step))[-1]:.3f}")

# %% [markdown]
# ## Break it: a key that repeats
#
# The same pair comes again and again. Linear attention adds it each time, and its answer grows
# without bound. The delta rule has learned it, and the error tells it so.

# %%
again, same = jnp.tile(k, (40, 1)), jnp.full(40, v)
for name, update in (("linear attention", linear_attention), ("the delta rule", delta_rule)):
    answers = states(update, again, same) @ k
    print(f"{name}: after 1, 10 and 40 tokens", answers[jnp.array([1, 10, 40])].round(2))

# %% [markdown]
# ## Break it: a task that drifts
#
# Now $w^*$ moves a little at every token. Ridge regression trusts all tokens alike and falls
# behind; a constant step forgets at the right speed. The floor, a fault before, is a virtue.

# %%
moves = 0.2 * rng.normal(size=(count, n, d)) / np.sqrt(d)
drifting = tasks + jnp.asarray(moves.cumsum(1), jnp.float32)
y_drifting = (x * drifting).sum(-1) + (y - (x * tasks).sum(-1))


def risk_at_the_end(weights):  # [count, n + 1, d] -> []
    return float(((weights[:, -1] - drifting[:, -1]) ** 2).sum(-1).mean())


prompts = Prompt(x, y_drifting, x[:, 0], y[:, 0])
ridge = jax.vmap(lambda prompt: estimators.recursive_ridge(prompt, d * noise_var))(prompts)
print(f"ridge: {risk_at_the_end(ridge):.2f}")
for step in STEPS:
    weights = jax.vmap(partial(states, descent(loss, step)))(x, y_drifting)
    print(f"the delta rule, step {step:g}: {risk_at_the_end(weights):.2f}")

# %% [markdown]
# ## Exercises
#
# Write a number or an array in the place of each `None`, and run the two cells.
#
# The state begins at $w = (0, 0)$; the pair is $k = (1, 0)$, $v = 2$, the step 0.1.
#
# 1. *Easy.* Which state does the delta rule have after the pair?
# 2. *Easy.* Which state does linear attention have after the pair has come twice?
# 3. *Easy.* And the delta rule?
# 4. *Medium.* At which step does the delta rule learn a pair with $|k|^2 = 4$ at once?
# 5. *Medium.* Above which step does it explode on that key, if it comes again and again?
# 6. *Medium.* Which floor has a step of 0.1 in four dimensions at a noise of variance 0.25?
# 7. *Hard.* Above which step has it no floor there?

# %% tags=["exercise"]
answers = {1: None, 2: None, 3: None, 4: None, 5: None, 6: None, 7: None}

# %% tags=["check"]
pair = jnp.array([[1.0, 0.0]] * 2), jnp.array([2.0, 2.0])
delta = states(lambda w, k, v: w - 0.1 * jax.grad(loss)(w, k, v), *pair)
added = states(lambda w, k, v: w + 0.1 * v * k, *pair)
truths = {1: delta[1], 2: added[2], 3: delta[2], 4: 1 / 4, 5: 2 / 4}
truths |= {6: learning_curves.lms(2000, 4, 0.25, 0.1)[-1], 7: 2 / (4 + 2)}
solved = check(answers, truths)

# %% [markdown] tags=["solution"]
# <details><summary>Answers</summary>
#
# ```python
# answers = {
#     1: jnp.array([0.2, 0.0]),
#     2: jnp.array([0.4, 0.0]),
#     3: jnp.array([0.38, 0.0]),  # 0.2 + 0.1 (2 - 0.2)
#     4: 1 / 4,  # 1 / |k|²
#     5: 2 / 4,
#     6: 0.1 * 4 * 0.25 / (2 - 0.1 * 6),
#     7: 1 / 3,  # where the denominator 2 - step (d + 2) is zero
# }
# ```
#
# </details>

# %% [markdown]
# ## Exercise 8, hard
#
# With a step above $2 / |k|^2$ the delta rule explodes. Longhorn (2407.14207) takes the step
# that knows where it ends: the new state is the minimum over $s$ of
# $|s - w|^2 / 2 + \beta (s \cdot k - v)^2 / 2$. Write the update; it is bounded for every $\beta$.
#
# Hints. Set the derivative to zero: $s - w$ is a multiple of $k$. Which one? The check asks whether
# the derivative is zero where your update ends.


# %% tags=["exercise"]
def implicit(state, key, value, step):
    return state  # your answer


# %% tags=["check"]
def left_over(step):
    start, key, value = jnp.array([1.0, -1.0]), jnp.array([2.0, 0.5]), jnp.array(4.0)

    def objective(end):
        return ((end - start) ** 2).sum() / 2 + step * loss(end, key, value)

    return jnp.abs(jax.grad(objective)(implicit(start, key, value, step))).max() / step


solved = all(bool(left_over(step) < 1e-4) for step in (0.1, 1.0, 100.0))
print("solved" if solved else "not yet")

# %% [markdown] tags=["solution"]
# <details><summary>A solution</summary>
#
# ```python
# def implicit(state, key, value, step):
#     return state + step / (1 + step * (key @ key)) * (value - state @ key) * key
# ```
#
# </details>

# %% [markdown]
# ## Read off the best gate for a drift
#
# A gate is a choice that theory can make before any training. For a task that keeps the share
# $\rho$ of itself from token to token, `theory.drift` gives the best gate, step and label scale of
# four layers, and the risk that they reach.

# %%
for rho in (0.8, 0.9, 0.97):
    for layer in (drift.additive, drift.delta, drift.gated_delta):
        best = layer(d=4, noise_var=0.25, rho=rho)
        name = layer.__name__
        print(f"ρ {rho}, {name:12} gate {best.gate:.3f}, risk {best.risk:.3f}")
assert abs(drift.additive(4, 0.25, 0.9).gate - 0.8067) < 1e-4

# %% [markdown]
# DeltaNet has no gate. Where the task moves fast it loses to RetNet at larger $d$; a gate equal to
# the drift mends that. `lsa-lab run drift` trains the layers and finds these gates.
#
# ## The attention of a layer from elsewhere
#
# A layer of another library hands in its arrays: queries, keys, gates and steps of one head. The
# weights with which each token reads each value come back, as for a softmax layer. Arrays of torch
# are read by `tensor.detach().numpy()`.

# %%
try:
    import torch

    arrays = torch.randn(3, 6, 4, generator=torch.Generator().manual_seed(0)).numpy()
except ImportError:
    arrays = np.random.default_rng(0).normal(size=(3, 6, 4)).astype(np.float32)
queries, keys, values = arrays
keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
weights = effective.attention(queries, keys, step=0.5, gate=0.9, removed=keys)
print(np.round(weights, 2))
reads = [
    q @ s
    for q, s in zip(
        queries, effective.states(keys, values, step=0.5, gate=0.9, removed=keys), strict=True
    )
]
print("read by weights and by states agree:", np.allclose(weights @ values, reads, atol=1e-5))

# %% [markdown]
# ## What you have seen
#
# A layer of today is a loss and a step. Its learning curve is closed: a constant step has a floor,
# which helps where the task drifts, and the state that solves ridge regression is the Bayes rule's.
#
# Next: [judge_your_own_layer](judge_your_own_layer.ipynb), or a notebook on a model of yours:
# [bring_your_own_model](bring_your_own_model.ipynb).
