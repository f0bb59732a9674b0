"""Decoders from GGUF files: the folder's weights again, quantisations, the cache, refusals."""

import dataclasses

import gguf
import numpy as np
import pytest
from tiny_decoders import FIXTURES, load, load_fields, same

from lsa_lab import lm
from lsa_lab.lm import folder
from lsa_lab.lm import gguf as our_gguf

ROUNDING = 3e-7
# llama.cpp's keys, and those of config.json; it has a map of names itself.
KEYS = [
    ("block_count", "num_hidden_layers"), ("block_count", "n_layer"),
    ("embedding_length", "hidden_size"), ("embedding_length", "n_embd"),
    ("feed_forward_length", "intermediate_size"), ("feed_forward_length", "n_inner"),
    ("attention.head_count", "num_attention_heads"), ("attention.head_count", "n_head"),
    ("context_length", "max_position_embeddings"), ("context_length", "n_positions"),
    ("attention.head_count_kv", "num_key_value_heads"), ("rope.freq_base", "rope_theta"),
    ("rope.dimension_count", "head_dim"), ("attention.key_length", "head_dim"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
]  # fmt: skip
TOKENS = {"model": "gpt2", "pre": "smollm", "merges": ["a b"]}
TOKENS |= {"tokens": ["a", "b", "ab", *(f"<{i}>" for i in range(58))]}


def convert(name, permute):
    """The tensors as the converter of llama.cpp turns them, with interleaved pairs of a Llama."""
    config, tensors = folder.read(FIXTURES / name)
    named = {key: tensors.read(key) for key in tensors.shapes}
    for key, rows in named.items():
        if name.startswith("llama") and permute and ("attn_q" in key or "attn_k" in key):
            halves = rows.reshape(-1, 2, config.key_width // 2, *rows.shape[1:])
            named[key] = halves.swapaxes(1, 2).reshape(rows.shape)
    return {key: np.ascontiguousarray(rows) for key, rows in named.items()}


def write(path, name, kind="F32", more=None, permute=True, change=None):
    """A fixture as a GGUF file; matrices of another kind where their rows can be cut in blocks."""
    fields, kind = load_fields(name), gguf.GGMLQuantizationType[kind]
    family, fields = fields["model_type"], fields | fields.get("rope_parameters", {})
    values = {f"{family}.{new}": fields[key] for new, key in KEYS if key in fields}
    writer = gguf.GGUFWriter(path, family)
    for key, value in (values | (more or {})).items():
        writer.add_key_value(key, value, gguf.GGUFValueType.get_type(value))
    for key, rows in (convert(name, permute) | (change or {})).items():
        block = gguf.GGML_QUANT_SIZES[kind][0]
        if rows is None:
            continue
        if rows.ndim == 2 and rows.shape[1] % block == 0 and kind.name != "F32":
            writer.add_tensor(key, gguf.quantize(rows, kind), raw_dtype=kind)
        else:
            writer.add_tensor(key, rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LSA_LAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "decoders"


@pytest.mark.parametrize("name", ["llama", "llama_tied", "qwen2", "qwen3", "gpt2"])
def test_a_gguf_is_the_model_of_the_folder(tmp_path, name):
    expected, leaves, _ = load(name, "float32")
    more = {"llama.attention.causal": True, "llama.attention.scale": expected.key_width**-0.5}
    config, params, tokenizer = lm.load(write(tmp_path / "model.gguf", name, more=more))
    epsilon = float(np.float32(expected.norm_epsilon))
    assert config == dataclasses.replace(expected, norm_epsilon=epsilon)
    assert same(params, leaves, ROUNDING)
    assert tokenizer is None
    if name == "llama":  # control: without its interleaved pairs it is another model
        other = lm.load(write(tmp_path / "other.gguf", name, permute=False)).params
        assert not same(other, leaves, ROUNDING)


STEPS = {"BF16": 2.0**-8, "Q8_0": 1 / 254, "Q4_1": 1 / 15}


@pytest.mark.parametrize("kind", STEPS)
def test_quantised_weights_are_those_of_the_folder_within_a_step(tmp_path, kind):
    params, whole = (
        model.params
        for model in (lm.load(write(tmp_path / "a.gguf", "qwen2", kind)), load("qwen2", "float32"))
    )
    blocks = np.asarray(whole.mlp_in).reshape(-1, 32)
    errors = abs(np.asarray(params.mlp_in).reshape(-1, 32) - blocks).max(1)
    assert (errors <= 1.1 * STEPS[kind] * abs(blocks).max(1)).all()
    assert errors.max() > 0.1 * STEPS[kind] * abs(blocks).max()
    assert same(params.mlp_norm_scale, whole.mlp_norm_scale, ROUNDING)


def test_a_gguf_is_dequantised_once(tmp_path, monkeypatch, cache):
    words = {f"tokenizer.ggml.{key}": value for key, value in TOKENS.items()}
    path = write(tmp_path / "model.gguf", "llama", more=words)
    first = lm.load(path)
    monkeypatch.setattr(our_gguf, "read", None)
    again = lm.load(path)
    assert again.config == first.config
    assert same(again.params, first.params)
    assert lm.load(path, "float64").params.w_q.dtype == float
    assert again.tokenizer.encode("abb") == first.tokenizer.encode("abb") == [2, 1]
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("share", [0.01, 0.5])
def test_a_file_cut_short_is_refused(tmp_path, share):
    path = write(tmp_path / "model.gguf", "llama")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"model.gguf is no GGUF file, cut short, "):
        lm.load(path)


ROPE = {"rope_freqs.weight": np.ones(8, np.float32)}
NORM = {"output_norm.weight": np.full(32, np.nan, np.float32)}


@pytest.mark.parametrize(
    ("more", "change", "words"),
    [
        ({"llama.rope.scaling.type": "yarn"}, {}, "rope.scaling.type is 'yarn'"),
        ({}, ROPE, "scales its rope by rope_freqs.weight"),
        ({"llama.attention.sliding_window": 4}, {}, "sliding_window is 4"),
        ({"llama.expert_count": 8}, {}, "expert_count is 8"),
        ({"llama.attention.value_length": 8}, {}, "value_length is 8"),
        ({"llama.attention.causal": False}, {}, "attention.causal is False"),
        ({"llama.attention.scale": 0.5}, {}, "attention.scale is 0.5"),
        ({"llama.embedding_length": "32"}, {}, "embedding_length is '32'"),
        ({"split.count": 3}, {}, "is one of 3 parts of a model"),
        ({}, {"blk.1.ffn_up.weight": None}, "lacks the tensor blk.1.ffn_up.weight"),
        ({}, {"blk.0.attn_sinks": ROPE["rope_freqs.weight"]}, "holds the tensor blk.0.attn_sinks"),
        ({}, {"output.weight": np.ones((61, 32), np.int8)}, "output.weight is I8"),
        ({}, NORM, "output_norm.weight holds NaN or infinite entries"),
    ],
)
def test_what_the_decoder_does_not_compute_is_refused_by_name(tmp_path, more, change, words):
    path = write(tmp_path / "model.gguf", "llama", more=more, change=change)
    with pytest.raises(ValueError, match=words):
        lm.load(path)
