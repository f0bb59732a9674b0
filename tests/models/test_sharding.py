"""Shared weights and batches: the axis of each leaf, what is replicated, and the same answers."""

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.sharding import PartitionSpec

from lsa_lab.lm import weights
from lsa_lab.lm.config import Config
from lsa_lab.models import sharding, transformer

CONFIG = Config(
    num_layers=2, num_heads=4, num_groups=2, key_width=4, width=8, mlp_width=6, vocabulary=11,
    context=16, rotary_width=4,
)  # fmt: skip
MODEL = sharding.MODEL
DECODER = jax.eval_shape(lambda key: weights.init(key, CONFIG), jax.random.key(0))
WIDE = transformer.Config(4, 2, 4, 3, width=8, mlp_width=6, norm=True, biases=True)
TRANSFORMER = jax.eval_shape(lambda key: transformer.init(key, WIDE), jax.random.key(0))


def test_heads_and_mlp_rows_are_shared_and_what_does_not_divide_is_replicated():
    specs = sharding.specs(DECODER, 2)
    assert specs.w_q == specs.w_k == specs.mlp_in == PartitionSpec(None, "model")
    assert specs.mlp_out == PartitionSpec(None, None, "model")
    assert specs.embedding == specs.final_norm_scale == PartitionSpec()  # 11 words, no axis
    assert sharding.specs(DECODER, 4).w_k == PartitionSpec()  # 2 groups


SHAPES = {  # the axis of four is shared, whatever stands in front
    **dict.fromkeys(["embedding", "unembedding"], (4, 5)),
    "unembedding_bias": (4,),
    **dict.fromkeys(["w_kq", "w_pv", "w_q", "w_k", "w_v", "w_o"], (3, 4, 5, 7)),
    **dict.fromkeys(["b_q", "b_k", "b_v"], (3, 4, 5)),
    **dict.fromkeys(["mlp_in", "mlp_gate"], (3, 4, 5)),
    "mlp_in_bias": (3, 4),
    "mlp_out": (3, 5, 4),
}


def test_every_leaf_is_shared_by_its_heads_its_words_or_its_mlp_rows():
    assert SHAPES.keys() == sharding._SHARED.keys()
    for front in ((), (5,)):
        leaves = {
            name: jax.ShapeDtypeStruct(front + shape, float) for name, shape in SHAPES.items()
        }
        for name, spec in sharding.specs(leaves, 4).items():
            axes = [MODEL if size == 4 else None for size in leaves[name].shape]
            assert spec == PartitionSpec(*axes[: axes.index(MODEL) + 1]), name


def test_what_an_optimiser_keeps_lies_beside_its_leaf_and_runs_stay_in_front():
    state = jax.eval_shape(optax.adam(1e-3).init, TRANSFORMER)
    adam = sharding.specs(state, 2)[0]
    assert adam.mu.w_q == adam.nu.w_q == PartitionSpec(None, "model")
    assert adam.count == PartitionSpec()
    runs = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((5, *leaf.shape), leaf.dtype), state)
    assert sharding.specs(runs, 2)[0].mu.mlp_out == PartitionSpec(None, None, None, "model")


def test_a_mesh_without_the_axis_and_a_batch_that_does_not_divide_are_refused():
    alone = jax.make_mesh((1,), ("runs",))
    with pytest.raises(ValueError, match=r"the mesh has the axes \('runs',\)"):
        sharding.place(TRANSFORMER, alone)
    with pytest.raises(ValueError, match="one of them must be 'batch'"):
        sharding.share(jnp.zeros(4), alone)
    with pytest.raises(ValueError, match="do not make so many equal rows"):
        sharding.mesh(batch=3 * jax.device_count())
    two = jax.sharding.AbstractMesh((2, 1), ("batch", "model"))
    with pytest.raises(ValueError, match="a batch of 3 is not shared evenly by the mesh's 2 rows"):
        sharding.share(jnp.zeros(3), two)


def test_two_devices_answer_as_one(on_devices):
    program = """
        from functools import partial
        import jax, jax.numpy as jnp
        from lsa_lab.lm import decoder
        from lsa_lab.models import sharding

        config = decoder.Config(2, 4, 2, 4, 8, 6, 12, 16, rotary_width=4)
        params = jax.jit(partial(decoder.init, config=config))(jax.random.key(0))
        def last(params, ids):
            walk = decoder.forward(params, decoder.embed(params, ids, config), config)
            return decoder.logits(params, walk.stream[-1], config)
        ids = jnp.arange(9)
        placed = sharding.place(params, sharding.mesh())
        assert len(placed.w_q.sharding.device_set) == 2
        assert placed.w_q.addressable_shards[0].data.shape[1] == 2
        compiled = jax.jit(last).lower(placed, ids).compile()
        assert "all-reduce" in compiled.as_text()
        assert abs(compiled(placed, ids) - jax.jit(last)(params, ids)).max() < 1e-4
    """
    on_devices(2, program)
