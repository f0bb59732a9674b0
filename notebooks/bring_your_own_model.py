# %% [markdown]
# # Bring your own model
#
# - A plain function, a Flax linen module, an nnx module and a GPT-2-like checkpoint become models
#   of this library by one call each.
# - The same lines then measure them: the flow from each demonstration, the demonstrations that it
#   selects, condition numbers, what clipping a layer costs.
# - At the end you name the heads of a checkpoint whose axes nobody wrote down.
#
# *A workshop, 15 minutes. You need lesson 2 and a model in JAX.*
#
# **Guess first.** Which of your model's leaves does a head own? Would a wrong axis be noticed?

# %% tags=["setup"]
import tempfile
from functools import partial
from pathlib import Path

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from safetensors.numpy import save_file

from lsa_lab import interop, prompts
from lsa_lab.analyses import amplification, clipping, heads
from lsa_lab.lab import plotting
from lsa_lab.models import transformer
from lsa_lab.models.matrices import matrices
from lsa_lab.models.trace import layer_predictions, predict
from lsa_lab.prompts import Prompt
from lsa_lab.selection import scores
from lsa_lab.tasks.linear import LinearTask, sample
from lsa_lab.training import Training, fit

# %%
plotting.use_in_notebook()

# %% [markdown]
# All models get the same prompt: eight demonstrations $(x_i, y_i)$ and a query, as tokens
# `[n+1, d+1]`, the query last, its label slot 0.

# %%
task = LinearTask(n=8, d=3, noise_std=0.1)


def draw(key, size):
    return jax.vmap(partial(sample, task=task))(jax.random.split(key, size))


prompt = sample(jax.random.key(0), task)
tokens = prompts.tokens(prompt)
models = {}  # name: (forward, params)

# %% [markdown]
# ## A plain function
#
# Anything from tokens to a number will do. This one is a kernel smoother: labels, weighted by how
# near their covariates are to the query. `as_forward` makes it a `forward(params, tokens)` like any
# other model's.


# %%
def smoother(tokens):
    x, y, x_query = tokens[:-1, :-1], tokens[:-1, -1], tokens[-1, :-1]
    return jax.nn.softmax(x @ x_query) @ y


models["smoother"] = interop.as_forward(jax.jit(smoother)), None
flow = amplification.demonstration_flow(*models["smoother"], prompt)
print("the flow ∂ŷ/∂e_i", flow.shape, "and its sizes", scores.flow_norm(flow[-1]).round(2))

# %% [markdown]
# ## A Flax linen module
#
# It returns its prediction after every layer, and its stream. Both are optional; what they are for
# is the table in `help(interop.functions)`.


# %%
class Reader(nn.Module):
    @nn.compact
    def __call__(self, tokens):  # [T, e] -> [L+1], [L+1, T, D]
        rows, read_out = nn.Dense(16, name="read_in")(tokens), nn.Dense(1, name="read_out")
        stream = [rows]
        for t in range(2):
            rows += nn.MultiHeadDotProductAttention(2, name=f"attention_{t}")(rows)
            rows += nn.Dense(16, name=f"out_{t}")(nn.gelu(nn.Dense(32, name=f"in_{t}")(rows)))
            stream.append(rows)
        stream = jnp.stack(stream)
        return read_out(stream[:, -1])[:, 0], stream


linen = interop.as_forward(jax.jit(Reader().apply))

# %% [markdown]
# `fit` trains it as it trains any model: minutes would make it good, a few seconds do here.


# %%
@jax.jit
def loss(params, batch):
    predicted = jax.vmap(lambda p: predict(linen(params, prompts.tokens(p))))(batch)
    return ((predicted - batch.y_query) ** 2).mean()


training = Training(loss, partial(draw, size=32), optax.adam(5e-3), 800)
run = fit(training, jax.jit(Reader().init)(jax.random.key(1), tokens), jax.random.key(2))
models["linen"] = linen, run.params
batch = draw(jax.random.key(3), 500)
print("risk", loss(run.params, batch), "of predicting zero", (batch.y_query**2).mean())
print("predictions after 0, 1 and 2 layers", layer_predictions(linen(run.params, tokens)))

