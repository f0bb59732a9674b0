# %% [markdown]
# # Your own experiment
#
# - `lsa-lab new` writes an experiment of four doors that works; you change it door by door.
# - A claim, a bound, samples, a verdict: the same samples hold, fail or leave undecided.
# - Why the bound and the number of runs are fixed first: whoever may choose later can always win.
#
# *A workshop, 15 minutes. You need lesson 1 and an idea of a confidence interval.*
#
# **Guess first.** You see no difference in three runs. Does that show that there is none?
#
# To run it: `make notebooks`, then open `.cache/notebooks/your_own_experiment.ipynb`.

# %% tags=["setup"]
import dataclasses
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from lsa_lab.harness.draw import marks, style
from lsa_lab.judging.claims import Statement, evidence, judge

# %%
style.notebook()

# %% [markdown]
# ## Begin
#
# An experiment needs a folder and nothing of this repository. In a terminal you would type
# `lsa-lab new my_lab/one_step`; here the same words go to the program from inside Python.

# %%
from IPython.display import Markdown, display

from lsa_lab.harness.cli.command_line import main

os.chdir(tempfile.mkdtemp())


def lsa_lab(words):
    """What the terminal does with these words: a new process, which reads the files anew."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "my_lab"]:
        del sys.modules[name]
    assert main(words.split()) == 0


lsa_lab("new my_lab/one_step")

# %% [markdown]
# The program tells what to type next. Before that, look through the doors. The question is a
# docstring, in one sentence:


# %%
def door(experiment, name):
    return Path("my_lab", experiment, f"{name}.py")


def show(experiment, name):
    display(Markdown(f"```python\n{door(experiment, name).read_text()}```"))


show("one_step", "__init__")

# %% [markdown]
# `config.py` holds the sizes, each with its bounds, and three tiers of them:

# %%
show("one_step", "config")

# %% [markdown]
# `compute.py` is the only door that knows jax. It trains the layers and returns named arrays:

# %%
show("one_step", "compute")

# %% [markdown]
# `claims.py` holds each statement whole: who says it, the bound, and the sample that it takes from
# the saved file, one number a run:

# %%
show("one_step", "claims")

# %% [markdown]
# ## Run
#
# The smoke tier takes seconds and answers one question: does it run?

# %%
lsa_lab("run one_step --tier smoke --package my_lab")

# %% [markdown]
# Its verdict means nothing: two runs, twenty steps of training. For numbers that mean something
# change the sizes of the laptop tier, in the door where sizes stand:


# %%
def change(experiment, name, old, new):
    text = door(experiment, name).read_text()
    assert old in text, f"{old!r} is not in {door(experiment, name)}"
    door(experiment, name).write_text(text.replace(old, new))


LAPTOP = '"laptop": Config(steps=300, runs=12)'
change("one_step", "config", '"laptop": Config()', LAPTOP)
lsa_lab("run one_step --package my_lab")

# %% [markdown]
# What was saved is a Dataset. Nothing is computed anew from here on: figure, samples and verdict
# come from this file.

# %%
from lsa_lab.harness.run import runner
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.store import results

dataset = results.load("figures/one_step/result.nc")
experiment = experiments_of("my_lab")["one_step"]
experiment.door("figure").plot(dataset)

# %% [markdown]
# ## Judge
#
# A sample is one training: the risk of its layer over the risk of the step, on the same prompts.

# %%
(statement,), samples_by_id = evidence(experiment.door("claims"), dataset)
samples = samples_by_id["as_good"]
print(samples.round(4))

# %% [markdown]
# `judge` takes the statement and the samples. It holds if the whole interval keeps the bound, fails
# if none of it does, and is undecided otherwise.

# %%
(claim,) = runner.judge_result(experiment, dataset)
low, high = claim.interval
print(f"{claim.criterion}\n{claim.value:.4f} [{low:.4f}, {high:.4f}]: {claim.verdict}")
print(f"{claim.confidence:.0%}: {claim.method}")

# %% [markdown]
# ## Move the bound
#
# The samples stay, the bound moves. Each row below is the same interval; grey is where it would
# hold.

# %%
bounds = [low - 0.003, low - 0.0002, claim.value, high + 0.0002, high + 0.003, 1.05]
moved = [dataclasses.replace(statement, id=f"{bound:.4f}", at_most=bound) for bound in bounds]
verdicts = judge(moved, {row.id: samples for row in moved})
words = [f"{verdict.verdict}{', thin' * verdict.thin}" for verdict in verdicts]
picture, (ax,) = style.figure(5.5, 2.6)
left = low - 0.008
for row, (bound, verdict) in enumerate(zip(bounds, verdicts, strict=True)):
    look = marks.LOOKS[verdict.verdict]
    ax.barh(row, bound - left, 0.8, left, color="grey", alpha=0.2)
    ax.plot(verdict.interval, [row, row], "-", color=look["color"])
    ax.plot(verdict.value, row, **look)
names = [f"at most {bound:.4f}: {word}" for bound, word in zip(bounds, words, strict=True)]
ax.set_yticks(range(len(names)), names)
ax.set(xlim=(left, 1.06), ylim=(5.5, -0.5), xlabel="risk of a layer over that of one step")
picture

# %% [markdown]
# One set of samples, all three verdicts. *Thin* marks a verdict whose interval ends within a tenth
# of its width from the bound: another seed might have turned it. A bound that is chosen after a
# look at the samples says what its author wanted. So it stands in `claims.py`, which is written
# before the run, and which git remembers.
#
# ## Choose the runs
#
# Fewer runs, a wider interval. Here are the first $R$ of the same runs, beside a bound near the
# mean (chosen after a look: for this picture only):

# %%
near = dataclasses.replace(statement, at_most=float(round(high + 0.0005, 4)))
counts = range(2, len(samples) + 1)
firsts = [judge([near], {near.id: samples[:count]})[0] for count in counts]
picture, (ax,) = style.figure(5.5, 2.4)
for count, first in zip(counts, firsts, strict=True):
    look = marks.LOOKS[first.verdict]
    ax.plot([count, count], first.interval, "-", color=look["color"])
    ax.plot(count, first.value, **look)
ax.axhline(near.at_most, color="grey", lw=0.8, ls="--")
ax.set(xlabel="runs", ylabel="ratio", ylim=(low - 0.02, high + 0.02))
picture

# %% [markdown]
# Black rings are undecided. An undecided claim says about how many times the runs would decide it:

# %%
undecided = [first for first in firsts if first.verdict == "undecided"]
print([round(first.runs_factor, 1) for first in undecided])

# %% [markdown]
# It is tempting to add runs until the claim holds. Say that the truth lies exactly *on* the bound:
# an honest experiment then says "holds" one time in forty. Whoever looks after every third run, and
# stops as soon as it holds, says it far more often.

# %%
rng = np.random.default_rng(0)
most, experiments = 60, 500
worlds = rng.normal(0.0, 1.0, (experiments, most))  # the bound is 0, and so is the truth
zero = Statement("zero", "ours", "The mean is at most 0", "a number", at_most=0.0)
looks = np.arange(3, most + 1, 3)
holds = np.array(
    [
        [judge([zero], {"zero": world[:look]})[0].verdict == "holds" for look in looks]
        for world in worlds
    ]
)
picture, (ax,) = style.figure(5.5, 2.4)
ax.plot(looks, 100 * np.logical_or.accumulate(holds, 1).mean(0), label="stop as soon as it holds")
ax.plot(looks, 100 * holds.mean(0), label="fix the number of runs before")
ax.axhline(2.5, color="grey", lw=0.8, ls="--")
ax.set(xlabel="runs", ylabel="% that say: holds", ylim=(0, None))
ax.legend()
picture

# %% [markdown]
# So the number of runs stands in `config.py`, written before as well. If a look has changed
# anything, the statement says so: `revision` names the change, `redrawn` the fresh runs that judge
# it since, and the ledger counts both.
#
# ## Change the question
#
# One step of descent is a weak rival. What about ridge regression? A second experiment begins as a
# copy of the first one:

# %%
lsa_lab("new my_lab/against_ridge")

# %% [markdown]
# The question, the rival, the sizes, what is said, and the words of the figure change. The bound
# says "as good" as before: 1.05.

# %%
new = "against_ridge"
change(new, "__init__", "one step of gradient descent", "ridge regression")
change(
    new,
    "compute",
    "estimators.gradient_descent(prompt, jnp.array([step_size]))[-1]",
    "estimators.ridge(prompt, config.noise_std**2 / config.n)",
)
change(new, "config", '"laptop": Config()', LAPTOP)
change(new, "claims", "the best step of descent at n", "ridge regression at n")
change(new, "claims", "over that of the step", "over that of ridge")
change(new, "figure", "the best step of descent", "ridge regression")
change(new, "figure", "one step of descent", "ridge regression")
change(new, "figure", "Risk in training", "Layers stay above ridge")
change(new, "figure", "layer / step's", "layer / ridge's")
lsa_lab("run against_ridge --package my_lab")

# %%
ridge_dataset = results.load("figures/against_ridge/result.nc")
experiments_of("my_lab")["against_ridge"].door("figure").plot(ridge_dataset)

# %% [markdown]
# `report` writes the ledger, and a page with all figures. An experiment's own page has its table of
# claims:

# %%
lsa_lab("report --package my_lab")
page = Path("figures/one_step/README.md").read_text()
claims = page[page.index("<summary>Claims") :]
display(
    Markdown(claims[claims.index("</summary>") + len("</summary>") : claims.index("</details>")])
)

# %% [markdown]
# The next experiment is yours: `lsa-lab new my_lab/your_question`, in any folder.
# CONTRIBUTING.md says what a verdict must survive before it is published.
#
# ## Exercise
#
# A colleague says: "Twice the batch changes nothing." You have one ratio a run: the risk with the
# larger batch over the risk with the smaller one. Write the statement so that a change of up to 5 %
# counts as nothing, *in both directions*.
#
# Hints. "No difference was seen" is not "there is none": ask for an interval *inside* a margin.
# `help(Statement)` names the statistics and the bounds. The check judges your statement by four
# sets of runs: no change, 20 % worse, 20 % better, and three runs that scatter.

# %% tags=["exercise"]
nothing_changes = None  # your answer: Statement("batch", "a colleague", ...)

# %% tags=["check"]
scatter = np.random.default_rng(0).normal(0.0, 0.01, 12)
expected = {
    "no change": (np.exp(scatter), "holds"),
    "20 % worse": (1.2 * np.exp(scatter), "fails"),
    "20 % better": (np.exp(scatter) / 1.2, "fails"),
    "three runs that scatter": (np.array([0.9, 1.0, 1.1]), "undecided"),
}
solved = False
if nothing_changes is None:
    print("Not answered yet.")
else:
    answers = {
        case: judge([nothing_changes], {nothing_changes.id: ratios})[0].verdict
        for case, (ratios, _) in expected.items()
    }
    solved = all(answers[case] == verdict for case, (_, verdict) in expected.items())
    for case, (_, verdict) in expected.items():
        print(f"{case}: {answers[case]}, expected {verdict}")
    print("Right." if solved else "Not yet.")

# %% [markdown] tags=["solution"]
# <details><summary>A solution</summary>
#
# ```python
# nothing_changes = Statement(
#     "batch",
#     "a colleague",
#     "Twice the batch changes nothing",
#     "the risk with the larger batch over that with the smaller one",
#     "ratio",
#     margin=0.05,
# )
# ```
#
# </details>

# %% [markdown]
# ## What you have seen
#
# An experiment is a question, a configuration, a computation, statements and a figure. A
# statement is fixed before the run, and an interval decides: it holds, it fails, or the runs do
# not suffice.
#
# Next: your own folder: `lsa-lab new my_lab/my_question`.
