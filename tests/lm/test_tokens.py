"""Tokenizers cut a text as the model's own does."""

import pytest

from lsa_lab.lm import tokens

# A GGUF's tokens: bytes as byte-level BPE writes them, and what the merges make of them.
BYTES = [chr(c) for c in range(33, 127)] + ["Ġ", "Ċ", "Ã", "©"]
MERGES = ["Ġ a", "a b", "Ġa b", "1 2", "Ċ Ċ", "! Ċ", "Ã ©", "Ġ 1"]


def metadata(**changes):
    merged = [merge.replace(" ", "") for merge in MERGES]
    words = list(dict.fromkeys(["<|end|>", *BYTES, "Ì", "ģ", *merged]))
    fields = {
        "model": "gpt2",
        "pre": "smollm",
        "tokens": words,
        "merges": MERGES,
        "token_type": [3] + [1] * (len(words) - 1),
        "bos_token_id": 0,
    }
    return {f"tokenizer.ggml.{key}": value for key, value in (fields | changes).items()}


def cut(pre, text):
    """The tokens of a text, as the vocabulary spells them."""
    fields = metadata(pre=pre)
    return [fields["tokenizer.ggml.tokens"][i] for i in tokens.from_gguf(fields).encode(text)]


@pytest.mark.parametrize(
    ("pre", "text", "expected"),
    [
        ("gpt-2", " ab 1", ["Ġab", "Ġ1"]),
        ("gpt-2", "12", ["12"]),
        ("smollm", "12 ab", ["1", "2", "Ġab"]),
        ("smollm", " ab 1", ["Ġab", "Ġ", "1"]),
        ("qwen2", "12 ab", ["1", "2", "Ġab"]),
        ("gpt-2", "!\n", ["!", "Ċ"]),
        ("smollm", "!\n", ["!", "Ċ"]),
        ("qwen2", "!\n", ["!Ċ"]),
        ("gpt-2", "B'S", ["B", "'", "S"]),
        ("gpt-2", "e\u0301", ["e", "Ì", "ģ"]),
        ("qwen2", "e\u0301", ["Ã©"]),
        ("smollm", "\n\nab", ["Ċ", "Ċ", "ab"]),
        ("smollm", "\n\n", ["ĊĊ"]),
    ],
)
def test_a_gguf_says_where_its_texts_are_cut(pre, text, expected):
    assert cut(pre, text) == expected


def test_decoding_gives_the_text_back():
    tokenizer = tokens.from_gguf(metadata())
    text = "ab é\n\n12<|end|>'s"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode("<|end|>") == [0]
    assert tokenizer.vocabulary == len(metadata()["tokenizer.ggml.tokens"])


def test_a_file_holds_the_same_tokenizer(tmp_path):
    from tokenizers.processors import TemplateProcessing

    own = tokens.from_gguf(metadata())
    own.rules.post_processor = TemplateProcessing(
        single="<|end|> $A", special_tokens=[("<|end|>", 0)]
    )
    own.rules.save(str(tmp_path / "tokenizer.json"))
    tokenizer = tokens.from_file(tmp_path / "tokenizer.json")
    assert tokenizer.start == (0,)
    assert tokenizer.encode(" ab 12") == own.encode(" ab 12")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pre": "tekken"}, "pre-tokenizer is 'tekken', and only gpt-2, smollm, qwen2 are known"),
        ({"model": "llama"}, "of the kind 'llama', .* load a folder with .*tokenizer.json"),
    ],
)
def test_an_unknown_kind_is_refused_by_name(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        tokens.from_gguf(metadata(**changes))


def test_a_tokenizer_of_another_model_is_refused():
    tokenizer = tokens.of_words(["good", "bad"])
    tokens.check_fits(tokenizer, 3)
    tokens.check_fits(tokenizer, 8)  # embeddings are often padded
    with pytest.raises(ValueError, match=r"has 3 tokens and the model's vocabulary 2"):
        tokens.check_fits(tokenizer, 2)