# %% [markdown]
# ## An nnx module
#
# An nnx module is a function of tokens with its parameters inside. `nnx.split` takes them out, so
# that they can be changed. Its weights are random: analyses do not ask where weights come from.


# %%
class Layers(nnx.Module):
    def __init__(self, rngs):
        self.read_in = nnx.Linear(4, 16, rngs=rngs)
        attention = partial(nnx.MultiHeadAttention, 2, 16, decode=False, rngs=rngs)
        self.layers = nnx.List([attention() for _ in range(2)])
        self.read_out = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, tokens):
        rows = self.read_in(tokens)
        for layer in self.layers:
            rows += layer(rows)
        return self.read_out(rows[-1])[0]


graph, state = nnx.split(Layers(nnx.Rngs(0)))
run_layers = jax.jit(lambda state, tokens: nnx.merge(graph, state)(tokens))
models["nnx"] = interop.as_forward(run_layers), state
print("prediction", predict(models["nnx"][0](state, tokens)))

# %% [markdown]
# ## A checkpoint
#
# Garg et al. (2208.01066) train a GPT-2 without vocabulary on tokens $x_1, y_1, x_2, \dots$. We
# have none at hand, so we write random weights of two layers under its names, as safetensors.

# %%
layer = {"ln_1": [16], "attn.c_attn": [16, 48], "attn.c_proj": [16, 16]}
layer |= {"ln_2": [16], "mlp.c_fc": [16, 64], "mlp.c_proj": [64, 16]}
weights = {f"_backbone.h.{t}.{name}": shape for t in (0, 1) for name, shape in layer.items()}
weights |= {"_backbone.ln_f": [16]}
shapes = {f"{name}.weight": shape for name, shape in weights.items()}
shapes |= {f"{name}.bias": shape[-1:] for name, shape in weights.items()}
shapes |= {"_read_in.weight": [16, 3], "_read_in.bias": [16], "_read_out.weight": [1, 16]}
shapes |= {"_read_out.bias": [1], "_backbone.wpe.weight": [17, 16]}
rng = np.random.default_rng(0)
checkpoint = {
    name: rng.normal(size=shape, scale=shape[0] ** -0.5).astype(np.float32)
    for name, shape in shapes.items()
}

# `gpt2_regression` reads such a file into this library's own transformer.
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.safetensors"
    save_file(checkpoint, path, {"n_head": "2"})
    params, config = interop.gpt2_regression(path)
config

# %% [markdown]
# Analyses differentiate by merged tokens $[x_i, y_i]$. A function in between takes them apart:


# %%
@jax.jit
def interleaved(params, tokens):
    pairs, query = tokens[:-1], tokens[-1]
    prompt = Prompt(pairs[:, :-1], pairs[:, -1], query[:-1], query[-1])
    trace = transformer.forward(params, prompts.interleaved_tokens(prompt), config)
    return layer_predictions(trace), trace.stream, trace.heads


forward = interop.as_forward(interleaved)
models["checkpoint"] = forward, params
print("predictions after 0, 1 and 2 layers", layer_predictions(forward(params, tokens)))

# %% [markdown]
# ## The same lines for all
#
# The flow from each demonstration to the prediction, and the three that GradS selects by its size:

# %%
picture, axes = plotting.figure(6.75, 1.9, (1, 4))
for ax, (name, (forward, params)) in zip(axes, models.items(), strict=True):
    flow = jax.jit(partial(amplification.demonstration_flow, forward))(params, prompt)
    sizes = scores.flow_norm(flow[-1])
    chosen = scores.select(sizes, 3)
    colours = [plotting.COLOURS[int(i in chosen)] for i in range(task.n)]
    ax.bar(range(1, task.n + 1), sizes, color=colours)
    ax.set(title=name, xlabel="demonstration", xticks=(1, 4, 8))
axes[0].set_ylabel("size of the flow")
picture

# %% [markdown]
# ## Layers by path
#
# Clipping and condition numbers need to know which leaf is the matrix of which layer. A pattern
# says so: paths that differ in one number are the layers. A wrong one is answered with what there
# is.

