"""Level 0 and level 1 of a ledger: headlines and messages beside the cells that they stand on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from lsa_lab.harness.report.cells import Cells, Index, Sentence
from lsa_lab.harness.report.headlines import Headline, Message, Proof
from lsa_lab.judging.statistics import confidence_or, level

NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Levels:
    """Level 0 and level 1: headlines and messages beside the cells that they stand on."""

    headlines: Sequence[Headline]
    messages: Mapping[str, Sequence[Message]]
    index: Index
    first: Sequence[str] = ()  # places of the headlines that the front page shows

    @cached_property
    def lines(self) -> "list[Line]":
        """Level 0, without what stands on experiments that have no result."""
        lines = [Line(headline, self.index) for headline in self.headlines]
        return [line for line in lines if any(column.is_tried for column in line.columns)]

    @cached_property
    def by_theme(self) -> "dict[str, list[Repeatable]]":
        """Level 1: {theme: messages}, without those whose experiments have no result."""
        themes = {
            theme: [
                Repeatable(message, sentence, self.index)
                for message in messages
                if (sentence := self.index.sentence(message.words))
            ]
            for theme, messages in self.messages.items()
        }
        return {theme: each for theme, each in themes.items() if each}

    def moved(self, experiment: str) -> str:
        """What is no longer as the messages of an experiment suppose; empty where nothing moved."""
        messages = [message for each in self.by_theme.values() for message in each]
        return ", ".join(
            message.sentence.moved
            for message in messages
            if message.sentence.moved
            and any(result.name == experiment for result, _ in message.sentence.rows)
        )

    @cached_property
    def cells(self) -> Cells:
        """Every judged cell of level 0."""
        sentences = [c.sentence for line in self.lines for c in line.columns if c.sentence]
        pairs = [pair for sentence in sentences for pair in sentence.cells.pairs]
        pairs = [(result, claim) for result, claim in pairs if claim.verdict != "estimated"]
        return Cells(tuple({id(claim): (result, claim) for result, claim in pairs}.values()))

    @cached_property
    def strange(self) -> dict[str, str]:
        """Names in its sentences that no row has, and why nothing is said of them."""
        for words in [line.headline.explained for line in self.lines]:
            self.index.sentence(words)
        for message in [message for each in self.by_theme.values() for message in each]:
            self.index.sentence(message.message.null_words)
        return self.index.strange

    @property
    def confidence(self) -> float:
        """What one of the m cells must keep so that all of them do: 1 - (1 - confidence) / m."""
        return 1 - (1 - confidence_or(None)) / max(1, len(self.cells.pairs))

    @property
    def together(self) -> str:
        """What the verdicts of level 0 say all at once."""
        pairs = self.cells.pairs
        again = {result.anchor: result.judged_at(self.confidence) for result in self.cells.results}
        stay = sum(again[each.anchor][claim.id].verdict == claim.verdict for each, claim in pairs)
        return (
            f"{len(pairs)} cells stand behind these lines. At {level()} each about one in "
            f"{1 / (1 - confidence_or(None)):.0f} intervals misses its truth; with intervals of "
            f"{100 * self.confidence:.2f} %, all of which cover at once with probability {level()} "
            f"(Bonferroni), {stay} of the {len(pairs)} verdicts stay."
        )


@dataclass(frozen=True)
class Column:
    """What one way of asking says of a statement: a verdict and a number, or nothing yet."""

    sentence: Sentence | None = None
    proof: Proof | None = None

    @property
    def is_tried(self) -> bool:
        return bool(self.sentence or self.proof)

    @property
    def verdict(self) -> str:
        if self.sentence is None:
            return self.proof.verdict if self.proof else NOT_TRIED
        return self.sentence.cells.verdict

    @property
    def kind(self) -> str:
        """The verdict as one word: "mixed" where cells differ."""
        return "mixed" if " of " in self.verdict else self.verdict

    def markdown(self, root: str, up: str) -> str:
        if self.proof:
            condition = f" {self.proof.condition}" if self.proof.condition else ""
            return f"[**{self.proof.verdict}**]({up}{self.proof.test}){condition}"
        if self.sentence is None:
            return NOT_TRIED
        cells = self.sentence.cells
        links = (f"[{each.name}]({root}{each.folder}/README.md)" for each in cells.results)
        return f"**{cells.verdict}**{cells.marks}: {self.sentence.text} ({', '.join(links)})"


@dataclass(frozen=True)
class Line:
    """A line of level 0."""

    headline: Headline
    index: Index

    @property
    def columns(self) -> tuple[Column, Column, Column]:
        each = (self.headline.trained, self.headline.language)
        trained, language = (
            Column(self.index.sentence(words) if words else None) for words in each
        )
        return Column(proof=self.headline.proved), trained, language

    @property
    def explained(self) -> str:
        sentence = self.index.sentence(self.headline.explained)
        return sentence.text if sentence else ""

    def markdown(self, root: str = "", up: str = "../") -> tuple[str, ...]:
        columns = (column.markdown(root, up) for column in self.columns)
        return (self.headline.place, self.headline.says, *columns, self.explained)


@dataclass(frozen=True)
class Repeatable:
    """A message of level 1 with its numbers."""

    message: Message
    sentence: Sentence
    index: Index

    @property
    def text(self) -> str:
        moved = f" (out of date: {self.sentence.moved})" if self.sentence.moved else ""
        return self.sentence.text + moved

    @property
    def null(self) -> str:
        sentence = self.index.sentence(self.message.null_words)
        return sentence.text if sentence else ""

    @property
    def marks(self) -> str:
        """Whether any of its cells is post hoc, or was changed and judged anew."""
        return "".join(mark for mark in "†‡" if mark in self.sentence.cells.marks)

    def markdown(self) -> tuple[str, ...]:
        rows = (
            f"[{result.name}]({result.folder}/README.md): {', '.join(names)}"
            for result, names in self.sentence.rows
        )
        return self.text + self.marks, self.null, "; ".join(rows)
