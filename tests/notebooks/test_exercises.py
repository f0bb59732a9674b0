"""Exercises of the notebooks, the long and the short, have answers, and wrong ones are refused.

The cells tagged "setup" hold what an exercise needs: imports, short functions. "exercise" is a cell
to fill in, "check" judges the answer and binds the boolean ``solved``, "solution" is the answer. A
test runs setup, answer and check in its own process.
"""

import functools
import re

import jax
import jupytext
import pytest

from lsa_lab.models import linear_attention
from lsa_lab.notebooks import check
from lsa_lab.tasks.linear import LinearTask, sample
from tools.lessons import ROOT, SCRIPTS, has_tag

RISE = """
def rise_beyond_bias(before, after, labels):
    return readings.{0}(after, labels) - readings.{0}(before, labels)
"""
HIDDEN = "token = jnp.array([2.0, 1.0, 2.0]) / 3"  # x·w_1 = x·w_2 = y
# What stands in the solution and what in its place is refused; or another whole answer.
WRONG = {
    "a_language_model": [
        ("best_threshold_shift(scores", "best_threshold_shift(before"),  # one constant for both
        ("(before, after):", "(after, before):"),
        RISE.format("accuracy"),
        RISE.format("auc"),
    ],
    "bring_your_own_model": [f"module = '{name}/kernel'" for name in ("query", "value", "proj")],
    "choose_demonstrations": [
        f"{HIDDEN}; third = jnp.array([0.5, 1.0])",  # on the line through the two
        "token = jnp.array([2.0, 2.0, 2.0]); third = jnp.zeros(2)",  # the second one sees it
        "token = jnp.zeros(3); third = jnp.zeros(2)",
    ],
    "design_a_layer": [("1 + step", "2 + step"), (" / (1 + step * (key @ key))", ""), ("-", "+")],
    "does_depth_amplify": [  # too short a one is late, too long a one starts ahead or ends behind
        f"x_2 = {factor} * jnp.array([1.0, 0.5])" for factor in (0.05, 0.9, 2.0)
    ],
    "first_theorem": [("2 /", "1 /"), ("[-1]", "[0]"), (" / prompt.x.shape[0]", "")],
    "train_and_dissect": [("-maps", "maps"), ("-1, :-1]", ":-1, -1]")],
    "your_own_experiment": [
        ("at_least=1 / 1.05,", ""),  # a gain of 20 % would be no change
        ("at_most=1.05,", ""),
        ("1.05", "1.25"),  # as would one in three runs that scatter
        ("1.05", "1.001"),
    ],
}


@functools.cache
def tagged(name, tag):
    """Return the sources of all cells of a lesson with the tag."""
    cells = jupytext.read(ROOT / "notebooks" / f"{name}.py").cells
    return [cell.source for cell in cells if has_tag(cell, tag)]


@functools.cache
def setup(name):
    """Return what the setup binds, and for a trained model a random one in its place."""
    names: dict = {}
    for source in tagged(name, "setup"):
        exec(compile(source, f"{name}, setup", "exec"), names)
    if name == "train_and_dissect":
        names["stack"] = linear_attention.init(jax.random.key(0), 3, 2, 3, scale=0.2)
        names["prompt"] = sample(jax.random.key(1), LinearTask(n=12, d=3))
    return names


def solution(name, part=-1):
    return tagged(name, "solution")[part]


def answered(name, answer=None, part=-1):
    """Return the names after setup, an answer and the check of an exercise, by default the last.

    Without an answer the cell runs as it stands.
    """
    names = {**setup(name)}
    sources = answer or tagged(name, "exercise")[part], tagged(name, "check")[part]
    for source in sources:
        exec(compile(source, name, "exec"), names)
    return names


@pytest.mark.parametrize("name", WRONG)
def test_the_exercise_has_an_answer(name):
    assert WRONG.keys() == {path.stem for path in SCRIPTS}
    assert answered(name, solution(name))["solved"]


@pytest.mark.parametrize(
    ("name", "wrong"), [(name, each) for name in WRONG for each in WRONG[name]]
)
def test_control_a_wrong_answer_is_refused(name, wrong):
    if isinstance(wrong, tuple):
        assert wrong[0] in solution(name)
        wrong = solution(name).replace(*wrong)
    assert not answered(name, wrong)["solved"]


LESSONS = [path.stem for path in SCRIPTS if "*Lesson " in path.read_text("utf-8")]


@pytest.mark.parametrize("name", LESSONS)
def test_the_answers_are_right_and_the_cell_as_it_stands_is_not(name, capsys):
    assert len(LESSONS) == 5
    assert answered(name, solution(name, 0), part=0)["solved"]
    assert capsys.readouterr().out.count(": right.") == 5
    assert not answered(name, part=0)["solved"]


@pytest.mark.parametrize("name", LESSONS)
def test_control_each_answer_that_is_off_is_named(name, capsys):
    answers = solution(name, 0)
    for number in range(1, 6):
        line = rf"(?m)^    {number}: (.*?),(?=\n|  #)"
        wrong = re.sub(line, rf"    {number}: 1.5 + (\1),", answers)
        assert wrong != answers
        assert not answered(name, wrong, part=0)["solved"]
        lines = capsys.readouterr().out.splitlines()
        assert [line[0] for line in lines if "not yet" in line] == [f"{number}"]


def test_control_an_answer_of_another_shape_is_refused():
    assert not check({1: [1.0, 1.0]}, {1: 1.0})
