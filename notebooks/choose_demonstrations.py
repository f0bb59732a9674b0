# %% [markdown]
# # Choose demonstrations
#
# - Scores of a demonstration, GradS among them, and what each of them overlooks.
# - A fair comparison: the same queries for every rule, in twelve pools and on a table of your own.
# - One subset for all queries by gradient matching, and the models for which it is exact.
# - At the end you hide a demonstration from gradient matching.
#
# *Lesson 4 of 5, 20 minutes. You need lessons 1 and 3.*
#
# **Guess first.** Twelve pools, one budget. Will gradients choose better demonstrations than
# similarity to the query does? Does noise in labels change your mind?

# %% tags=["setup"]
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from lsa_lab import estimators, prompts
from lsa_lab.lab import mean_interval, plotting
from lsa_lab.models import constructions, linear_attention
from lsa_lab.models.trace import predict
from lsa_lab.notebooks import check
from lsa_lab.prompts import Prompt
from lsa_lab.selection import baselines, diversity, gradient_matching, oracles, prefix, scores
from lsa_lab.tasks import pools, tables
from lsa_lab.tasks.pools import Pool

jax.config.update("jax_enable_x64", True)

# %%
plotting.use_in_notebook()

# %% [markdown]
# ## Five demonstrations
#
# A model knows $w_0 = (1, 0)$ before it reads. A demonstration is *relevant* if $x \cdot x_q$ is
# large, and *new* if its label is not $w_0 \cdot x$. The pool is an array of tokens $[x, y]$.

# %%
w_0, x_query = jnp.array([1.0, 0.0]), jnp.array([1.0, 1.0])
rows = {
    "relevant, new": [1.0, 1.0, 3.0],
    "the same again": [1.0, 1.0, 3.0],
    "relevant, known": [1.0, 1.0, 1.0],
    "irrelevant, new": [1.0, -1.0, -1.0],
    "a bit of both": [0.5, 0.2, 0.9],
}
tokens = jnp.array(list(rows.values()))

# %% [markdown]
# GradS (A1, 2508.00385) takes the size of the flow, the derivative of the prediction with respect
# to the demonstration. The flow of each one alone is a matrix times the query's token:
# `encode_flow` makes the matrices once for all queries.

# %%
model = constructions.prior_attention(jnp.full(2, 0.25), w_0)  # two steps of descent from w_0
flow = jax.jit(scores.encode_flow)(model, tokens) @ jnp.append(x_query, 0.0)  # [L, m, e]
columns = {
    "GradS": scores.flow_norm(flow[-1]),
    "flow x input": scores.flow_times_input(flow[-1], tokens),
    "contribution": scores.contribution(tokens, x_query, w_0),
    "similarity": scores.similarity(tokens, x_query),
    "residual": scores.residual(tokens, x_query, w_0),
}
print(" " * 16 + "".join(f"{name:>14}" for name in columns))
for i, name in enumerate(rows):
    print(f"{name:16}" + "".join(f"{column[i]:14.2f}" for column in columns.values()))

# %% [markdown]
# GradS gives points to what is known and to what is irrelevant: the flow is a sum of two terms.
# Their product is the *contribution*, $|x \cdot x_q|\,|y - w_0 \cdot x|$, what one layer writes.
# And no score sees that the second demonstration repeats the first. It shows once the model has
# learnt from the first: score again with the weights that it has now.


# %%
def learn(pool, w_0, chosen, steps):  # chosen [m], of zeros and ones -> [d]
    """Take steps of descent from w_0 on the chosen ones, like the layers of ``prior_attention``."""
    x, unknown = chosen[:, None] * pool.x, chosen * (pool.y - pool.x @ w_0)
    step = 1 / (jnp.linalg.eigvalsh(x.T @ x / len(x))[-1] + 1e-12)  # no choice overshoots
    prompt = Prompt(x, unknown, jnp.zeros_like(w_0), jnp.zeros_like(step))
    return w_0 + estimators.gradient_descent(prompt, jnp.full(steps, step))[-1]


five = Pool(tokens[:, :-1], tokens[:, -1])
learnt = jax.jit(learn, static_argnums=3)(five, w_0, jnp.array([1.0, 0, 0, 0, 0]), 3)
print("contributions", scores.contribution(tokens, x_query, learnt).round(2))

# %% [markdown]
# The copy is worth nothing now. But what the model knew before has become new.
#
# ## Twelve pools
#
# Now 32 demonstrations. Half come from a task that the model knows, half from a new one, which is
# asked. A quarter are copies.

# %%
num_pools, num_queries, size, depth = 12, 32, 4, 3
task = pools.PoolTask(m=32, d=4, num_weights=2, copies=0.25, noise_std=0.1)


