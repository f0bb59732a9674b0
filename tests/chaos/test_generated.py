"""Configurations and command lines that nobody would write, and what becomes of them.

Each is accepted, without being run, or refused in a sentence that names what is wrong and what
would do; no traceback, no file, and less than a second.
"""

import contextlib
import io
import math
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from lsa_lab.harness.cli import command_line, options, overrides
from lsa_lab.harness.cli.commands import run, submit
from lsa_lab.harness.run import process, records
from lsa_lab.harness.run.laboratory import experiments_of
from lsa_lab.judging.statements import cells_of
from lsa_lab.lm import sources

MOST_SECONDS, MOST_LINES = 1.0, 3
# In Python anything can be given for a value, on a command line any word.
VALUES = [None, True, False, "", "x", "3", "nan", "é\0", b"x", 1j, object(), {}, {"a": 1}, int]
VALUES += [math.nan, math.inf, -math.inf, -1, 0, 1, 2, 1.5, 10**30, 2**63, -(10**30), 1e308, 1e-320]
VALUES += [(), (1,), (0,), (-1, 2), ("x",), (None,), (math.nan,), (1e308,), ((1,),), [1], [[]]]
WORDS = ["", "x", "nan", "inf", "-inf", "-1", "0", "1", "1.5", "1e3", "1e400", "9" * 30, "None"]
WORDS += ["True", "3,4", "3 4", "1_000", "0x10", "٣", "é", "--", "-", "=", "[1]", "smoke", "../x"]
WORDS += ["a\0b"]
ADVICE = ["nearest", "choose", "give", "name a", "change it in", "no number is"]
COMMANDS = [*options.USAGE, "help", "train"]
TIERS = ["smoke", "laptop", "paper"]


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path, monkeypatch):
    """As if every computation were over at once."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(process, "set_environment", lambda *_: None)
    monkeypatch.setattr(run, "_run", lambda *_, **__: 0)
    monkeypatch.setattr(run, "_sweep", lambda *_, **__: 0)
    monkeypatch.setattr(submit, "_hand_over", lambda *_, **__: None)
    monkeypatch.setattr(sources, "fetch", lambda *_: "")


def misspelt(draw, word):
    """A word with a letter lost, doubled, exchanged or added."""
    place = draw.randrange(len(word)) if word else 0
    letter = draw.choice("aeinstx-_.09é")
    rest = word[place + 1 :]
    ways = [rest, word[place : place + 1] * 2 + rest, letter + rest, letter + word[place:]]
    return word[:place] + draw.choice(ways)


def try_in_python(draw, experiment):
    config = experiment.tiers["smoke"]
    changed = draw.sample(sorted(vars(config)), draw.randint(1, 2))
    fields = vars(config) | {name: draw.choice(VALUES) for name in changed}
    what = f"{experiment.name}, { ({name: fields[name] for name in changed}) }"
    with in_time(what):
        try:
            cells_of(records.statements(experiment, type(config)(**fields)))
        except ValueError as error:
            check_sentence(str(error), what, [*fields, "statement"])
            return "refused in Python"
    return "accepted in Python"


def try_line(draw, experiment):
    keys = list(vars(experiment.tiers["smoke"]))
    key = draw.choice(keys)
    wrong = misspelt(draw, key) if draw.random() < 0.3 else key
    words = ["run", experiment.name, "--tier", "smoke", f"--config.{wrong}"]
    values = draw.choices(WORDS, k=draw.randint(1, 2))
    return obey([*words, *values], [*keys, wrong, *filter(None, values)])


def obey(words, names=()):
    """What the program answers, all but the computing; a refusal tells one of the names."""
    said, answer = io.StringIO(), io.StringIO()
    before = sorted(Path.cwd().rglob("*"))
    with in_time(words), contextlib.redirect_stdout(answer), contextlib.redirect_stderr(said):
        status = command_line.main(words, program="lsa-lab")
    if status == 0 or (status == 1 and "--check" in words and answer.getvalue()):
        return "accepted"
    assert (status, said.getvalue()[:7]) == (2, "error: "), (words, said.getvalue()[:300])
    check_sentence(said.getvalue(), words, names)
    assert sorted(Path.cwd().rglob("*")) == before, (words, "something was written")
    return "refused"


def check_sentence(sentence, what, names):
    assert 1 <= len(sentence.strip().splitlines()) <= MOST_LINES, (what, sentence)
    for words in (names, ADVICE) if names else ():
        assert any(word in sentence for word in words), (what, sentence)


class Late(BaseException):
    """The time is over: no Exception, which the program may take for a fault of its own."""


@contextlib.contextmanager
def in_time(what):
    """Everything but an answer in time fails."""

    def late(*_):
        raise Late

    before = signal.signal(signal.SIGPROF, late)  # of processor time: a full machine is slow
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    except (Exception, SystemExit, Late) as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def configs(count):
    """What becomes of configurations of all experiments, in turn in Python and on a line."""
    draw, every = random.Random(0), list(experiments_of("experiments").values())
    return Counter(
        (try_in_python if i % 2 else try_line)(draw, every[i % len(every)]) for i in range(count)
    )


def test_a_configuration_that_nobody_would_write_is_accepted_or_refused_in_a_sentence():
    ends = configs(200)
    assert ends["refused"] > 50
    assert ends["refused in Python"] > 50
    assert ends["accepted"] + ends["accepted in Python"] > 3


def test_a_misspelt_command_line_is_accepted_or_refused_in_a_sentence():
    """One to three words are misspelt or out of place."""
    draw, names, ends = random.Random(0), list(experiments_of("experiments")), Counter()
    for _ in range(60):
        words = [draw.choice(COMMANDS), draw.choice(names)]
        for _ in range(draw.randint(0, 2)):
            words += [draw.choice(options.OPTIONS).word, draw.choice([*WORDS, *TIERS])]
        for _ in range(draw.randint(0, 2)):
            place = draw.randrange(len(words))
            words[place] = draw.choice([misspelt(draw, words[place]), draw.choice(WORDS)])
        ends[obey(words)] += 1
    assert ends["refused"] > 30


def raw(*_):
    raise KeyError("n")


def writing(config, words):
    Path("left").touch()
    raise overrides.RefusalError(f"{words}: choose 4")


def endless(*_):
    while True:
        pass


@pytest.mark.parametrize("wrong", [raw, writing, endless])
def test_control_a_program_that_ends_in_another_way_is_caught(wrong, monkeypatch):
    monkeypatch.setattr(overrides, "apply", wrong)
    words = {"raw": "KeyError: 'n'", "writing": "something was written", "endless": "Late"}
    with pytest.raises(AssertionError, match=words[wrong.__name__]):
        configs(60)
