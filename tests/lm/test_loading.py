"""Decoders from folders: fields of config.json, older files, shards, refusals."""

import dataclasses
import itertools
import json
import math
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tiny_decoders import FIXTURES, NAMES, load, load_fields, same

from lsa_lab import lm
from lsa_lab.lm.folder import make_config

SOURCE = "config.json"


def without(mapping, *keys):
    return {key: value for key, value in mapping.items() if key not in keys}


OLDER = {
    "llama": {"rope_theta": 500.0, "rope_scaling": None},
    "qwen2": {"rope_theta": 500, "sliding_window": 4096},
    "gpt_neox": {"rotary_emb_base": 500, "rotary_pct": 0.5},
    "gemma": {"rope_theta": 500.0, "hidden_act": "gelu"},  # by which they mean its tanh form
}


@pytest.mark.parametrize("name", OLDER)
def test_older_files_keep_the_same_elsewhere(name):
    older = without(load_fields(name), "rope_parameters") | OLDER[name]
    assert make_config(older, SOURCE) == load(name).config
    other = make_config(older | {"rope_theta": 7.0}, SOURCE)
    assert other == dataclasses.replace(load(name).config, rotary_base=7.0)


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
        ("gptj", {"rotary_dim": 10}, "rotary_width is 10"),
    ],
)
def test_what_the_decoder_does_not_compute_is_refused_by_name(name, change, words):
    with pytest.raises(ValueError, match=words):
        make_config(load_fields(name) | change, SOURCE)


WRONG = ("false", "2", 2.5, -1, 0, math.nan, math.inf, 10**400, True, [1], [], {"a": 1}, {})


@pytest.mark.parametrize("name", NAMES)
def test_a_field_of_another_type_is_refused_by_name_or_changes_nothing(name):
    refused, expected = 0, load(name).config
    places = [(key,) for key in load_fields(name)]
    places += [("rope_parameters", key) for key in load_fields(name).get("rope_parameters", ())]
    for (*group, key), wrong in itertools.product(places, WRONG):
        changed = load_fields(name)
        holder = changed[group[0]] if group else changed
        if type(wrong) is type(holder[key]) and wrong in (True, 2.5, [], {}):
            continue  # it is of the field's type
        holder[key] = wrong
        try:
            said = "" if make_config(changed, SOURCE) == expected else "another config"
        except ValueError as error:
            said = str(error)
        assert not said or (said.startswith(SOURCE) and key in said), (key, wrong, said)
        refused += bool(said)
    assert refused > 100
    if name == "mistral":
        with pytest.raises(ValueError, match="sliding_window is 4096"):  # transformers' default
            make_config(without(load_fields(name), "sliding_window"), SOURCE)


def test_the_index_decides_which_shard_holds_a_tensor(tmp_path):
    folder = shutil.copytree(FIXTURES / "llama", tmp_path / "llama")
    index = folder / "model.safetensors.index.json"
    places = json.loads(index.read_text())["weight_map"]
    first, last = (folder / pick(places.values()) for pick in (min, max))
    name, stale = next((key, rows) for key, rows in load_file(first).items())
    save_file(load_file(last) | {name: stale + 1, "gone.weight": stale}, last)
    expected = load("llama").params
    assert same(lm.load(folder, "float64").params, expected)
    index.write_text(json.dumps({"weight_map": places | {name: last.name}}))
    assert not same(lm.load(folder, "float64").params, expected)  # control: the other copy
    index.write_text(json.dumps({"weight_map": places | {"more.weight": last.name}}))
    with pytest.raises(ValueError, match=r"is damaged .*more.weight"):
        lm.load(folder)


OLD = {"gpt2": "transformer.h.{}.attn", "gpt_neox": "gpt_neox.layers.{}.attention"}
OLD |= {"llama_tied": "model.layers.{}.self_attn"}


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
    assert same(lm.load(path.parent, "float64").params, load(name).params)
    bare = {key.removeprefix(OLD[name].partition(".")[0] + "."): x for key, x in tensors.items()}
    save_file(bare, path)  # a model saved without its head
    assert same(lm.load(path.parent, "float64").params, load(name).params)
    key = min(tensors)
    save_file(tensors | {key: tensors[key].astype(np.int8)}, path)
    with pytest.raises(ValueError, match=f"{key} is I8; supported are F64, F32, F16, BF16"):
        lm.load(path.parent)


def test_incomplete_folders_are_refused(tmp_path):
    folder = shutil.copytree(FIXTURES / "gpt2", tmp_path / "gpt2")
    weights, config = folder / "model.safetensors", folder / "config.json"
    steps = [
        (lambda: weights.write_bytes(weights.read_bytes()[:-100]), r"file of .* is damaged"),
        (weights.unlink, r"holds neither .*pickles"),
        (lambda: config.write_text("{"), "is no JSON"),
        (config.unlink, "No such file .*config"),
        (lambda: shutil.rmtree(folder), "No such file"),
    ]
    for damage, words in steps:
        damage()
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            lm.load(folder)
