"""The text in which a sentence and its label are written for a decoder."""

import dataclasses

import numpy as np

from lsa_lab.lm.tokens import Tokenizer, check_tokenizer


@dataclasses.dataclass(frozen=True)
class Template:
    """The text of a demonstration, and the word of each class.

    A query is the same up to the label. What follows the label separates it from the next one, and
    blanks before the label belong to its word, as in most tokenizers.
    """

    labels: tuple[str, ...]  # [C]
    form: str = "Review: {text}\nSentiment: {label}\n\n"

    def __post_init__(self) -> None:
        places = self.form.find("{text}"), self.form.find("{label}")
        if not 0 <= places[0] < places[1] or (
            self.form.count("{text}"),
            self.form.count("{label}"),
        ) != (1, 1):
            raise ValueError(
                f"the template {self.form!r} needs {{text}} once, and {{label}} once after it"
            )
        if len(set(self.labels)) < max(len(self.labels), 2):
            raise ValueError(f"labels = {self.labels}: name two words or more, each another one")

    @property
    def separator(self) -> str:
        """Return the text between two demonstrations, and before the query."""
        return self.form.partition("{label}")[2]

    def write_opening(self, text: str) -> str:
        """Write a text up to the blanks before its label."""
        before, _, after = self.form.partition("{text}")
        return before + text + after.partition("{label}")[0].rstrip(" ")

    def write_answer(self, label: int) -> str:
        """Write the word of a class with the blanks before it."""
        between = self.form.partition("{text}")[2].partition("{label}")[0]
        return between[len(between.rstrip(" ")) :] + self.labels[label]

    def find_label_ids(self, tokenizer: Tokenizer) -> np.ndarray:  # [C]
        """Return the first token of each class's word; no two classes may share it."""
        check_tokenizer(tokenizer)
        ids = []
        for word in map(self.write_answer, range(len(self.labels))):
            parts = tokenizer.encode(word, follows=True)
            if not parts:
                raise ValueError(f"the label {word!r} has no token: choose a word")
            if tokenizer.decode(parts).strip() != word.strip():
                raise ValueError(f"the label {word!r} is no word of this tokenizer: choose another")
            ids.append(parts[0])
        if len(set(ids)) < len(ids):
            shared = tokenizer.decode([max(ids, key=ids.count)])
            raise ValueError(
                f"the labels {self.labels} share their first token, {shared!r}: choose words that "
                "begin with tokens of their own, such as commoner ones"
            )
        return np.array(ids, np.int32)
