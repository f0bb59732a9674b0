# %% [markdown]
# # A first theorem
#
# - Four layers of linear attention take four steps of gradient descent, to the last digit.
# - One hypothesis breaks, and the theorem with it: this is what a control is.
# - At the end you find the step size at which layers diverge.
#
# *Lesson 1 of 5, 10 minutes. You need gradient descent on least squares and a matrix product.*
#
# **Guess first.** Four layers, four steps of descent: will the two agree to 2 digits, to 7, or to
# the last one? And what if the query may read itself?

# %% tags=["setup"]
from functools import partial

import jax

jax.config.update("jax_enable_x64", True)  # rounding is the point here

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lsa_lab import estimators, prompts
from lsa_lab.lab import plotting
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import label_slots, layer_predictions
from lsa_lab.notebooks import check
from lsa_lab.tasks.linear import LinearTask, sample

# %%
plotting.use_in_notebook()

# %% [markdown]
# ## Construct
#
# A *prompt* is $n$ demonstrations $(x_i, y_i)$ and a query. A token is $e_i = [x_i, y_i]$, and the
# query's token is $[x, 0]$: its last coordinate, the *label slot*, is where the answer will stand.

# %% tags=["setup"]
task = LinearTask(n=20, d=5, noise_std=0.1)
prompt = sample(jax.random.key(1), task)
tokens = prompts.tokens(prompt)

# %% [markdown]
# One layer of linear attention adds $W_{PV}\, S\, W_{KQ}\, e_t$ to token $t$, where
# $S = \frac1n \sum_i e_i e_i^\top$ is the second moment of the demonstrations. The theorem
# (von Oswald et al., 2212.07677) writes the weights down: $W_{KQ} = \eta\, \mathrm{diag}(I, 0)$
# compares covariates, $W_{PV} = \mathrm{diag}(0, -1)$ moves the label slot alone.

# %% tags=["setup"]
step_sizes = jnp.array([0.4, 0.6, 0.6, 0.8])
params = constructions.gradient_descent(step_sizes, d=task.d)

# %% [markdown]
# ## Run
#
# `forward` takes one prompt's tokens and returns a `Trace`: the stream before the first layer and
# after each, `[L+1, T, e]`, and what each head wrote, `[L, H, T, e]`. The prediction is minus the
# query's label slot, after every layer.

# %%
trace = linear_attention.forward(params, tokens)
print("stream", trace.stream.shape, "heads", trace.heads.shape)
print("predictions", layer_predictions(trace))

# %% [markdown]
# ## Compare
#
# Gradient descent on $|y - Xw|^2 / 2n$ from $w_0 = 0$, with no attention in it, gives the same
# numbers:

# %%
weights = estimators.gradient_descent(prompt, step_sizes)  # [L+1, d]
print(weights @ prompt.x_query)
print("largest difference", np.abs(layer_predictions(trace) - weights @ prompt.x_query).max())

# %% [markdown]
# More is true: after $l$ layers the label slot of demonstration $i$ holds the residual
# $y_i - w_l \cdot x_i$. Points are the model's, lines are descent's.

# %%
picture, (ax, slots) = plotting.figure(6.75, 2.5, (1, 2))
layers = np.arange(len(step_sizes) + 1)
plotting.line(ax, layers, weights @ prompt.x_query, "gradient descent")
ax.plot(layers, layer_predictions(trace), "o", color=plotting.COLOURS[0], label="linear attention")
ax.axhline(prompt.y_query, color="grey", ls=":", label="the true label")
ax.set(title="Prediction for the query", xlabel="layer, or step", xticks=layers)
ax.legend()
for i in range(6):
    colour = plotting.COLOURS[i]
    plotting.line(slots, layers, prompt.y[i] - weights @ prompt.x[i], color=colour)
    slots.plot(layers, label_slots(trace)[:, i], "o", color=colour)
slots.set(title="Label slots of 6 demonstrations", xlabel="layer, or step", xticks=layers)
picture

# %% [markdown]
# ## Any prompt
#
# A theorem speaks of all prompts and all step sizes, not of one. So the test draws them: hypothesis
# looks for a prompt and step sizes that break the equality, and finds none.

# %%
draw = jax.jit(lambda seed: sample(jax.random.key(seed), task))


@partial(jax.jit, static_argnames=("change", "sign", "keys", "normalise"))
def disagreement(prompt, step_sizes, change=None, sign=-1.0, keys="demonstrations", normalise=True):
    """Return the largest difference between layers and descent, over the layers."""
    params = constructions.gradient_descent(step_sizes, task.d)
    params = params if change is None else change(params)
    trace = linear_attention.forward(params, prompts.tokens(prompt), keys=keys, normalise=normalise)
    descent = estimators.gradient_descent(prompt, step_sizes) @ prompt.x_query
    return jnp.abs(layer_predictions(trace, sign) - descent).max()


def find_counterexample(keys):
    """Raise AssertionError if one of 40 drawn cases breaks the equality."""

    @settings(max_examples=40, deadline=None, database=None, print_blob=False)
    @given(st.integers(0, 2**32 - 1), st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4))
    def layers_are_steps(seed, step_sizes):
        difference = disagreement(draw(seed), np.array(step_sizes), keys=keys)
        assert difference < 1e-10, f"seed {seed}, steps {step_sizes}: off by {difference:.2g}"

    layers_are_steps()


find_counterexample("demonstrations")
print("40 prompts: no difference above 1e-10")

# %% [markdown]
# ## Break it
#
# Would that test notice if the theorem were false? Break one hypothesis at a time: a sign, a mask,
# a factor. The last case changes what the theorem does *not* suppose.


