# %% [markdown]
# # Your own experiment
#
# - `lsa-lab new` writes an experiment that works, one script; you change it part by part.
# - A claim, a bound, samples, a verdict: the same samples hold, fail or leave undecided.
# - Why the bound and the number of runs are fixed first: whoever may choose later can always win.
#
# *A workshop, 15 minutes. You need lesson 1 and an idea of a confidence interval.*
#
# **Guess first.** You see no difference in three runs. Does that show that there is none?

# %% tags=["setup"]
import dataclasses
import importlib
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from IPython.display import Image, Markdown, display

from lsa_lab.lab import Claim, plotting, results
from lsa_lab.lab.command import run_command

# %%
plotting.use_in_notebook()

# %% [markdown]
# ## Begin
#
# An experiment needs a folder and nothing of this repository. In a terminal you would type
# `lsa-lab new my_lab/one_step`; here the same words go to the program from inside Python.

# %%
os.chdir(tempfile.mkdtemp())
sys.path.insert(0, "")
SCRIPT = Path("my_lab/one_step.py")


def lsa_lab(words):
    """Run the words as the terminal does."""
    sys.modules.pop("my_lab.one_step", None)
    assert run_command(words.split()) == 0


lsa_lab("new my_lab/one_step")

# %% [markdown]
# The script is read from top to bottom: the question, the sizes, what is computed, what is judged,
# and the figure.

# %%
display(Markdown(f"```python\n{SCRIPT.read_text()}```"))

# %% [markdown]
# ## Run
#
# The smoke tier takes seconds and answers one question: does it run?

# %%
lsa_lab("run one_step --tier smoke --package my_lab")

# %% [markdown]
# Its verdicts mean nothing: three runs of twenty prompts. The quick tier has numbers that mean
# something; here with one size changed.

# %%
lsa_lab("run one_step --config.lengths 8 16 64 --package my_lab")
folder = next(Path(".cache/figures/one_step").glob("lengths*"))
Image(str(folder / "figure.png"), width=500)

# %% [markdown]
# What was saved is a Dataset. Nothing is computed anew from here on: figure, samples and verdicts
# come from this file.

# %%
dataset = results.load(folder)
dataset

# %% [markdown]
# ## Judge
#
# A sample is one run: the risk of descent over that of ridge regression, on the same prompts.
# `judge` gives a row for each cell of the claim. It holds if the whole interval keeps the bound,
# fails if none of it does, and is undecided otherwise.

# %%
one_step = importlib.import_module("my_lab.one_step")
(claim,) = one_step.CLAIMS
samples = claim.sample(dataset, length=8)
print(samples.round(3))

for row in claim.judge(dataset):
    print(f"{row['id']}: {row['value']:.3f} [{row['low']:.3f}, {row['high']:.3f}]", row["verdict"])

# %% [markdown]
# ## Move the bound
#
# The samples stay, the bound moves. Each row below is the same interval; grey is where it would
# hold.


# %%
LOOKS = {"holds": ("C0", "o"), "fails": ("C1", "X"), "undecided": ("black", "D")}


def judge(numbers, **changes):
    """Return the row of a claim about these samples with changed bounds."""
    fields = {"statement": "The ratio is bounded", "over": {}, "sample": lambda _: numbers}
    return dataclasses.replace(claim, **fields | changes).judge(None)[0]


row = judge(samples)
low, high = row["low"], row["high"]
bounds = [low - 0.05, low + 0.02, row["value"], high - 0.02, high + 0.05]
picture, (ax,) = plotting.figure(5.5, 2.6)
names = []
for place, bound in enumerate(bounds):
    verdict = judge(samples, at_least=-np.inf, at_most=bound)["verdict"]
    color, marker = LOOKS[verdict]
    ax.barh(place, bound - low + 0.2, 0.8, low - 0.2, color="grey", alpha=0.2)
    ax.plot((low, high), (place, place), "-", color=color)
    ax.plot(row["value"], place, marker, color=color)
    names.append(f"at most {bound:.2f}: {verdict}")
