"""A process that rounds the factors of its matrix products computes no experiment."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lsa_lab.harness.refusal import RefusalError
from lsa_lab.harness.run import precision


def kept(bits):
    """The product as hardware makes it that keeps so many bits of the factors' fractions."""

    def rounded(x):
        fraction, exponent = np.frexp(np.asarray(x, float))
        return np.ldexp(np.round(fraction * 2.0 ** (bits + 1)), exponent - bits - 1)

    return lambda left, right: rounded(left) @ rounded(right)


@pytest.mark.parametrize(("bits", "error"), [(7, "0.002"), (10, "0.0003")], ids=["bf16", "TF32"])
def test_a_product_of_rounded_factors_is_refused_and_the_message_says_what_to_set(bits, error):
    with pytest.raises(RefusalError) as refused:
        precision.check(kept(bits))
    said = str(refused.value)
    assert f"wrong by {error} of its size" in said
    assert 'jax.config.update("jax_default_matmul_precision", "highest")' in said


def test_three_products_of_bfloat16_in_place_of_one_are_refused_too():
    def high(left, right):
        parts = [np.asarray(x, jnp.bfloat16).astype(np.float32) for x in (left, right)]
        rests = [
            np.asarray(x - part, jnp.bfloat16).astype(np.float32)
            for x, part in zip((left, right), parts, strict=True)
        ]
        return parts[0] @ parts[1] + parts[0] @ rests[1] + rests[0] @ parts[1]

    with pytest.raises(RefusalError, match="wrong by"):
        precision.check(high)


def test_the_products_of_this_process_pass_within_milliseconds():
    precision.check()
    began = time.process_time()
    precision.check()
    assert time.process_time() - began < 0.05
    precision.check(lambda left, right: np.asarray(left, float) @ np.asarray(right, float))


def test_a_run_under_a_lowered_precision_is_refused_before_anything_is_computed(
    toy, program, capsys
):
    with jax.default_matmul_precision("BF16_BF16_F32"):
        assert program("run", "toy") == 2
    assert "which is now 'BF16_BF16_F32'" in capsys.readouterr().err
    assert not list(toy.rglob("result.nc"))
    assert not list((toy / "cache").rglob("half"))
