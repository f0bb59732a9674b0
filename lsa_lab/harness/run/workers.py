"""A process beside this one that carries out experiments (``worker``), and what it answers."""

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any, NamedTuple

from lsa_lab.harness.run.clock import Left
from lsa_lab.harness.run.outcomes import Outcome
from lsa_lab.harness.run.progress import Row
from lsa_lab.harness.run.runner import Job


class Answer(NamedTuple):
    """What a worker has said: its rows and the time left, a line of text, an outcome, an error, or
    the status that it has ended with."""

    worker: "Worker"
    kind: str
    value: Any


class Worker:
    """It has a session of its own: Ctrl-C reaches it by ``stop``, from the process that has it."""

    def __init__(self, answers: "SimpleQueue[Answer]"):
        self.job: Job | None = None
        self._answers = answers
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lsa_lab.harness.cli.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        texts = threading.Thread(target=self._read_texts, daemon=True)
        texts.start()
        threading.Thread(target=self._read_answers, args=(texts,), daemon=True).start()

    def take(self, job: Job, words: Sequence[str]) -> None:
        """Begin a job."""
        self.job = job
        with contextlib.suppress(BrokenPipeError):  # its status will tell
            print(json.dumps(words), file=self._process.stdin, flush=True)

    def stop(self) -> None:
        """No more jobs: at the next checkpoint of the one that it has, if it has one, it ends."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def end(self) -> None:
        """The process is gone; of a job that it still has, what follows on the last checkpoint."""
        self.stop()
        try:
            self._process.wait(0 if self.job else 5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _read_texts(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                self._answers.put(Answer(self, "text", line.rstrip()))

    def _read_answers(self, texts: threading.Thread) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                kind, value = json.loads(line)
                if kind == "rows":
                    value = [Row(*row) for row in value[0]], Left(*value[1])
                elif kind == "outcome":
                    value = Outcome(**value | {"moved": tuple(value["moved"])})
                self._answers.put(Answer(self, kind, value))
        texts.join()  # the status comes last
        self._answers.put(Answer(self, "status", self._process.wait()))
