"""Decoders from folders: what transformers computes, older files, refusals."""

import dataclasses
import functools
import itertools
import json
import math
import shutil
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from lsa_lab import lm
from lsa_lab.lm import decoder, folder

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())


@functools.cache
def loaded(name, dtype="float64"):
    return lm.load(FIXTURES / name, dtype)


@functools.cache
def expected(name):
    """What transformers computes in float64; see tools/lm_fixtures.py."""
    return load_file(FIXTURES / name / "expected.safetensors")


@jax.jit
def outputs(params, ids, config):
    stream = decoder.forward(params, decoder.embed(params, ids, config), config).stream
    return stream, decoder.logits(params, stream[-1], config)


def error(name, params, config):
    """The greatest difference from transformers, relative to the greatest entry."""
    rows = expected(name)
    stream, logits = outputs(params, jnp.asarray(rows["ids"]), config)
    pairs = ((stream, rows["stream"]), (logits, rows["logits"]))
    return max(abs(np.asarray(a) - b).max() / abs(b).max() for a, b in pairs)


@pytest.mark.parametrize("name", NAMES)
def test_stream_and_logits_are_those_of_transformers(name):
    config, params, tokenizer = loaded(name)
    assert error(name, params, config) < 1e-13
    assert tokenizer is None


@pytest.mark.parametrize("name", NAMES)
def test_control_every_leaf_matters(name):
    config, params, _ = loaded(name)
    for leaf, value in vars(params).items():
        # Without rotations, a bias of the keys adds as much to every score of a token.
        if value is None or (name, leaf) == ("gpt2", "b_k"):
            continue
        without = jnp.ones_like(value) if leaf.endswith("_scale") else jnp.zeros_like(value)
        assert error(name, params.replace(**{leaf: without}), config) > 1e-3, leaf


def pairs(rows, config):  # [L, H, k, ...]
    """Coordinates i and i + r/2 beside each other, as GPT-J and GGUF have them."""
    r = config.rotary_width
    order = [i // 2 + i % 2 * (r // 2) if i < r else i for i in range(config.key_width)]
    return rows[:, :, np.array(order)]


def fields(name):
    return json.loads((FIXTURES / name / "config.json").read_text())


def without(mapping, *keys):
    return {key: value for key, value in mapping.items() if key not in keys}


OLDER = {
    "llama": {"rope_theta": 500.0, "rope_scaling": None},
    "qwen2": {"rope_theta": 500, "sliding_window": 4096},
    "gpt_neox": {"rotary_emb_base": 500, "rotary_pct": 0.5},
}


@pytest.mark.parametrize("name", OLDER)
def test_older_files_keep_the_rotation_elsewhere(name):
    older = without(fields(name), "rope_parameters") | OLDER[name]
    assert folder.make_config(older, Path("config.json")) == loaded(name).config
    other = folder.make_config(older | {"rope_theta": 7.0}, Path("config.json"))
    assert other == dataclasses.replace(loaded(name).config, rotary_base=7.0)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("llama", {"model_type": "mamba"}, "model_type is 'mamba'"),
        ("llama", {"rope_parameters": {"rope_type": "llama3"}}, "does not say factor"),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "factor is 0.5"),
        ("mistral", {"sliding_window": 4096}, "sliding_window is 4096"),
        ("llama", {"mlp_bias": True}, "mlp_bias is True"),
        ("llama", {"quantization_config": {"quant_method": "awq"}}, "awq"),
        ("llama", {"hidden_size": None}, "does not say hidden_size"),
        ("llama", {"num_attention_heads": 3, "head_dim": None}, "does not divide hidden_size"),
        ("qwen2", {"layer_types": ["full_attention", "sliding_attention"]}, "layer_types"),
        ("gemma", {"use_bidirectional_attention": True}, "bidirectional_attention is True"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx is True"),
        ("llama", {"logit_scale": 0.5}, "logit_scale is 0.5"),
        ("llama", {"rope_theta": 10**400, "rope_parameters": None}, "rope_theta is 10"),
        ("gptj", {"rotary_dim": 10}, "rotary_width is 10"),
    ],
)
def test_what_the_decoder_does_not_compute_is_refused_by_name(name, change, words):
    with pytest.raises(ValueError, match=words):
        folder.make_config(fields(name) | change, Path("config.json"))


