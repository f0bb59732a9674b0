"""The experiments on gradients of demonstrations: their measures beside plain loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from draws import descend
from experiments.flow import amplification, bayes_flows, flow_factors, grads, measures
from experiments.models.model import Model, init
from experiments.models.named import tiny
from lsa_lab.models import linear_attention
from lsa_lab.prompts import tokens

SPEC = tiny("linear attention")  # prompts of four demonstrations in two dimensions


def square_gradients(pool, x_query, prior):
    """Return |∂ŷ/∂e_i|² and the rest of |∂a/∂e_i|² of one layer with step 1, by its definition."""
    e = pool.shape[1]
    w_kq, w_pv = np.diag([1.0] * (e - 1) + [0.0]), np.zeros((e, e))
    w_pv[-1] = [*prior, -1]
    query = w_kq @ [*x_query, 0]
    jacobians = [(row @ query) * w_pv + np.outer(w_pv @ row, query) for row in pool]
    return [(jacobian**2).sum() for jacobian in jacobians]


def test_grads_recomputed_takes_what_is_learnt_for_the_prior():
    config = grads.Config(3, query_density=1.0, pool=6, shots=3, depth=40, queries=5, runs=1)
    cases = grads.draw_cases(np.random.default_rng(0), config, 1.0, 1, 0.5, False)
    select = jax.jit(grads.select_all, static_argnums=1)
    for q in range(5):
        case = grads.Case(*(leaf[q] for leaf in cases))
        picks = dict(zip(grads.RULES, np.asarray(select(case, config)), strict=True))
        once = square_gradients(case.pool, case.x_query, case.prior)
        assert picks["GradS"].tolist() == np.argsort(once)[: -config.shots - 1 : -1].tolist()
        chosen, prior = [], case.prior
        while len(chosen) < config.shots:
            sizes = square_gradients(case.pool, case.x_query, prior)
            chosen.append(int(np.argmax([-1 if i in chosen else s for i, s in enumerate(sizes)])))
            x, y = case.pool[chosen, :-1], case.pool[chosen, -1]
            step = len(x) / np.linalg.norm(x, ord=2) ** 2
            prior = descend(x, y, [step] * 40, case.prior)
        assert picks[grads.RECOMPUTED].tolist() == chosen


def test_the_last_gradient_of_a_model_is_that_of_its_prediction():
    params = jax.jit(init, static_argnums=0)(SPEC, jax.random.key(0))
    model = Model(SPEC, params).cast_float64()
    prompt = jax.tree.map(lambda x: x[0, 0].astype(float), measures.draw_prompts(0, SPEC, 8))

    def predict(rows):
        changed = prompt.replace(x=rows[:, :-1], y=rows[:, -1])
        return model.predict(jax.tree.map(lambda leaf: leaf[None], changed))[0]

    expected = jax.jit(jax.grad(predict))(tokens(prompt)[:-1])
    gradients = jax.jit(measures.compute_gradients)(model, prompt)
    assert len(gradients) == SPEC.architecture.depth
    np.testing.assert_allclose(gradients[-1], expected, rtol=1e-9, atol=1e-12)


def test_disparity_and_growth_of_a_random_stack_are_those_of_loops():
    rng, runs, count, d, depth = np.random.default_rng(0), 2, 5, 2, 3
    pairs = amplification.draw_pairs(rng, runs, count, d)
    params = amplification.draw_linear(rng, runs, depth, d)

    def run(params, rows):
        return linear_attention.forward(params, rows, keys="all")

    @jax.jit
    def end(demonstration, query, params):
        return run(params, jnp.stack([demonstration, query])).stream[1:, -1]

    measured = amplification.measure_random(run, params, pairs)
    for r in range(runs):
        logs = np.empty((count, depth))
        own = linear_attention.Params(params.w_kq[r], params.w_pv[r])
        for b in range(count):
            sizes = []
            for i in range(2):
                demonstration = np.append(pairs.x[r, b, i], pairs.y[r, b, i])
                jacobian = jax.jacrev(end)(demonstration, np.append(pairs.x_query[r, b], 0), own)
                sizes.append(np.linalg.norm(jacobian, axis=(1, 2)))
            logs[b] = np.log(sizes[0] / sizes[1])
        np.testing.assert_allclose(measured["disparity"][r], np.median(np.abs(logs), axis=0))
        grows = np.abs(logs[:, 0]) < np.sign(logs[:, 0]) * logs[:, -1]
        assert measured["grows"][r] == pytest.approx(grows.mean())


def test_effects_of_one_demonstration_are_their_closed_forms():
    config = flow_factors.Config(4, (2,), draws=50, runs=1)
    prompts, priors = flow_factors.draw_prompts(np.random.default_rng(0), config, 2)
    effects = flow_factors.measure_effects(prompts, priors, np.asarray(0.3), 25)
    for b in range(50):
        x, y, x_query = prompts.x[b, 0], prompts.y[b, 0], prompts.x_query[b]
        s, r = x @ x_query, y - priors[b] @ x
        missing = prompts.y_query[b] - priors[b] @ x_query
        expected = {
            "s": s,
            "r": r,
            "gradient": 0.3 * np.linalg.norm(np.append(r * x_query - s * priors[b], s)),
            "gradient × input": abs(0.6 * s * r),
            "contribution": 0.3 * s * r,
            "before": missing**2,
            "after": (missing - 0.3 * s * r) ** 2,
        }
        for name, value in expected.items():
            np.testing.assert_allclose(effects[name][b], value, rtol=1e-9, atol=1e-12)


def test_the_bayes_rule_moves_by_gradient_times_surprise():
    prompts = measures.draw_prompts(0, SPEC, 8)
    exact = jax.tree.map(lambda leaf: leaf.astype(float), prompts)
    measured = measures.measure_bayes(exact, 0.25)
    moved = np.abs(measured["after"] - measured["before"])
    np.testing.assert_allclose(moved, measured["gradient"] * measured["surprise"], rtol=1e-9)


def test_a_product_and_a_sum_are_found_and_correlations_are_those_of_log_sizes():
    rows, columns = np.array([1.0, 2.0, 4.0]), np.array([1.0, -1.0, 3.0])
    product = measures.fit_grid(np.outer(rows, columns))
    total = measures.fit_grid(rows[:, None] + columns)
    assert [product[0], total[1]] == pytest.approx([1, 1])
    assert max(product[1], total[0]) < 0.99
    gradients = np.random.default_rng(0).normal(size=(3, 5, 2))
    expected = np.corrcoef(np.log(np.linalg.norm(gradients, axis=-1)))[2, :2]
    measured = measures.correlate_sizes(gradients[:2], gradients[2])
    np.testing.assert_allclose(measured, expected, rtol=1e-9)


RULES = bayes_flows.Config(prompts=200, descents=(), penalties=(0.01, 100.0), runs=2)
NOISE_VAR = RULES.noise_std**2


@pytest.fixture(scope="module")
def compared():
    """Prompts, and what is measured of two rules on them."""
    spec = bayes_flows.make_spec(RULES, "linear", "dense", "depth 2")
    return bayes_flows.draw_prompts(RULES, spec), bayes_flows.compare_rules(RULES, spec)


def answer_by_bayes(prompt):
    return measures.answer_by_bayes(prompt, NOISE_VAR)


def test_the_mean_square_of_a_difference_of_gradients_is_that_over_labels(compared):
    """The answers of ridge regression and of the Bayes rule are linear in the labels."""
    rule = bayes_flows.list_rules(RULES)["ridge 100"]

    def mean_square(prompt):
        # Over the 2n labels ±√n root e_i the mean square is that over N(0, C).
        root = jnp.linalg.cholesky(prompt.x @ prompt.x.T + NOISE_VAR * jnp.eye(RULES.n))

        def difference(column):
            labelled = prompt.replace(y=RULES.n**0.5 * column)
            return rule(labelled) - answer_by_bayes(labelled)

        return (jax.vmap(difference)(root.T) ** 2).mean()

    expected = jax.jit(jax.vmap(jax.vmap(mean_square)))(compared[0])
    np.testing.assert_allclose(compared[1]["gradients"][1], expected.mean(1), rtol=1e-9)


def test_correlations_tell_rules_apart(compared):
    correlations = compared[1]["correlation"].mean(1)
    assert correlations[0] > 0.95
    assert correlations[1] < 0.5
