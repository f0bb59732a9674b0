"""Sentences of a user's own files: pairs of sentences, and questions with several answers.

A record is a row of a CSV or TSV file with names in its first line, or a line of JSON. A form
writes it as one text, so that a pair is a text like any other:

    read_sentences("RTE/train.jsonl", "{premise} Does this mean that {hypothesis} is true?",
                   "label", ("not_entailment", "entailment"))
    read_sentences("MRPC/train.tsv", "{#1 String} Is it the same as: {#2 String}",
                   "Quality", ("0", "1"))
    read_choices("COPA/train.jsonl", "{premise} What was the {question} of this?",
                 ("{choice1}", "{choice2}"), "label")
"""

import csv
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np

from lsa_lab.lm.sentences import Sentences


@dataclasses.dataclass(frozen=True, eq=False)
class Choices(Sentences):
    """Questions with K answers each; a class is the number of an answer."""

    answers: tuple[tuple[str, ...], ...] = ()  # [N, K]

    def take(self, rows: Sequence[int] | np.ndarray) -> Self:
        """Return the questions at these places, in this order."""
        answers = tuple(self.answers[i] for i in rows)
        return dataclasses.replace(super().take(rows), answers=answers)


def read_sentences(path: str | Path, form: str, label: str, classes: Sequence[str]) -> Sentences:
    """Read texts in classes; ``classes`` are the values of the field ``label``, in their order.

    Raises ValueError for another value or a field that a record lacks.
    """
    texts, values = _read(path, form, f"{{{label}}}")
    if unknown := sorted(set(values) - set(classes)):
        raise ValueError(f"{path}: the {label} {unknown[0]!r} is none of {', '.join(classes)}")
    labels = np.array([list(classes).index(value) for value in values], int)
    return Sentences(Path(path).stem, texts, labels, tuple(classes))


def read_choices(path: str | Path, form: str, answers: Sequence[str], label: str) -> Choices:
    """Read questions with several answers, a form for each; ``label`` counts them from 0.

    Raises ValueError for another label or a field that a record lacks.
    """
    questions = read_sentences(path, form, label, [str(i) for i in range(len(answers))])
    rows = tuple(zip(*_read(path, *answers), strict=True))
    return Choices(**vars(questions), answers=rows)


def _read(path: str | Path, *forms: str) -> list[tuple[str, ...]]:
    """Return what each form says of every record."""
    suffix = Path(path).suffix
    with open(path, encoding="utf-8-sig", newline="") as lines:
        if suffix == ".csv":
            records: list[dict] = list(csv.DictReader(lines))
        elif suffix == ".tsv":
            records = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
        elif suffix == ".jsonl":
            records = [json.loads(line) for line in lines if line.strip()]
        else:
            raise ValueError(f"{path}: expected a file .csv, .tsv or .jsonl")
    if not records:
        raise ValueError(f"{path} has no record")
    try:
        return [tuple(form.format_map(record) for record in records) for form in forms]
    except KeyError as error:
        raise ValueError(f"{path} has no field {error}: it has {', '.join(records[0])}") from None