@jax.jit
def sample(key):  # -> pool, w_0 [d], x_query [Q, d], y_query [Q]
    key_pool, key_queries = jax.random.split(key)
    pool = pools.sample(key_pool, task)
    w_0, w_1 = pool.population.weights
    queries = jax.random.normal(key_queries, (num_queries, task.d))
    return Pool(pool.x, pool.y), w_0, queries, queries @ w_1


cases = [sample(key) for key in jax.random.split(jax.random.key(0), num_pools)]

# %% [markdown]
# Every rule is a few names of the library and chooses four. The oracle sees the answer: it is no
# rule, but says how much is to be gained.


# %%
def choices(pool, w_0, x_query, error, key):  # -> {rule: indices [size]}
    tokens = pools.tokens(pool)
    safe = jnp.full(depth, 1 / (pool.x**2).sum(1).max())
    model = constructions.prior_attention(safe, w_0)
    flow = scores.encode_flow(model, tokens) @ jnp.append(x_query, 0.0)
    contribution = scores.contribution(tokens, x_query, w_0)

    def recompute(chosen):
        return scores.contribution(tokens, x_query, learn(pool, w_0, chosen, depth))

    once = {
        "random": scores.random(tokens, x_query, key),
        "similarity": scores.similarity(tokens, x_query),
        "GradS, layer 1": scores.flow_norm(flow[0]),
        "GradS, last layer": scores.flow_norm(flow[-1]),
        "contribution": contribution,
    }
    each_time = {
        "contribution, recomputed": recompute,
        "oracle": partial(oracles.leave_one_out, error),
    }
    nothing = jnp.zeros_like(pool.y)
    diverse = diversity.determinantal(contribution[:, None] * pool.x, size)
    return (
        {rule: scores.select(values, size) for rule, values in once.items()}
        | {rule: oracles.pick_greedily(s, nothing, size) for rule, s in each_time.items()}
        | {"contribution, determinantal": diverse}
    )


# %% [markdown]
# The error of a rule in a pool is the mean over its queries, which are the same for every rule.
# **Change `copies`, `noise_std` or `size` above, and run from there.**


# %%
@jax.jit
def errors(case, key):  # -> {rule: []}
    pool, w_0, queries, targets = case

    def of_query(x_query, y_query, key):
        def error(chosen):  # [m], of zeros and ones
            return (learn(pool, w_0, chosen, depth) @ x_query - y_query) ** 2

        rules = choices(pool, w_0, x_query, error, key)
        return jax.tree.map(lambda indices: error(jnp.zeros_like(pool.y).at[indices].set(1)), rules)

    keys = jax.random.split(key, len(targets))
    return jax.tree.map(jnp.mean, jax.vmap(of_query)(queries, targets, keys))


def compare(cases):  # -> {rule: [pools]}
    keys = jax.random.split(jax.random.key(1), len(cases))
    rows = [errors(case, key) for case, key in zip(cases, keys, strict=True)]
    return {rule: np.array([row[rule] for row in rows]) for rule in rows[0]}


in_pools = compare(cases)

# %% [markdown]
# Two rules are compared in the same pool: each dot is the error of a rule over that of a random
# choice, in one pool. Bars: the geometric mean over pools and its 95 % interval.


# %%
def plot_errors(by_rule, title):
    picture, (ax,) = plotting.figure(5.5, 3)
    logs = {rule: np.log(values / by_rule["random"]) for rule, values in by_rule.items()}
    best = np.exp(logs.pop("oracle").mean())
    rules = sorted(set(logs) - {"random"}, key=lambda rule: -logs[rule].mean())
    ratios = np.exp([logs[rule] for rule in rules]).T  # [pools, rules]
    places = np.arange(len(rules))
    ax.plot(ratios.T, places - 0.3, ".", color="grey", ms=2)
    plotting.mean_points(ax, places, ratios, statistic="ratio", rows=True, fmt="o")
    ax.axvline(1, color=plotting.BLACK, lw=0.5)
    plotting.log_axes(ax, x=True, ticks=(0.03, 0.1, 0.3, 1))
    ax.set_yticks(range(len(rules)), rules)
    ax.set(xlabel=f"error, over that of a random choice (the oracle's: {best:.1g})", title=title)
    return picture


plot_errors(in_pools, "two tasks, a quarter copies")

# %% [markdown]
# Recomputed scores choose from the known task, which no query asks for. A determinantal choice of
# large contributions avoids copies in another way. Each bar compares a rule with a random choice;
# two rules are compared by their own ratio, and an interval that contains 1 decides nothing.


# %%
def ratio(by_rule, first, second):
    logs = np.log(by_rule[first] / by_rule[second])
    low, high = np.exp(mean_interval(logs))
    print(f"error of {first} over {second}: {np.exp(logs.mean()):.2f} [{low:.2f}, {high:.2f}]")


ratio(in_pools, "GradS, last layer", "contribution")
ratio(in_pools, "contribution, determinantal", "contribution")

