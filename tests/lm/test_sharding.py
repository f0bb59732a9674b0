"""Shared weights: the axis of each leaf, what is replicated, and the same answers."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import pytest
from jax.sharding import PartitionSpec

from lsa_lab.lm import sharding
from lsa_lab.lm.config import Config
from lsa_lab.lm.weights import init

CONFIG = Config(
    num_layers=2, num_heads=4, num_groups=2, key_width=4, width=8, mlp_width=6, vocabulary=11,
    context=16, rotary_width=4,
)  # fmt: skip
PARAMS = jax.eval_shape(lambda key: init(key, CONFIG), jax.random.key(0))


def test_heads_and_mlp_rows_are_shared_and_what_does_not_divide_is_replicated():
    specs = sharding.specs(PARAMS, 2)
    assert specs.w_q == specs.w_k == specs.mlp_in == PartitionSpec(None, "model")
    assert specs.mlp_out == PartitionSpec(None, None, "model")
    assert specs.embedding == specs.final_norm_scale == PartitionSpec()  # 11 words, no axis
    assert sharding.specs(PARAMS, 4).w_k == PartitionSpec()  # 2 groups


def test_a_mesh_without_the_axis_is_refused():
    with pytest.raises(ValueError, match=r"the mesh has the axes \('batch',\)"):
        sharding.place(PARAMS, jax.make_mesh((1,), ("batch",)))


def test_a_decoder_on_two_devices_answers_as_on_one():
    program = """
        import jax, jax.numpy as jnp
        from lsa_lab.lm import decoder, sharding
        from lsa_lab.lm.config import Config
        config = Config(2, 4, 2, 4, 8, 6, 12, 16, rotary_width=4)
        params = decoder.init(jax.random.key(0), config)
        def last(params, ids):
            walk = decoder.forward(params, decoder.embed(params, ids, config), config)
            return decoder.logits(params, walk.stream[-1], config)
        ids = jnp.arange(9)
        alone = jax.jit(last)(params, ids)
        placed = sharding.place(params, sharding.mesh())
        assert len(placed.w_q.sharding.device_set) == 2
        assert placed.w_q.addressable_shards[0].data.shape[1] == 2
        lowered = jax.jit(last).lower(placed, ids).compile()
        assert "all-reduce" in lowered.as_text()
        assert abs(jax.jit(last)(placed, ids) - alone).max() < 1e-4
    """
    environment = os.environ | {
        "XLA_FLAGS": f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    }
    root = Path(__file__).resolve().parents[2]
    environment["PYTHONPATH"] = str(root)
    command = [sys.executable, "-c", textwrap.dedent(program)]
    left = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert left.returncode == 0, left.stderr
