"""Text to token ids and back, as the model's own tokenizer does it."""

import dataclasses
import functools
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lsa_lab.files import import_extra

if TYPE_CHECKING:
    import tokenizers

UNKNOWN = "<unk>"  # any other word of a whole-word tokenizer
# Kinds of a GGUF's tokens that are never split: those for no text, such as the end of a document,
# and those that the model's authors have added, such as <think>.
_CONTROL, _USER_DEFINED = 3, 4

# Where a GGUF's tokenizer cuts a text before any merge, by its name in ``tokenizer.ggml.pre``: the
# digits, then the words. An empty pattern stands for that of GPT-2 (Radford et al. 2019).
_CUTS = {
    "gpt-2": (False, ""),
    "smollm": (True, ""),
    "qwen2": (
        False,
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Tokenizer:
    """A tokenizer of the package ``tokenizers``, and the ids that it puts before every text.

    Texts that are run one after the other are encoded one by one: a token never spans two of them.
    """

    rules: "tokenizers.Tokenizer"
    start: tuple[int, ...] = ()  # ids before the first text, such as a begin-of-text token

    @property
    def vocabulary(self) -> int:
        """Return the number of embeddings that its tokens need: 1 above the greatest id."""
        return 1 + max(self.rules.get_vocab().values(), default=-1)

    def encode(self, text: str, *, follows: bool = False) -> list[int]:
        """Return the ids of a text without ``start``; one that ``follows`` another text gets no
        blank in front of it, which some tokenizers prepend to every text."""
        rules = self._rules_within if follows else self.rules
        return rules.encode(text, add_special_tokens=False).ids

    @functools.cached_property
    def _rules_within(self) -> "tokenizers.Tokenizer":
        document = json.loads(self.rules.to_str(), object_hook=_remove_blank)
        return type(self.rules).from_str(json.dumps(document))

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, special tokens spelled out."""
        return self.rules.decode([int(i) for i in ids], skip_special_tokens=False)


def from_json(document: str) -> Tokenizer:
    """Read the tokenizer that a ``tokenizer.json`` holds."""
    library = import_extra("tokenizers", "lm")
    try:
        rules = library.Tokenizer.from_str(document)
    except Exception as error:  # the package raises nothing narrower
        raise ValueError(f"this is no tokenizer.json: {error}") from None
    rules.no_padding()
    rules.no_truncation()
    return Tokenizer(rules, _start(rules))


def from_gguf(metadata: Mapping[str, Any]) -> Tokenizer:
    """Return the byte-level BPE of a GGUF: its tokens, merges, and the cuts that ``pre`` names."""
    library = import_extra("tokenizers", "lm")
    fields = {key.removeprefix("tokenizer.ggml."): value for key, value in metadata.items()}
    if fields.get("model") != "gpt2":
        raise ValueError(
            f"the GGUF's tokenizer is of the kind {fields.get('model')!r}, and only byte-level BPE "
            "('gpt2') is read from a GGUF: load a folder with the model's tokenizer.json"
        )
    kind = fields.get("pre", "default")
    if kind not in _CUTS:
        raise ValueError(
            f"the GGUF's pre-tokenizer is {kind!r}, and only {', '.join(_CUTS)} are known: load a "
            "folder with the model's tokenizer.json"
        )
    words = fields["tokens"]
    ids = {word: i for i, word in enumerate(words)}
    pairs = [tuple(merge.split(" ")) for merge in fields.get("merges", ())]
    # Of others the package would panic.
    right = sum(len(pair) == 2 and {*pair, "".join(pair)} <= ids.keys() for pair in pairs)
    if not pairs or right < len(pairs):
        raise ValueError(
            f"the GGUF's tokenizer is damaged, {right} of its {len(pairs)} merges join two tokens: "
            "fetch the file again"
        )
    rules = library.Tokenizer(library.models.BPE(vocab=ids, merges=pairs))
    pre, (digits, pattern) = library.pre_tokenizers, _CUTS[kind]
    parts = [pre.Digits(individual_digits=True)] if digits else []
    parts += [pre.Split(library.Regex(pattern), "isolated")] if pattern else []
    parts.append(pre.ByteLevel(add_prefix_space=False, use_regex=not pattern))
    rules.pre_tokenizer = pre.Sequence(parts)
    rules.decoder = library.decoders.ByteLevel()
    if kind == "qwen2":
        rules.normalizer = library.normalizers.NFC()
    whole = list(zip(words, fields.get("token_type", ()), strict=False))
    for number, add in ((_CONTROL, rules.add_special_tokens), (_USER_DEFINED, rules.add_tokens)):
        add([library.AddedToken(word, normalized=False) for word, of in whole if of == number])
    if not fields.get("add_bos_token"):
        return Tokenizer(rules)
    start = fields.get("bos_token_id")
    if not isinstance(start, int) or not 0 <= start < len(words):
        raise ValueError(
            f"the GGUF's tokenizer is damaged, bos_token_id is {start!r} of {len(words)} tokens: "
            "fetch the file again"
        )
    rules.post_processor = library.processors.TemplateProcessing(
        single=f"{words[start]} $A", special_tokens=[(words[start], start)]
    )
    return Tokenizer(rules, (start,))


def make_word_tokenizer(words: Sequence[str]) -> Tokenizer:
    """Return a tokenizer of one token a word, cut at white space; token 0 is any other word."""
    library = import_extra("tokenizers", "lm")
    if len({*words, UNKNOWN}) < len(words) + 1:
        raise ValueError(f"words {list(words)} repeat each other or {UNKNOWN!r}: name each once")
    ids = {word: i for i, word in enumerate([UNKNOWN, *words])}
    rules = library.Tokenizer(library.models.WordLevel(vocab=ids, unk_token=UNKNOWN))
    rules.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    return Tokenizer(rules)


def check_tokenizer(tokenizer: Any) -> None:
    """Raise unless a tokenizer is given, which a decoder from disk may lack."""
    if not isinstance(tokenizer, Tokenizer):
        raise TypeError(
            f"tokenizer is {tokenizer!r}: give that of the model, which lies in its tokenizer.json"
        )


def check_fits(tokenizer: Tokenizer, vocabulary: int) -> None:
    """Raise unless the model has an embedding for every token; it may have more."""
    if tokenizer.vocabulary > vocabulary:
        raise ValueError(
            f"the tokenizer has {tokenizer.vocabulary} tokens and the model's vocabulary "
            f"{vocabulary}: give the tokenizer that the model was trained with"
        )


def _start(rules: "tokenizers.Tokenizer") -> tuple[int, ...]:
    """Return the ids that the tokenizer's template puts before a text, without those after it."""
    words = (word for word in ("a", *rules.get_vocab()))
    text = next((w for w in words if rules.encode(w, add_special_tokens=False).ids), "")
    encoding = rules.encode(text)
    before = itertools.takewhile(lambda part: part is None, encoding.sequence_ids)
    return tuple(encoding.ids[: len(list(before))])


def _remove_blank(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a ``tokenizer.json`` that prepends nothing to a text."""
    changes: dict[Any, dict] = {
        "Prepend": {"prepend": ""},
        "Metaspace": {"prepend_scheme": "never"},
        "ByteLevel": {"add_prefix_space": False},
    }
    return part | changes.get(part.get("type"), {})
