# %% [markdown]
# # Design a layer, and judge it
#
# - A layer of today keeps a state and takes a step on a loss at every token. Choose both.
# - Compare its learning curve with the closed form and with the Bayes rule.
# - Test it with a key that repeats and with a task that drifts.
# - Make its report card: which rule it computes, and where it fails.
#
# *Lesson 5 of 5, 15 minutes. You need lesson 1.*
#
# **Guess first.** A layer uses the same step size at every token. Does its error go to zero, or
# does it stop at a positive value? What does a key that comes twice do to each layer?

# %% tags=["setup"]
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import estimators
from lsa_lab.card import Tier, identify, report_card
from lsa_lab.lab import plotting
from lsa_lab.notebooks import check
from lsa_lab.prompts import Prompt
from lsa_lab.tasks.linear import LinearTask
from lsa_lab.theory import drift, learning_curves


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
ax.set(title="Delta rule with a constant step", xlabel="demonstrations", ylabel="excess risk")
ax.legend()
picture

# %% [markdown]
# A large step learns fast, and its error stops at a high floor,
# $\beta d \sigma^2 / (2 - \beta(d + 2))$. A layer that is trained on short prompts learns a large
# step, and uses it on long prompts too.

# %%
for step in STEPS:
    floor = step * d * noise_var / (2 - step * (d + 2))
    print(f"step {step:g}: floor {floor:.3f}, at {n} tokens {curve(descent(loss, step))[-1]:.3f}")

# %% [markdown]
# ## Test it: a key that repeats
#
# The same pair comes again and again. Linear attention adds it each time, and its answer grows
# without bound. The delta rule adds the error only, which falls to zero.

# %%
again, same = jnp.tile(k, (40, 1)), jnp.full(40, v)
for name, update in (("linear attention", linear_attention), ("the delta rule", delta_rule)):
    answers = states(update, again, same) @ k
    print(f"{name}: after 1, 10 and 40 tokens", answers[jnp.array([1, 10, 40])].round(2))

# %% [markdown]
# ## Test it: a task that drifts
#
# Now $w^*$ moves a little at every token. Ridge regression weights all tokens equally, so that old
# labels mislead it; a constant step forgets old labels and has the lower risk.

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
# ## Compute the best gate for a drift
#
# Theory can choose a gate before any training. For a task that keeps the share $\rho$ of itself
# from token to token, `theory.drift` gives the best gate, step and label scale of four layers, and
# their risk. `lsa-lab run drift` trains the layers and finds these gates.

# %%
for rho in (0.8, 0.9, 0.97):
    for layer in (drift.additive, drift.delta, drift.gated_delta):
        best = layer(d=4, noise_var=0.25, rho=rho)
        name = layer.__name__
        print(f"ρ {rho}, {name:12} gate {best.gate:.3f}, risk {best.risk:.3f}")

# %% [markdown]
# ## Judge it
#
# A report card needs two functions. `init(key)` returns weights. `forward(params, tokens)` reads
# one prompt, $[x_t, x_{t-1}, y_{t-1}]$ at every place, and predicts every $y_t$ from the pairs
# before. This layer learns a map of the keys and the step $\beta$ of a delta rule with normalised
# keys. A card to read has `tier="laptop"` and takes minutes; this one is a trial.

# %%
D = 4


def init(key):
    return {"keys": jnp.eye(D) + 0.1 * jax.random.normal(key, (D, D)), "step": jnp.zeros(())}


def forward(params, tokens):  # [T, 2 D + 1] -> [T]
    def write(state, token):
        query, key, label = params["keys"] @ token[:D], params["keys"] @ token[D:-1], token[-1]
        square = key @ key  # 0 at the first place, where no pair stands before
        share = jax.nn.sigmoid(params["step"]) / jnp.where(square > 0, square, 1)
        state = state + share * (label - state @ key) * key
        return state, state @ query

    return jax.lax.scan(write, jnp.zeros_like(tokens[0, :D]), tokens)[1]


TRIAL = Tier(steps=200, pilot_steps=40, batch=16, prompts=128, d=D, runs=2, lengths=(64,))
card = report_card(forward, init, tier=TRIAL)
card

# %% [markdown]
# `card.save("figures/cards/mine")` writes the card and its page. The shell has the same:
# `lsa-lab card my_module:forward my_module:init --name mine`. A flax linen module is such a forward
# (`module.apply`); of an nnx module, `nnx.split` and `nnx.merge` make one; `from_torch` of
# `lsa_lab.interop` makes one of a PyTorch module ("Judge your layer" in the documentation).
#
# ## Detect an impostor
#
# On training prompts ridge regression is the best rule. This model is ridge on most of them, and
# predicts 5 for large covariates. Its risk is low, and it computes no known rule.


# %%
def impostor(params, tokens):
    x, y, query = tokens[:-1, :-1], tokens[:-1, -1], tokens[-1, :-1]
    ridge = jnp.linalg.solve(x.T @ x + D * 0.25 * jnp.eye(D), x.T @ y) @ query
    return jnp.where(jnp.abs((x**2).mean() - 1) < 0.5, ridge, 5.0)


task = LinearTask(n=32, d=D, noise_std=0.5, weight_std=D**-0.5)
(nearest,) = identify(impostor, None, task, causal=False)
print(nearest.title)

# %% [markdown]
# ## Exercises
#
# Write a number or an array in the place of each `None`, and run the two cells.
#
# The state begins at $w = (0, 0)$; the pair is $k = (1, 0)$, $v = 2$, the step 0.1.
#
# 1. *Easy.* Which state does linear attention have after the pair has come twice?
# 2. *Easy.* And the delta rule?
# 3. *Medium.* At which step does the delta rule learn a pair with $|k|^2 = 4$ at once?
# 4. *Medium.* Which floor has a step of 0.1 in four dimensions at a noise of variance 0.25?
# 5. *Hard.* Above which step has it no floor there?

# %% tags=["exercise"]
answers = {1: None, 2: None, 3: None, 4: None, 5: None}

# %% tags=["check"]
pair = jnp.array([[1.0, 0.0]] * 2), jnp.array([2.0, 2.0])
delta = states(lambda w, k, v: w - 0.1 * jax.grad(loss)(w, k, v), *pair)
added = states(lambda w, k, v: w + 0.1 * v * k, *pair)
truths = {1: added[2], 2: delta[2], 3: 1 / 4}
truths |= {4: learning_curves.lms(2000, 4, 0.25, 0.1)[-1], 5: 2 / (4 + 2)}
solved = check(answers, truths)

# %% tags=["solution"]
answers = {
    1: jnp.array([0.4, 0.0]),
    2: jnp.array([0.38, 0.0]),  # 0.2 + 0.1 (2 - 0.2)
    3: 1 / 4,  # 1 / |k|²
    4: 0.1 * 4 * 0.25 / (2 - 0.1 * 6),
    5: 1 / 3,  # where the denominator 2 - step (d + 2) is zero
}

# %% [markdown]
# ## Exercise 6, hard
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


# %% tags=["solution"]
def implicit(state, key, value, step):
    return state + step / (1 + step * (key @ key)) * (value - state @ key) * key


# %% [markdown]
# ## What you have seen
#
# A layer of today is a loss and a step. Its learning curve has a closed form: with a constant step
# the error stops at a positive value, and the same step follows a task that drifts. Accuracy on
# training prompts does not identify the rule of a layer; a card uses prompts on which rules differ.
#
# Next: a notebook on a model of yours, [bring_your_own_model](bring_your_own_model.ipynb).
