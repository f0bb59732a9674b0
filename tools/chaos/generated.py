"""Configurations and command lines that nobody would write, and what becomes of them.

Each is accepted, without being run, or refused in a sentence that names what is wrong and what
would do; no traceback, no file, and less than a second.
"""

import contextlib
import io
import math
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from lsa_lab.harness.cli import command_line, options
from lsa_lab.harness.cli.commands import run, submit
from lsa_lab.harness.run import process, records
from lsa_lab.harness.run.laboratory import Experiment, experiments_of
from lsa_lab.judging.statements import cells_of
from lsa_lab.lm import sources
from tools.chaos.disk import Lost

MOST_SECONDS = 1.0
MOST_LINES = 3
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


def configs(count: int, seed: int) -> Counter:
    """So many configurations of all experiments, in turn in Python and on a command line."""
    draw, every = random.Random(seed), list(experiments_of("experiments").values())
    ends: Counter = Counter()
    for i in range(count):
        experiment = every[i % len(every)]
        ends[_try_in_python(draw, experiment) if i % 2 else _try_line(draw, experiment)] += 1
    return ends


def lines(count: int, seed: int) -> Counter:
    """So many command lines, each with one to three words that are misspelt or out of place."""
    draw, names = random.Random(seed), list(experiments_of("experiments"))
    ends: Counter = Counter()
    for _ in range(count):
        words = [draw.choice(COMMANDS), draw.choice(names)]
        for _ in range(draw.randint(0, 2)):
            words += [draw.choice(options.OPTIONS).word, draw.choice([*WORDS, *TIERS])]
        for _ in range(draw.randint(0, 2)):
            place = draw.randrange(len(words))
            words[place] = draw.choice([misspelt(draw, words[place]), draw.choice(WORDS)])
        ends[_obey(words)] += 1
    return ends


def misspelt(draw: random.Random, word: str) -> str:
    """A word with a letter lost, doubled, exchanged or added."""
    place = draw.randrange(len(word)) if word else 0
    letter = draw.choice("aeinstx-_.09é")
    rest = word[place + 1 :]
    ways = [rest, word[place : place + 1] * 2 + rest, letter + rest, letter + word[place:]]
    return word[:place] + draw.choice(ways)


def _try_in_python(draw: random.Random, experiment: Experiment) -> str:
    config = experiment.tiers["smoke"]
    changed = draw.sample(sorted(vars(config)), draw.randint(1, 2))
    fields = vars(config) | {name: draw.choice(VALUES) for name in changed}
    what = f"{experiment.name}, { ({name: fields[name] for name in changed}) }"
    with _judge(what):
        try:
            cells_of(records.statements(experiment, type(config)(**fields)))
        except ValueError as error:
            _check_sentence(str(error), what, [*fields, "statement"])
            return "refused in Python"
    return "accepted in Python"


def _try_line(draw: random.Random, experiment: Experiment) -> str:
    keys = list(vars(experiment.tiers["smoke"]))
    key = draw.choice(keys)
    wrong = misspelt(draw, key) if draw.random() < 0.3 else key
    words = ["run", experiment.name, "--tier", "smoke", f"--config.{wrong}"]
    values = draw.choices(WORDS, k=draw.randint(1, 2))
    return _obey([*words, *values], [*keys, wrong, *filter(None, values)])


def _obey(words: list[str], names: Sequence[str] = ()) -> str:
    """What the program answers, all but the computing; a refusal tells one of the names."""
    said, answer = io.StringIO(), io.StringIO()
    before = sorted(Path.cwd().rglob("*"))
    with _judge(repr(words)), contextlib.redirect_stdout(answer), contextlib.redirect_stderr(said):
        status = command_line.main(words, program="lsa-lab")
    if status == 0 or (status == 1 and "--check" in words and answer.getvalue()):
        return "accepted"
    if status != 2 or not said.getvalue().startswith("error: "):
        raise Lost(f"{words}: status {status}, and {said.getvalue()[:300]!r}")
    _check_sentence(said.getvalue(), repr(words), names)
    if sorted(Path.cwd().rglob("*")) != before:
        raise Lost(f"{words}: refused, and something was written")
    return "refused"


def _check_sentence(sentence: str, what: str, names: Sequence[str]) -> None:
    is_short = sentence.strip() and len(sentence.splitlines()) <= MOST_LINES
    tells = not names or all(any(w in sentence for w in words) for words in (names, ADVICE))
    if not is_short or not tells:
        raise Lost(f"{what}: refused by {sentence[:600]!r}")


class Late(BaseException):
    """The time is over: no Exception, which the program may take for a fault of its own."""


@contextlib.contextmanager
def _judge(what: str) -> Iterator[None]:
    """Everything but an answer in time is lost."""

    def late(*_) -> None:
        raise Late

    before = signal.signal(signal.SIGPROF, late)  # of processor time: a full machine is slow
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    began = time.process_time()
    try:
        yield
        if time.process_time() - began > MOST_SECONDS:
            raise Late
    except (Exception, SystemExit, Late) as error:
        spent = time.process_time() - began
        raise Lost(f"{what}: {type(error).__name__}: {error} after {spent:.2f} s") from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def nothing_runs(folder: Path) -> Iterator[None]:
    """In this folder, and as if every computation were over at once."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, {"LSA_LAB_CACHE": str(folder / "cache")}),
        mock.patch.object(process, "set_environment", return_value=None),
        mock.patch.object(run, "_run", return_value=0),
        mock.patch.object(run, "_sweep", return_value=0),
        mock.patch.object(submit, "_hand_over", return_value=None),
        mock.patch.object(sources, "fetch", return_value=""),
    ):
        yield