WRONG = ("false", "2", 2.5, -1, 0, math.nan, math.inf, 10**400, True, [1], [], {"a": 1}, {})


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_another_type_is_refused_by_name_or_changes_nothing(name):
    source, refused, expected = Path("config.json"), 0, folder.make_config(fields(name), "")
    places = [(key,) for key in fields(name)]
    places += [("rope_parameters", key) for key in fields(name).get("rope_parameters", ())]
    for (*group, key), wrong in itertools.product(places, WRONG):
        changed = fields(name)
        holder = changed[group[0]] if group else changed
        if type(wrong) is type(holder[key]) and wrong in (True, 2.5, [], {}):
            continue  # it is of the field's type
        holder[key] = wrong
        try:
            said = "" if folder.make_config(changed, source) == expected else "another config"
        except ValueError as error:
            said = str(error)
        assert not said or (said.startswith("config.json") and key in said), (key, wrong, said)
        refused += bool(said)
    assert refused > 100
    if name == "mistral":
        with pytest.raises(ValueError, match="sliding_window is 4096; supported: N"):
            folder.make_config(without(fields(name), "sliding_window"), source)


def test_what_the_first_files_of_gemma_call_gelu_is_its_tanh_form():
    older = folder.make_config(fields("gemma") | {"hidden_act": "gelu"}, Path("config.json"))
    assert older == loaded("gemma").config


@pytest.fixture
def gpt2(tmp_path):
    shutil.copytree(FIXTURES / "gpt2", tmp_path / "gpt2")
    return tmp_path / "gpt2"


def leaves_equal(path, name):
    models = lm.load(path, "float64").params, loaded(name)[1]
    pairs = zip(*map(jax.tree.leaves, models), strict=True)
    return all((ours == theirs).all() for ours, theirs in pairs)


def test_the_index_decides_which_shard_holds_a_tensor(tmp_path):
    folder = shutil.copytree(FIXTURES / "llama", tmp_path / "llama")
    index = folder / "model.safetensors.index.json"
    places = json.loads(index.read_text())["weight_map"]
    first, last = (folder / pick(places.values()) for pick in (min, max))
    name, stale = next((key, rows) for key, rows in load_file(first).items())
    save_file(load_file(last) | {name: stale + 1, "gone.weight": stale}, last)
    assert leaves_equal(folder, "llama")
    index.write_text(json.dumps({"weight_map": places | {name: last.name}}))
    assert not leaves_equal(folder, "llama")  # control: the index may name the other copy
    index.write_text(json.dumps({"weight_map": places | {"more.weight": last.name}}))
    with pytest.raises(ValueError, match=r"damaged .*more.weight"):
        lm.load(folder)


OLD = {name: "transformer.h.{}.attn" for name in ("gpt2", "gptj")}
OLD |= {"gpt_neox": "gpt_neox.layers.{}.attention", "llama_tied": "model.layers.{}.self_attn"}


@pytest.mark.parametrize("name", OLD)
def test_masks_and_angles_of_older_files_are_not_read(tmp_path, name):
    path = shutil.copytree(FIXTURES / name, tmp_path / name) / "model.safetensors"
    tensors, more = load_file(path), {}
    for layer, kind in enumerate(("bool", "uint8")):
        more[OLD[name].format(layer) + ".bias"] = np.tri(12)[None, None].astype(kind)
        more[OLD[name].format(layer) + ".masked_bias"] = np.array(-1e9)
    for place in (OLD[name].partition(".")[0], OLD[name].format(0)):
        more[f"{place}.rotary_emb.inv_freq"] = np.ones(2, np.float32)
    save_file(tensors | more, path)
    assert leaves_equal(path.parent, name)
    key = min(tensors)
    save_file(tensors | {key: tensors[key].astype(np.int8)}, path)
    with pytest.raises(ValueError, match=f"{key} is I8; supported are F64, F32, F16, BF16"):
        lm.load(path.parent)


def test_incomplete_folders_are_refused(gpt2, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no .*elsewhere; expected a GGUF file"):
        lm.load(tmp_path / "elsewhere")
    weights = gpt2 / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"safetensors file of .* is damaged"):
        lm.load(gpt2)
    weights.unlink()
    with pytest.raises(FileNotFoundError, match=r"holds neither .*pickles"):
        lm.load(gpt2)
    (gpt2 / "config.json").write_text("{")
    with pytest.raises(ValueError, match="is no JSON"):
        lm.load(gpt2)
    (gpt2 / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"there is no .*config.json: a folder holds"):
        lm.load(gpt2)
