"""The tiny decoders of tests/lm/fixtures, and what transformers computes with them in float64."""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file

from lsa_lab import lm
from lsa_lab.lm import decoder, weights

FIXTURES = Path(__file__).parent / "lm" / "fixtures"
NAMES = sorted(path.name for path in FIXTURES.iterdir() if path.is_dir())


@functools.cache
def load(name, dtype="float64"):
    return lm.load(FIXTURES / name, dtype)


@functools.cache
def load_expected(name):
    """Return ids [T], stream [L+1, T, D] and logits [T, V]; tools/lm_fixtures.py wrote them."""
    return load_file(FIXTURES / name / "expected.safetensors")


def load_fields(name):
    return json.loads((FIXTURES / name / "config.json").read_text())


def draw(config):
    """Draw params with NumPy, so that nothing is compiled for them."""
    rng, leaves = np.random.default_rng(0), {}
    for name, shape in weights.shapes(config).items():
        normal = rng.standard_normal(shape)
        scaled = 1 + 0.1 * normal if name.endswith("_scale") else normal * shape[-1] ** -0.5
        leaves[name] = jnp.asarray(scaled)
    return decoder.Params(**leaves)


def same(params, others, rtol=0.0):
    pairs = zip(*map(jax.tree.leaves, (params, others)), strict=True)
    return all(a.dtype == b.dtype and np.allclose(a, b, rtol=rtol, atol=0) for a, b in pairs)