# %% [markdown]
# ## A table of your own
#
# Any array of numbers will do, the label in the last column (or `tables.load_csv`). This one is
# made up: 768 houses. `standardise` centres and scales the columns; a split is a pool and its
# queries, and no row is in two splits, so that the runs are independent. Nothing is known before,
# $w_0 = 0$.

# %%
rng = np.random.default_rng(0)
area, age, distance, floor = rng.gamma(4.0, size=(4, num_pools * (task.m + num_queries)))
price = area * (3 + 2 / distance) - 0.3 * age + 0.1 * floor**2 + rng.normal(size=len(area))
houses = np.stack([area, age, distance, floor, price], axis=1)
table = tables.standardise(houses, ["area", "age", "distance", "floor", "price"])

x = np.asarray(table.x).reshape(num_pools, -1, task.d)  # [splits, pool and queries, d]
y = np.asarray(table.y).reshape(num_pools, -1)
m = task.m
splits = [(Pool(x[:m], y[:m]), np.zeros(task.d), x[m:], y[m:]) for x, y in zip(x, y, strict=True)]
in_table = compare(splits)
ratio(in_table, "GradS, last layer", "contribution")
ratio(in_table, "GradS, last layer", "similarity")
plot_errors(in_table, "768 houses")

# %% [markdown]
# ## One subset for all queries
#
# Gradient matching (A3, 2506.04579) asks no query: it chooses the subset whose mean gradient is
# nearest to the pool's, at several checkpoints of a small learner. Here that is linear regression
# on the pool's own path of descent.

# %%
d, m, size, most = task.d, 64, 12, task.d + 3
one_task = pools.PoolTask(m=m, d=d, noise_std=0.5)


@jax.jit
def pool_and_path(key):  # -> pool, step [], checkpoints [C, d]
    pool = pools.sample(key, one_task)
    step = 0.7 / jnp.linalg.eigvalsh(pool.x.T @ pool.x / m)[-1]
    whole = Prompt(pool.x, pool.y, pool.x[0], pool.y[0])
    return pool, step, estimators.gradient_descent(whole, jnp.full(most - 1, step))


pool, step, path = pool_and_path(jax.random.key(2))
gradients = prefix.linear_gradients(path[: d + 1], pool)
selection = gradient_matching.match(gradients, size)
at_random = gradient_matching.random_gap(gradients, size)
print(f"gap of the subset {selection.objective:.3f}, of a random one {at_random:.3f}")

# %% [markdown]
# A subset of 12 is not the pool, but descent answers from it nearly as from the pool.


# %%
@partial(jax.jit, static_argnums=0)
def answers(num_layers, tokens, queries):  # [n, e], [Q, d] -> [Q]
    model = constructions.gradient_descent(jnp.full(num_layers, step), d)

    def answer(x_query):
        prompt = Prompt(tokens[:, :-1], tokens[:, -1], x_query, jnp.zeros_like(step))
        return predict(linear_attention.forward(model, prompts.tokens(prompt)))

    return jax.vmap(answer)(queries)


def change(num_layers, tokens, reference):
    """Return the relative distance of the answers from two sets of demonstrations."""
    new, old = (np.asarray(answers(num_layers, rows, queries)) for rows in (tokens, reference))
    return np.linalg.norm(new - old) / np.linalg.norm(old)


queries, tokens = rng.normal(size=(num_queries, d)), np.asarray(pools.tokens(pool))
at_random = baselines.random_subsets(jax.random.key(4), m, size, 20)
print(f"matched {change(4, tokens[selection.indices], tokens):.3f}")
print(f"random  {np.mean([change(4, tokens[indices], tokens) for indices in at_random]):.3f}")

# %% [markdown]
# **What matching is exact for.** The mean gradient of regression at $w$ is $Hw - r$. Checkpoints
# in general position, $d + 1$ of them, tell $H$ and $r$, and descent of any depth reads no more
# (docs/theory, "Matched gradients predict alike"). With fewer, something stays hidden: a
# demonstration with $x \cdot w_c = y$ at all of them has no gradient. So keep the part of a random
# demonstration that the first $C$ checkpoints do not see, and put it into the pool in the place of
# a token of zeros: no mean gradient changes. Thin: ten of them.


# %%
def hidden(token, count):
    """Return the part of the token that ``count`` checkpoints do not see."""
    seen = np.hstack([path[:count], -np.ones((count, 1))])  # x·w - y is zero where it is hidden
    return token - np.linalg.pinv(seen) @ (seen @ token)


