"""What `label_clipping` compares classifiers with, and what it reads from their answers."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from scipy.integrate import quad
from scipy.stats import norm

from experiments.clipping.clipped_models import spec_of
from experiments.clipping.label_clipping import compute
from experiments.clipping.label_clipping.compute import answers, average_accuracy, bayes_accuracy
from experiments.clipping.label_clipping.config import TIERS
from experiments.clipping.trained_models import own_prompts
from experiments.models.model import Model, init
from experiments.models.tasks import distribution
from lsa_lab.analyses import clipping
from lsa_lab.prompts import Prompt

CONFIG = TIERS["smoke"]

X, Y, NOISE, SPREAD = np.array([0.4, -1.1, 0.7]), np.array([1.0, 1.0, -1.0]), 0.5, 2.0


def posterior_probability(noise=NOISE):
    """P(w > 0 | three demonstrations) of one covariate, by quadrature."""

    def density(w):
        return norm.pdf(w, scale=SPREAD) * norm.cdf(Y * X * w / noise).prod()

    return quad(density, 0, 12)[0] / quad(density, -12, 12)[0]


def test_the_bayes_rule_is_that_of_quadrature():
    prompt = Prompt(X[:, None], Y, np.ones(1), np.ones(()))
    batch = jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf)[None], 64, 0), prompt)
    means = np.asarray(compute.gibbs_probabilities(jax.random.key(0), batch, 500, NOISE, SPREAD))
    standard_error = means.std() / 8
    assert abs(means.mean() - posterior_probability()) < 4 * standard_error < 0.02
    assert abs(means.mean() - posterior_probability(3 * NOISE)) > 4 * standard_error  # control


def test_answers_beyond_the_labels_are_sure():
    np.testing.assert_allclose(
        compute.entropy(np.array([0.5, 0.25, 1.2, -0.1])), [1, 0.8113, 0, 0], atol=1e-4
    )


def test_readings_are_of_each_run_and_edit():
    batch = Prompt(None, None, None, np.array([[1.0, -1.0, 1.0, -1.0]] * 2))
    right, wrong = batch.y_query, -batch.y_query
    values = compute.read(np.stack([right, wrong], axis=1), batch)
    assert values["accuracy"].tolist() == values["auc"].tolist() == [[1, 0], [1, 0]]


def test_one_linear_layer_is_right_where_the_sign_of_its_sum_is():
    rng = np.random.default_rng(0)
    x, query = rng.normal(size=(2, 9, 3, 2)), rng.normal(size=(2, 9, 2))
    y, target = np.sign(rng.normal(size=(2, 9, 3))), np.sign(rng.normal(size=(2, 9)))
    right = np.zeros(2)
    for run, b in np.ndindex(2, 9):
        answer = sum(y[run, b, i] * (x[run, b, i] @ query[run, b]) for i in range(3))
        right[run] += (answer > 0) == (target[run, b] > 0)
    batch = Prompt(*map(jnp.asarray, (x, y, query, target)))
    np.testing.assert_allclose(average_accuracy(batch), right / 9)


def test_the_bayes_rule_is_judged_run_by_run():
    """Along one covariate the sign of one sure demonstration is that of the query; the first run
    has no wrong label, the second one in four."""
    x, y = np.ones((2, 4, 1, 1)), np.ones((2, 4, 1))
    target = np.array([[1.0, 1, 1, 1], [1, 1, 1, -1]])
    arrays = (x, y, np.ones((2, 4, 1)), target)
    batch = Prompt(*(jnp.asarray(each, jnp.float32) for each in arrays))
    accuracy = bayes_accuracy(CONFIG, jax.random.key(1), batch)
    np.testing.assert_allclose(accuracy, [1, 0.75])


def test_answers_are_of_the_whole_model_and_then_of_each_edit():
    spec = spec_of(CONFIG)
    task = distribution(spec.task, dtype=jnp.float32)
    params = jax.jit(jax.vmap(partial(init, spec)))(jax.random.split(jax.random.key(2), 2))
    batch = own_prompts(jax.random.key(3), task, 2, 4)
    edits = [clipping.Edit(0, "mlp", 0.5), clipping.Edit(1, "attention", clipping.DROP)]
    table = answers(spec, params, edits, batch)
    predict = jax.jit(lambda params, batch: Model(spec, params).predict(batch))
    for run in range(2):
        own, prompts = jax.tree.map(lambda leaf, run=run: leaf[run], (params, batch))
        models = [own, *(clipping.clip(own, e.layers, e.modules, e.rate) for e in edits)]
        expected = np.stack([predict(model, prompts) for model in models])
        np.testing.assert_allclose(table[run], expected, rtol=1e-4, atol=1e-5)
        assert np.abs(np.diff(expected, axis=0)).max(1).min() > 1e-3
