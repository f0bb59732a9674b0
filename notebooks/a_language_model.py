# %% [markdown]
# # A language model
#
# - A decoder from disk answers a prompt of four demonstrations; you see after which layer it has
#   made up its mind, and which demonstration it flows from.
# - Clip a layer's MLP to a hundredth of its rank, one layer after the other: accuracy leaps about,
#   and the area under the curve says whether the model reads the reviews any better or worse.
# - At the end you measure how much of such a gain a constant bias accounts for.
#
# *A workshop, 15 minutes. You need lesson 3; the weights of SmolLM2 help.*
#
# **Guess first.** An edit raises accuracy by 3 %. How much of that is a moved threshold?

# %% tags=["setup"]
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from IPython.display import Markdown

import lsa_lab
from lsa_lab import lm
from lsa_lab.analyses import amplification, clipping
from lsa_lab.lab import plotting
from lsa_lab.lm import cached_stream, decoder, flow, readings, sources, text, tokens, weights
from lsa_lab.lm.text import Sentences, Template

# %%
plotting.use_in_notebook()
os.environ.setdefault("LSA_LAB_CACHE", str(Path(lsa_lab.__file__).parents[1] / ".cache"))

# %% [markdown]
# ## Load one
#
# `lsa-lab fetch smollm2` brings a model that is small enough for two cores, 93 MB, once. A file or
# a folder of your own is loaded by `lm.load("path/to/it")` in its place. Nothing is downloaded from
# here: where no model has been fetched, a tiny decoder of random weights stands in. Then all cells
# run and no number means anything; the last section shows what SmolLM2-135M gave.

# %%
REVIEWS = """
positive warm and funny from start to end
negative dull and slow with a weak end
positive a bright cast and a clever plot
negative the plot is a mess and the jokes fall flat
positive a moving film with a great cast
negative a cold film that is far too long
positive clever and tender and never dull
negative weak jokes and a slow start
positive i laughed from start to end
negative i wanted it to end
positive a great plot and great jokes
negative a flat film with a weak cast
positive tender and bright
negative a dull mess
positive the cast is warm and the jokes are funny
negative the cast is cold and the plot is flat
positive never slow and never cold
negative never funny and never clever
positive the best film i saw for long
negative the worst film i saw for long
positive far from dull
negative far from funny
positive a small film that is great fun
negative a long film that is no fun
"""
rows = [line.split(" ", 1) for line in REVIEWS.strip().splitlines()]
classes = ("negative", "positive")
labels = np.array([classes.index(label) for label, _ in rows])
reviews = Sentences("reviews", tuple(said for _, said in rows), labels, classes)


def tiny():
    """A random decoder that knows these words and no others."""
    words = sorted({"Review:", "Sentiment:", *REVIEWS.split()})
    sizes = dict(num_layers=6, num_heads=4, num_groups=2, key_width=8, width=32, mlp_width=64)
    config = decoder.Config(**sizes, vocabulary=1 + len(words), context=512, rotary_width=8)
    params = weights.init(jax.random.key(0), config, "float32")
    return lm.Decoder(config, params, tokens.make_word_tokenizer(words))


try:
    config, params, tokenizer = lm.load(sources.find("smollm2"))
    name = "SmolLM2-135M, Q4_1"
except FileNotFoundError as error:
    config, params, tokenizer = tiny()
    name = "a random decoder"
    print(error)
Markdown(f"**This page was run on {name}:** {config.num_layers} layers of width {config.width}.")

# %% [markdown]
# ## A prompt
#
# Four reviews are demonstrations, the other twenty are queries. A template says how they are
# written, and the label words stand for the classes. Each part is encoded as it is run, so that no
# token spans two of them: `spans` says where every demonstration begins and ends.

# %%
template = Template(classes)
demonstrations, queries = reviews.take(range(4)), reviews.take(range(4, 24))
shots = template, demonstrations, queries
questions = text.ask(*shots, tokenizer, config.context, max_tokens=10_000)
print(tokenizer.decode(next(questions.prompts())))
print("spans of the demonstrations:", *map(tuple, questions.spans.tolist()))

# %% [markdown]
# The answer to a query is the logit of each label word after it. The demonstrations are run once
# for all queries. Of 20 queries accuracy alone tells little: the area under the curve (AUC) asks
# how often a positive review gets more than a negative one, whatever bias the labels have.

# %%
scores = text.scores(params, config, questions)
for reading in (readings.accuracy, readings.auc):
    print(f"{reading.__name__:14} {reading(scores, queries.labels):.2f}")
shift = readings.best_threshold_shift(scores, queries.labels)
print(f"the constant that gives the greatest accuracy: {shift:.2f}")

# %% [markdown]
# ## Which demonstration does the answer flow from?
#
# The margin of "positive" over "negative", read after each layer as if it were the last (the logit
# lens), and its flow: the derivative with respect to each demonstration's tokens. A1's question is
# whether depth enlarges the ratio of two flows.

# %%
ids = jnp.asarray(next(questions.prompts()))
stream = decoder.embed(params, ids, config)
margin = flow.margin(params, config, *questions.label_ids[::-1].tolist())
third = config.num_layers // 3
layers = (1, third, 2 * third, config.num_layers)
flows = flow.token_flow(params, stream, config, margin, layers=layers)
sizes = jnp.exp(amplification.log_sizes(flows, questions.spans))  # [layers, 4]

