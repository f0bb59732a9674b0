"""NaN and infinity come into trainings at known steps: the status, the log and the checkpoint tell.

What comes where and when are leaves of the runs: one program trains all of them.
"""

import json
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import optax

from lsa_lab import training
from lsa_lab.store import checkpoints
from lsa_lab.training.status import Status

# Each place, and the leaf that the status is to name.
PLACES = {"data": "loss", "loss": "loss", "slope a": "a", "slope b": "b", "a": "a", "b": "b"}
STEPS, CHUNK = 30, 10


@jax.custom_vjp
def spoilt(leaf, bad):
    """The leaf, the gradient of which ``bad`` is added to."""
    return leaf


spoilt.defvjp(lambda leaf, bad: (leaf, bad), lambda bad, slope: (slope + bad, jnp.zeros_like(bad)))


def bad_of(own, t):
    """What is put into each place at step t: zero but for one place, at one step."""
    here = (own["place"] == jnp.arange(len(PLACES))) & (own["step"].astype(t.dtype) == t)
    return dict(zip(PLACES, jnp.where(here, own["value"], 0.0), strict=True))


def loss(params, batch, own):
    x, t = batch
    bad = bad_of(own, t)
    a, b = (spoilt(params[name], bad[f"slope {name}"]) for name in "ab")
    return ((a @ x - 1) ** 2) + 0.1 * (b**4).sum() + bad["loss"]


def sample(key, t, own):
    return jax.random.normal(key, (3,)) + bad_of(own, t)["data"], t


def optimizer(own):
    """Descent, the update of which has something added to it."""

    def update(updates, t, params=None):
        bad = bad_of(own, t)
        return {name: x + bad[name] for name, x in updates.items()}, t + 1

    return optax.chain(
        optax.sgd(0.05), optax.GradientTransformation(lambda _: jnp.zeros((), jnp.int32), update)
    )


def train(rows, files=None, **arguments):
    own = dict(
        zip(("place", "step", "value"), map(jnp.asarray, zip(*rows, strict=True)), strict=True)
    )
    start = {"a": jnp.full((len(rows), 3), 0.3), "b": jnp.full((len(rows), 2), 0.5)}
    keys = jnp.repeat(jax.random.key(0)[None], len(rows))
    recipe = training.Training(loss, sample, optimizer, STEPS, curriculum=lambda t: t)
    arguments = {"chunk": CHUNK} | arguments
    return training.fit(recipe, start, keys, per_run=own, files=files, **arguments)


def test_what_is_not_finite_is_named_with_step_and_leaf_and_nothing_else_is(tmp_path):
    rows = list(product(range(len(PLACES)), (7, 19), (np.nan, np.inf, -np.inf)))
    large = [(list(PLACES).index("loss"), 7, 1e100)]  # which is no divergence
    files = training.Files(tmp_path / "fit.ckpt", tmp_path / "log.jsonl")
    run = train(rows + large, files)
    calm = train(large, watch=lambda params: params, chunk=1).history["watch"]
    _, kept = checkpoints.unpacked(files.checkpoint.read_bytes(), files.checkpoint)
    for r, (place, step, _) in enumerate(rows):
        assert run.status[r] == Status("diverged", step, [*PLACES.values()][place])
        assert all(f"({number})" in run.status[r].advice for number in (1, 2, 3))
        for name in "ab":
            np.testing.assert_allclose(run.params[name][r], calm[name][0, step], rtol=1e-12)
            np.testing.assert_array_equal(kept[f".state.params['{name}']"][r], run.params[name][r])
    assert run.status[-1].kind != "diverged"
    lines = map(json.loads, files.log.read_text().splitlines())
    told = {line["step"]: line["diverged"] for line in lines}
    assert told == {10: len(rows) // 2, 20: len(rows), 30: len(rows)}