ax.set_yticks(range(len(names)), names)
ax.set(title="One interval, five bounds", ylim=(4.5, -0.5))
ax.set(xlabel="risk of descent over that of ridge regression")
picture

# %% [markdown]
# One set of samples, all three verdicts. A bound that is chosen after a look at the samples says
# what its author wanted. So `lsa-lab register` writes the claims down before the full run, and a
# claim that is changed later is called exploratory.
#
# ## Choose the runs
#
# Fewer runs, a wider interval. It is tempting to add runs until the claim holds. Say that the truth
# lies exactly *on* the bound: an honest experiment then says "holds" one time in forty. Whoever
# looks after every third run, and stops as soon as it holds, says it far more often.

# %%
rng = np.random.default_rng(0)
most, experiments = 60, 500
worlds = rng.normal(0.0, 1.0, (experiments, most))  # the bound is 0, and so is the truth
looks = np.arange(3, most + 1, 3)
zero = {"statistic": "mean", "at_least": -np.inf, "at_most": 0.0}
holds = np.array(
    [[judge(world[:look], **zero)["verdict"] == "holds" for look in looks] for world in worlds]
)
picture, (ax,) = plotting.figure(5.5, 2.4)
ax.plot(looks, 100 * np.logical_or.accumulate(holds, 1).mean(0), label="stop as soon as it holds")
ax.plot(looks, 100 * holds.mean(0), label="fix the number of runs before")
ax.axhline(2.5, color="grey", lw=0.8, ls="--")
ax.set(title="Wrong verdicts", xlabel="runs", ylabel="% that say: holds", ylim=(0, None))
ax.legend()
picture

# %% [markdown]
# So the number of runs is a field of `Config`, written before as well.
#
# ## Change the question
#
# One step of descent is a weak rule. What about two? The script is yours: change `measure`, the
# claim and the words of the figure, and run it again. CONTRIBUTING.md says what a claim must
# satisfy before its result is published.
#
# ## Exercise
#
# A colleague says: "Twice the batch changes nothing." You have one ratio a run: the risk with the
# larger batch over the risk with the smaller one. Write the claim so that a change of up to 5 %
# counts as nothing, *in both directions*.
#
# Hints. "No difference was seen" is not "there is none": ask for an interval *inside* a margin.
# `help(Claim)` names the statistics and the bounds. The check judges your claim by four sets of
# runs: no change, 20 % worse, 20 % better, and three runs that scatter.

# %% tags=["exercise"]
nothing_changes = None  # your answer: Claim("batch", "a colleague", ..., lambda runs: runs, ...)

# %% tags=["check"]
scatter = np.random.default_rng(0).normal(0.0, 0.01, 12)
expected = {
    "no change": (np.exp(scatter), "holds"),
    "20 % worse": (1.2 * np.exp(scatter), "fails"),
    "20 % better": (np.exp(scatter) / 1.2, "fails"),
    "three runs that scatter": (np.array([0.9, 1.0, 1.1]), "undecided"),
}
solved = nothing_changes is not None
for case, (ratios, verdict) in expected.items():
    answer = nothing_changes and nothing_changes.judge(ratios)[0]["verdict"]
    print(f"{case}: {answer}, expected {verdict}")
    solved = solved and answer == verdict
print("solved" if solved else "not yet")

# %% tags=["solution"]
nothing_changes = Claim(
    "batch",
    "a colleague",
    "Twice the batch changes nothing",
    "the risk with the larger batch over that with the smaller one",
    lambda runs: runs,
    statistic="ratio",
    at_least=1 / 1.05,
    at_most=1.05,
)

# %% [markdown]
# ## What you have seen
#
# An experiment is a question, a configuration, a computation, claims and a figure. A claim is fixed
# before the run, and an interval decides: it holds, it fails, or the runs do not suffice.
#
# Next: your own folder: `lsa-lab new my_lab/my_question`.