picture, axes = plotting.figure(6.75, 2.3, (1, 2))
after = range(config.num_layers + 1)
rows = decoder.forward(params, stream, config).stream[:, -1]
plotting.line(axes[0], after, jax.vmap(margin)(rows), "margin")
axes[0].axhline(0, color="0.7", lw=0.8, zorder=0)
axes[0].set(title=f"the answer of {name}", xlabel="layers", ylabel="margin of “positive”")
for i, label in enumerate(demonstrations.labels):
    said = f"{i + 1}, {classes[label]}"
    plotting.line(axes[1], layers, sizes[:, i], said, color=plotting.COLOURS[i])
axes[1].set(title="its flow from each demonstration", xlabel="layers", yscale="log")
axes[1].legend()
picture

# %% [markdown]
# ## Clip a layer
#
# A2 sets the smallest singular values of one layer's MLP to zero and finds that models answer
# better. Here 99 % of them go, in one layer at a time. `cached_stream` keeps the questions
# before a layer: an edit of the last layer runs one layer, not all of them.

# %%
(bucket,) = questions.buckets
places = range(config.num_layers - 1, -1, -(config.num_layers // 6))
prefix, endings = jnp.asarray(questions.prefix), jnp.asarray(bucket.ids)
start = cached_stream.embed_questions(params, prefix, endings, config)
kept = cached_stream.cache_until(params, start, config, places)


def scores_with(edited, layer):
    """Return the label words' scores of the decoder with one edited layer."""
    own = cached_stream.take_layer(edited, layer)
    rows = cached_stream.resume(params, kept[layer], config, layer, own)
    ends = rows[np.arange(len(rows)), bucket.last]
    values = np.empty_like(scores)
    values[bucket.rows] = decoder.logits(params, ends, config, questions.label_ids)
    return values


clipped = {layer: scores_with(clipping.clip(params, layer, "mlp", 0.99), layer) for layer in places}

picture, axes = plotting.figure(6.75, 2.3, (1, 2))
readings_of = {"accuracy": readings.accuracy, "AUC": readings.auc}
for ax, (title, reading) in zip(axes, readings_of.items(), strict=True):
    values = [reading(clipped[layer], queries.labels) for layer in places]
    whole = reading(scores, queries.labels)
    ax.plot(np.add(places, 1), values, "o", color=plotting.COLOURS[1], label="clipped")
    ax.axhline(whole, color=plotting.COLOURS[0], label="whole")
    ax.set(title=f"{title} of {name}", xlabel="the layer that is clipped", ylim=(0, 1.05))
axes[0].legend(loc="lower left")
picture

# %% [markdown]
# Where a point leaves the line on the left and stays on it on the right, the edit has moved the
# threshold between the two labels and nothing else. On SmolLM2-135M it is so for all of these
# layers: accuracy falls to that of guessing or rises above that of the whole model, and the reviews
# stand in nearly the same order. But twenty reviews and one set of demonstrations decide nothing,
# and the best of several layers is the luckiest: the experiments of the theme `language` fix layers
# and rates before they look, and take sets of demonstrations enough, each with fresh sentences.
#
# ## Exercise
#
# A colleague edits a model and its accuracy rises. How much of the rise is left if both models may
# first add the one constant to the log-odds of class 1 that gives them the best accuracy? **Write
# `rise_beyond_bias(before, after, labels)`**, of two arrays of scores `[B, 2]`.
#
# Hints. An edit that only moves the bias leaves 0, however much accuracy it gains. `help(readings)`
# has what is needed. Is the best constant of one model that of the other?


# %% tags=["exercise"]
def rise_beyond_bias(before, after, labels):
    return None  # your answer


# %% tags=["check"]
def case(seed, skill, bias):
    """Labels, and scores of a model of some skill before and after an edit of (skill, bias)."""
    rng = np.random.default_rng(seed)
    right = rng.permutation(np.arange(60) % 2)
    noise = rng.normal(size=60)
    sides = [gain * (2 * right - 1) + noise + shift for gain, shift in ((0.5, 1.5), (skill, bias))]
    return right, *(np.stack([-z / 2, z / 2], axis=1) for z in sides)


def left_over(before, after, right):
    best = [
        max(np.mean((z > cut) == right) for cut in (-np.inf, *z))
        for z in (before[:, 1] - before[:, 0], after[:, 1] - after[:, 0])
    ]
    return best[1] - best[0]


solved = True
for seed, (skill, bias) in enumerate([(0.5, 0.0), (2.0, 1.5), (2.0, -1.0), (0.1, 0.0)]):
    right, before, after = case(seed, skill, bias)
    answer = rise_beyond_bias(before, after, right)
    solved = solved and answer is not None and abs(answer - left_over(before, after, right)) < 1e-9
print("solved" if solved else "not yet")


# %% tags=["solution"]
def rise_beyond_bias(before, after, labels):
    best = []
    for scores in (before, after):
        shift = readings.best_threshold_shift(scores, labels)
        best.append(readings.accuracy(readings.shift_scores(scores, shift), labels))
    return best[1] - best[0]


# %% [markdown]
# ## What you have seen
#
# A decoder makes up its mind in a late layer. Accuracy moves with a threshold, so an edit is
# judged beside one number that does the same.
#
# Next: [your_own_experiment](your_own_experiment.ipynb).
