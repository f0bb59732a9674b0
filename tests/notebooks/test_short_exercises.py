"""Seven short exercises of each lesson have answers, and each of them is judged."""

import re

import pytest

from cells import answered, solution
from lsa_lab.notebooks import check
from tools.lessons import SCRIPTS

LESSONS = [path.stem for path in SCRIPTS if "*Lesson " in path.read_text("utf-8")]


@pytest.mark.parametrize("name", LESSONS)
def test_the_answers_are_right_and_the_cell_as_it_stands_is_not(name, capsys):
    assert len(LESSONS) == 5
    assert answered(name, solution(name, 0), part=0)["solved"]
    assert capsys.readouterr().out.count(": right.") == 7
    assert not answered(name, part=0)["solved"]
    assert capsys.readouterr().out.count(": not answered yet.") == 7


@pytest.mark.parametrize("name", LESSONS)
def test_control_each_answer_that_is_off_is_named(name, capsys):
    answers = solution(name, 0)
    for number in range(1, 8):
        line = rf"(?m)^    {number}: (.*?),(?=\n|  #)"
        wrong = re.sub(line, rf"    {number}: 1.5 + (\1),", answers)
        assert wrong != answers
        assert not answered(name, wrong, part=0)["solved"]
        assert [line[0] for line in capsys.readouterr().out.splitlines() if "not yet" in line] == [
            f"{number}"
        ]


def test_an_answer_of_another_shape_is_told_so(capsys):
    assert not check({1: [1.0, 2.0]}, {1: 1.0})
    assert capsys.readouterr().out == "1: not yet: its shape is (2,), not ().\n"