# %%
print(*matrices(run.params, "attention_*/*/kernel"), sep="\n")
try:
    matrices(run.params, "atention_*/out/kernel")
except ValueError as error:
    print(error)

# %% [markdown]
# Flax keeps the heads of a kernel on an axis of their own, `[D, H, k]`. They are stacked into
# `[D, Hk]`, as this library stacks its own. Its own eight names, such as `w_o`, are patterns too.

# %%
patterns = {"linen": "attention_*/out/kernel", "nnx": "layers/*/out/kernel", "checkpoint": "w_o"}
for name, pattern in patterns.items():
    print(f"{name:11}", clipping.condition_numbers(models[name][1], pattern))
# A file's arrays need no model. They are [in, out] where ours are [out, in]: a matrix and its
# transpose have the same singular values.
print(f"{'the file':11}", clipping.condition_numbers(checkpoint, "h.*.attn.c_proj.weight"))

# %% [markdown]
# Clip one layer of the trained module: the smallest half of the singular values of what its
# attention writes.

# %%
edited = clipping.clip(run.params, 1, "attention_*/out/kernel", 0.5)
(before,) = matrices(run.params, "attention_*/out/kernel").values()
(after,) = matrices(edited, "attention_*/out/kernel").values()
print("ranks", np.linalg.matrix_rank(before), "and", np.linalg.matrix_rank(after))
print("risk", loss(run.params, batch), "and", loss(edited, batch))

# %% [markdown]
# And its heads, each closed where it writes. `clipping.curve` clips at many rates (lesson 2).


# %%
def closed(mask):
    return loss(heads.mask_heads(run.params, "attention_*/out/kernel", mask), batch)


picture, (ax,) = plotting.figure(4.5, 2.2)
ax.bar(range(4), heads.importance(closed, 2, 2).ravel())
ax.set(title="Heads of the trained module", xlabel="layer.head", ylabel="rise of risk without it")
ax.set_xticks(range(4), ["1.1", "1.2", "2.1", "2.2"])
picture

# %% [markdown]
# ## Exercise
#
# A checkpoint of somebody else has two layers of two heads of width 3, each with kernels `query`
# `[D, H, k]`, `key`, `value` and `out` `[H, k, D]` as Flax stores them.
#
# Write the module with which `heads.mask_heads` closes a head.
#
# Hints. A head is closed where it writes. `matrices(theirs)` lists the names of all matrices, and
# a pattern is matched from the right.

# %% tags=["setup"]
draws = np.random.default_rng(0).normal(size=(2, 6, 6))
shapes = {"query": (6, 2, 3), "key": (6, 2, 3), "value": (6, 2, 3), "out": (2, 3, 6)}
theirs = {
    f"block_{t}": {name: {"kernel": jnp.asarray(draws[t].reshape(shapes[name]))} for name in shapes}
    for t in range(2)
}

# %% tags=["exercise"]
module = None  # fill in, as in "block_*/..."


# %% tags=["check"]
def closes_a_head(module):
    """Return whether head 2 of layer 1 writes nothing and all else is as before."""
    closed = heads.mask_heads(theirs, module, jnp.array([[1.0, 0.0], [1.0, 1.0]]))
    kernel = theirs["block_0"]["out"]["kernel"]
    by_hand = theirs | {"block_0": theirs["block_0"] | {"out": {"kernel": kernel.at[1].set(0)}}}
    pairs = zip(jax.tree.leaves(closed), jax.tree.leaves(by_hand), strict=True)
    return all(bool((ours == expected).all()) for ours, expected in pairs)


solved = False
if module is not None:
    try:
        solved = closes_a_head(module)
    except (ValueError, AssertionError) as error:
        print(error)
print("solved" if solved else "not yet")

# %% tags=["solution"]
module = "block_*/out/kernel"

# %% [markdown]
# ## What you have seen
#
# Any function of tokens can be asked the same questions. A pattern of names says which leaves are
# clipped or closed, and what does not fit is refused.
#
# Next: [a_language_model](a_language_model.ipynb).
