"""The explorer's model in two limits, and its panels at the ends of the sliders."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer import app
from explorer.app import Controls
from lsa_lab import prompts
from lsa_lab.analyses.clipping import kept_rank
from lsa_lab.models import transformer
from lsa_lab.models.trace import predict

compute, sample_prompts = jax.jit(app.compute_views), jax.jit(app.sample_prompts)


@pytest.mark.slow
def test_the_model_tends_to_descent_in_the_first_order_of_its_sharpness():
    """softmax(ε s)/ε - 1/nε = (s - s̄)/n + ε ((s - s̄)² - var s)/2n + O(ε²).

    The second term is at most ε |s - s̄|/2 of the first, in each of L layers. With |s - s̄| ≤ S the
    relative difference of the risks is at most L ε S/2, and it halves with ε up to L ε S of it.
    """
    sharpness, depth = 0.005, Controls().depth
    controls = Controls(sharpness=sharpness)
    seen, half = compute(controls), compute(Controls(sharpness=sharpness / 2))
    largest = controls.scale * jnp.abs(sample_prompts(controls).x).max() ** 2
    bound = depth * sharpness * largest
    assert bound < 0.25  # a larger bound tests nothing
    np.testing.assert_allclose(seen["risk"], seen["descent"], rtol=bound / 2)
    whole, halved = (views["risk"] - views["descent"] for views in (seen, half))
    ratio = (whole / halved)[1 : depth + 1]
    np.testing.assert_allclose(ratio, 2, rtol=bound)


@jax.jit
def risk_of_three(controls):
    batch = app.sample_prompts(controls)
    cut = batch.replace(x=batch.x[:, :3], y=batch.y[:, :3])
    params = app.pair_heads(app.select_weights(controls), controls.sharpness)
    mask = jnp.where(jnp.arange(app.LAYERS) < controls.depth, 1.0, 0.0)[:, None]
    mask = jnp.broadcast_to(mask, (app.LAYERS, 2 * app.HEADS))

    def prediction(tokens):
        return predict(transformer.forward(params, tokens, app.PAIRED, mask))

    return jnp.mean((jax.vmap(prediction)(jax.vmap(prompts.tokens)(cut)) - batch.y_query) ** 2)


@pytest.mark.slow
@pytest.mark.parametrize("random_weights", [False, True])
def test_repeated_demonstrations_are_the_shorter_prompt(random_weights):
    controls = Controls(shots=3, sharpness=0.7, random_weights=random_weights)
    seen = compute(controls)
    np.testing.assert_allclose(seen["risk"][-1], risk_of_three(controls), rtol=1e-10)
    assert seen["flow"][:, :3].all()
    assert not seen["flow"][:, 3:].any()


@pytest.mark.parametrize("rate", [0.0, 0.4, 0.8])
def test_the_curve_over_ranks_passes_through_the_model(rate):
    controls = Controls(random_weights=True, scale=1.0, rate=rate, layer=2, matrix=2)
    seen = compute(controls)
    at_rank = seen["clipped"][kept_rank(app.WIDTH, rate) - 1]
    np.testing.assert_allclose(at_rank, seen["risk"][-1], rtol=1e-10)
    assert len(set(np.asarray(seen["clipped"]))) == app.WIDTH


LARGEST = {"scale": 2.0, "depth": 6, "sharpness": 0.01}


@pytest.mark.parametrize(
    "changed", [LARGEST, LARGEST | {"random_weights": True}, {"shots": 1}, {"gates": np.zeros(4)}]
)
def test_panels_are_finite_at_the_ends_of_the_sliders(changed):
    controls = Controls(**changed)
    for figure, caption in app.draw_panels(controls, compute(controls)):
        figure.draw_without_rendering()
        assert "nan" not in caption
        assert "inf" not in caption


def test_every_cell_runs():
    _, definitions = app.app.run()
    assert set(definitions["sliders"].value) == {*Controls._fields, "removed"} - {"gates"}