# %%
def flipped(params):
    return params.replace(w_pv=-params.w_pv)


def rescaled(params):  # W_KQ and W_PV share a factor: a symmetry
    return params.replace(w_kq=3 * params.w_kq, w_pv=params.w_pv / 3)


cases = {
    "as the theorem says": {},
    "sign: W_PV turned": {"change": flipped},
    "sign: read out with plus": {"sign": 1.0},
    "mask: causal": {"keys": "causal"},
    "mask: the query is a key": {"keys": "all"},
    "factor: no 1/n": {"normalise": False},
    "3 W_KQ, W_PV / 3": {"change": rescaled},
}

# %% [markdown]
# Ten prompts each. Broken hypotheses stand ten orders of magnitude above rounding: this gap is what
# makes the bound 1e-10 of the test mean something.

# %%
picture, (ax,) = plotting.figure(6.75, 2.8)
for row, case in enumerate(cases.values()):
    values = [disagreement(draw(seed), step_sizes, **case) for seed in range(10)]
    colour = plotting.COLOURS[int(np.median(values) > 1e-10)]
    ax.plot(np.maximum(values, 1e-17), [row] * len(values), "o", color=colour, alpha=0.6)
ax.axvline(1e-10, color="grey", ls="--", lw=0.8)
ax.set(title="Theorem and controls", xscale="log")
ax.set(xlabel="largest difference between layers and descent")
ax.set_yticks(range(len(cases)), list(cases))
ax.invert_yaxis()
picture

# %% [markdown]
# That is a *control*: the same test with one hypothesis broken, which must fail. In this library
# every test of a theorem has one (`tests/theorems`, functions `test_control_...`). Here hypothesis
# finds a counterexample at once:

# %%
try:
    find_counterexample("causal")
except AssertionError as counterexample:
    print(str(counterexample).splitlines()[0])

# %% [markdown]
# ## Exercises
#
# Write a number or an array in the place of each `None`, and run the two cells.
#
# 1. *Easy.* How many tokens does a prompt of 20 demonstrations have?
# 2. *Easy.* What does the model predict before its first layer?
# 3. *Medium.* How many entries of one layer's $W_{PV}$ are not zero?
# 4. *Medium.* Every $x$, the query's too, is doubled. By which factor must the step of one layer
#    change so that its prediction stays?
# 5. *Hard.* $W_{PV}$ of one layer changes its sign, and the read-out reads plus the label slot. By
#    how much does the prediction move?

# %% tags=["exercise"]
answers = {1: None, 2: None, 3: None, 4: None, 5: None}

# %% tags=["check"]
layer = constructions.gradient_descent(jnp.array([0.5]), task.d)
doubled = prompt.replace(x=2 * prompt.x, x_query=2 * prompt.x_query)


def one_layer(params, prompt, sign=-1.0):
    return layer_predictions(linear_attention.forward(params, prompts.tokens(prompt)), sign)[-1]


turned = one_layer(layer.replace(w_pv=-layer.w_pv), prompt, sign=1.0)
truths = {1: len(tokens), 2: 0.0, 3: jnp.sum(layer.w_pv != 0)}
truths |= {4: one_layer(layer, prompt) / one_layer(layer, doubled)}
truths |= {5: turned - one_layer(layer, prompt)}
solved = check(answers, truths)

# %% tags=["solution"]
answers = {
    1: 21,  # the query is a token, too
    2: 0.0,  # the query's label slot is empty
    3: 1,  # it moves the label slot alone
    4: 1 / 4,  # the prediction is a sum of products of two covariates
    5: 0.0,  # with one layer nobody reads what was written: the signs cancel
}

# %% [markdown]
# ## Exercise 6, hard
#
# The theorem holds for every step size, but descent does not converge for every one. Take a deep
# stack with the same step size $\eta$ in all layers. Above which $\eta$ does a prompt
# make it diverge?
#
# Hints. Each layer multiplies the error of $w$ by $I - \eta H$, $H = X^\top X / n$. `prompt.x` is
# $X$, and `jnp.linalg.eigvalsh` gives the eigenvalues of a symmetric matrix. The check runs 400
# layers 2 % below and 2 % above your answer.


# %% tags=["exercise"]
def step_limit(prompt):
    """The step size above which a deep stack diverges on this prompt."""
    return None  # your answer


# %% tags=["check"]
def distance_from_least_squares(step_size, prompt, num_layers=400):
    """Return the distance of a deep stack's prediction from that of least squares."""
    deep = constructions.gradient_descent(jnp.full(num_layers, step_size), prompt.x.shape[1])
    predictions = layer_predictions(linear_attention.forward(deep, prompts.tokens(prompt)))
    return float(abs(predictions[-1] - estimators.ols(prompt) @ prompt.x_query))


answer, solved = step_limit(prompt), False
if answer is None:
    print("Not answered yet.")
else:
    below, above = (distance_from_least_squares(part * answer, prompt) for part in (0.98, 1.02))
    solved = below < 1e-3 and above > 1e3
    print(f"Distance from least squares below {below:.2g}, above {above:.2g}:", end=" ")
    print("right." if solved else "not yet.")


# %% tags=["solution"]
def step_limit(prompt):
    curvatures = jnp.linalg.eigvalsh(prompt.x.T @ prompt.x / prompt.x.shape[0])
    return 2 / curvatures[-1]


# %% [markdown]
# ## What you have seen
#
# A layer of linear attention with these weights is one step of gradient descent, to the last
# digit, for every prompt. A control breaks one hypothesis and shows that the test can fail.
# Descent needs a step below two over the largest curvature, and so does the stack.
#
# Next: [train_and_dissect](train_and_dissect.ipynb): does training find these weights?