extra = 3 * rng.normal(size=(10, d + 1))
with_zeros, counts = np.vstack([tokens, np.zeros(d + 1)]), np.arange(most + 1)
sets = [[np.vstack([tokens, hidden(token, c)]) for c in counts] for token in extra]
picture, (ax,) = plotting.figure(5.5, 2.8)
for num_layers, color in zip((1, 2, 4, 8), plotting.COLOURS, strict=False):
    changes = [[change(num_layers, rows, with_zeros) for rows in each] for each in sets]
    logs = np.log10(np.maximum(changes, 1e-17))  # zero is not on the axis
    ax.plot(counts, 10**logs.T, color=color, alpha=0.25, lw=0.5)
    ax.plot(counts, 10 ** logs.mean(0), "o-", color=color, label=f"depth {num_layers}")
ax.axvline(d + 1, color="grey", lw=0.5, ls=":")
plotting.log_axes(ax, y=True)
ax.set(title="Error of a matched subset", xlabel="matched checkpoints")
ax.set(ylabel="change of the answers")
ax.legend()
picture

# %% [markdown]
# Descent of $L$ layers is exact after $L$ checkpoints of its own path, and any depth after $d + 1
# = 5$. Attention with other weights, and softmax, read more of the prompt than $H$ and $r$.
#
# ## Exercises
#
# Write a number or an array in the place of each `None`, and run the two cells.
#
# A model knows $w_0 = (1, 0)$, the query is $(1, 1)$, and the demonstration is $x = (2, 1)$ with
# the label 5.
#
# 1. *Easy.* How similar is it to the query: what is the cosine between $x$ and $x_q$?
# 2. *Easy.* What is its contribution, $|x \cdot x_q|\,|y - w_0 \cdot x|$?
# 3. *Medium.* What is the gradient of $\frac12 (w \cdot x - y)^2$ at $w_0 = (1, 0)$?
# 4. *Medium.* How many checkpoints in general position make matching exact for descent of any
#    depth, with four covariates?
# 5. *Hard.* A pool has the gradients $0, 1, 2, 5, 7$. Which two of them match its mean exactly?

# %% tags=["exercise"]
own = {1: None, 2: None, 3: None, 4: None, 5: None}  # 5: smaller first

# %% tags=["check"]
row, x_query, w_0 = jnp.array([[2.0, 1.0, 5.0]]), jnp.array([1.0, 1.0]), jnp.array([1.0, 0.0])
lone = Pool(row[:, :-1], row[:, -1])
truths = {1: scores.similarity(row, x_query)[0], 2: scores.contribution(row, x_query, w_0)[0]}
truths |= {3: prefix.linear_gradients(w_0[None], lone)[0], 4: 4 + 1}
gradients = jnp.array([0.0, 1.0, 2.0, 5.0, 7.0])
pair = gradient_matching.match(gradients[:, None], 2).indices
truths |= {5: jnp.sort(gradients[pair])}
solved = check(own, truths)

# %% tags=["solution"]
own = {
    1: 3 / 10**0.5,  # x·x_q over the product of the lengths
    2: 9.0,
    3: jnp.array([-6.0, -3.0]),  # (w·x - y) x
    4: 5,  # d + 1 of them tell H and r
    5: jnp.array([1.0, 5.0]),  # the mean is 3
}

# %% [markdown]
# ## Exercise 6, hard
#
# Hide a demonstration from two checkpoints, $w_1 = (1, 0)$ and $w_2 = (0, 2)$. **Find a token
# $[x_1, x_2, y]$, not zero, whose gradient is zero at both, and a third checkpoint that sees it.**
#
# Hints. The gradient of one demonstration is $(w \cdot x - y)\, x$. How many tokens are hidden, up
# to their length? Which third checkpoints would not help?

# %% tags=["exercise"]
token = None  # your answer: jnp.array([..., ..., ...])
third = None  # and: jnp.array([..., ...])

# %% tags=["check"]
solved = False
if token is not None and third is not None:
    checkpoints = jnp.stack([jnp.array([1.0, 0.0]), jnp.array([0.0, 2.0]), jnp.asarray(third)])
    single = Pool(token[None, :-1], token[None, -1])
    sizes = jnp.abs(prefix.linear_gradients(checkpoints, single).reshape(3, 2)).max(1)
    print("gradients at the three checkpoints:", sizes)
    solved = bool(sizes[0] < 1e-9 and sizes[1] < 1e-9 and sizes[2] > 1e-3)
print("solved" if solved else "not yet")

# %% tags=["solution"]
token = jnp.array([2.0, 1.0, 2.0]) / 3  # x·w_1 = x·w_2 = y
third = jnp.zeros(2)  # off the line through w_1 and w_2

# %% [markdown]
# ## What you have seen
#
# A score overlooks what it does not read: relevance, novelty or the noise of a label. Equal
# gradients at d + 1 checkpoints make a subset equal to its pool for models that descend; matched
# ones come near. A demonstration whose gradient vanishes at every checkpoint cannot be seen.
#
# Next: [design_a_layer](design_a_layer.ipynb): which layer reads demonstrations best?
