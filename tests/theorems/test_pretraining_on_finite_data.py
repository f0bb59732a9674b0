"""One layer fitted to N prompts over k tasks has a closed risk in high dimension, on tasks of its
own covariance (2405.11751) and of another (2509.26551).

Tasks are drawn from k fixed ones of covariance C; the layer is tested on T, and q and B hold the
means of C and of T. Layers are fitted to drawn prompts; a spectrum is a pair of numbers, each the
variance of half of the coordinates, and a place is (α, κ, τ, ρ). docs/theory, "Pretraining on
finite data", "Tasks of another covariance".
"""

import functools

import numpy as np
import pytest
from scipy.optimize import brentq

from draws import jit_numpy
from lsa_lab.theory import alignment, asymptotics

TRIALS = {10: 96, 20: 32}


def tasks_of(rng, d, spectrum, kappa):  # [k, d]
    return rng.standard_normal((round(kappa * d), d)) * np.sqrt(np.repeat(spectrum, d // 2))


def ridge_layer(features, outputs, penalty):
    """The ridge estimate; without a penalty, of the layers that err least the smallest. Both by the
    smaller of the two Gram matrices, which is regular."""
    few = len(features) < features.shape[1]
    gram = features @ features.T if few else features.T @ features
    gram = gram + penalty * np.eye(len(gram))
    if few:
        return features.T @ np.linalg.solve(gram, outputs)
    return np.linalg.solve(gram, features.T @ outputs)


@functools.cache
def fit_layers(d, train, place, penalty):  # [([d, d], [k, d])], layers and the tasks they saw
    alpha, kappa, tau, noise_var = place
    n, size, fitted = round(alpha * d), round(tau * d * d), []
    for trial in range(TRIALS[d]):
        rng = np.random.default_rng(trial)
        tasks = tasks_of(rng, d, train, kappa)
        x = rng.standard_normal((size, n + 1, d)) / d**0.5
        y = np.einsum("bnd,bd->bn", x, tasks[rng.integers(len(tasks), size=size)])
        y += np.sqrt(noise_var) * rng.standard_normal((size, n + 1))
        h = d / n * np.einsum("bn,bnd->bd", y[:, :n], x[:, :n])
        features = (x[:, n, :, None] * h[:, None, :]).reshape(size, -1)
        fitted.append((ridge_layer(features, y[:, n], penalty * size / d).reshape(d, d), tasks))
    return fitted


def simulated_risks(d, train, test, place, penalty):
    """The mean exact risks on tasks of ``test`` and of the pretraining, and standard errors."""
    n, noise_var, risks = round(place[0] * d), place[3], []
    for layer, tasks in fit_layers(d, train, place, penalty):
        risks.append([])
        for moment in (np.diag(np.repeat(test, d // 2)), tasks.T @ tasks / len(tasks)):
            size_of_w = np.trace(moment) / d
            read = (1 + 1 / n) * moment + d / n * (size_of_w + noise_var) * np.eye(d)  # E hhᵀ
            risk = noise_var + size_of_w + (layer * (layer @ read - 2 * moment)).sum() / d
            risks[-1].append(risk)
    return np.mean(risks, 0), np.std(risks, axis=0, ddof=1) / np.sqrt(len(risks))


def extrapolated_risks(train, test, place, penalty=0.0):
    """What differs at finite d falls like 1/d: twice the risks at 2d minus those at d."""
    ends = (simulated_risks(d, train, test, place, penalty) for d in TRIALS)
    (coarse, coarse_error), (fine, fine_error) = ends
    return 2 * fine - coarse, np.hypot(2 * fine_error, coarse_error)


def are_near(simulation, closed):
    risks, errors = simulation
    return (np.abs(risks - closed) < 3 * errors + 0.03 * np.asarray(closed)).all()


def stated_risks(train, test, place, penalty=0.0, *, q=None, spread=None, left=1.0, seen=None):
    """Risks on tasks of ``test`` and of the pretraining by sums over eigenvalues. Wrong are another
    q, another variance beside T in B, another factor of the ν²-term, and ν at another M(· + ν)."""
    (alpha, kappa, tau, noise_var), d = place, 400
    tasks = tasks_of(np.random.default_rng(0), d, train, kappa)
    r, vectors = np.linalg.eigh(tasks.T @ tasks / len(tasks))
    t = np.repeat(test, d // 2) @ vectors**2
    q = (np.mean(train) + noise_var) / alpha if q is None else q
    spread = (np.mean(test) + noise_var) / alpha if spread is None else spread
    seen = q if seen is None else seen

    def excess(nu):
        return (nu / (r + seen + nu)).mean() - 1 + tau - tau * penalty / nu

    nu = brentq(excess, 1e-9, 1e6) if tau < 1 or penalty else 0.0
    z = q + nu
    shrunk = left * nu**2 * (r**2 / (r + q) / (r + z) ** 2).mean()
    old = noise_var + q * (r / (r + q)).mean() + shrunk
    old /= 1 - ((r + q) ** 2 / (r + z) ** 2).mean() / tau
    gamma, free = r / (r + z), old / tau * (r + q) / (r + z) ** 2
    new = noise_var + (t - 2 * t * gamma + (t + spread) * (gamma**2 + free)).mean()
    return np.array([new, old])


SAME = (1.0, 1.0), (1.0, 1.0)
SMALL, LARGE_LAST = (0.6, 0.1), (0.3, 3.0)  # means .35 and 1.65: no mean is 1
CASES = [  # few prompts or many, few tasks or many; and terms that are wrong there
    (*SAME, (4.0, 1.0, 0.3, 0.1), [{"left": 0.0}, {"seen": 0.0}]),  # ν is missing
    (*SAME, (1.0, 0.5, 3.0, 1.0), [{"q": 1.0}]),  # without the noise
    (LARGE_LAST, LARGE_LAST, (0.5, 0.5, 3.0, 0.1), []),
    # (m + ρ)/α with the wrong mean m: of T, or 1, in q, and of C in B
    (LARGE_LAST, SMALL, (0.5, 0.5, 3.0, 0.1), [{"q": 0.45 / 0.5}]),
    (SMALL, LARGE_LAST, (0.5, 1.5, 3.0, 0.1), [{"q": 3.5}, {"q": 2.2}, {"spread": 0.9}]),
    (LARGE_LAST, SMALL, (2.0, 1.5, 0.3, 0.1), [{"spread": 1.75 / 2.0}]),
]
aligned_risk = jit_numpy(alignment.aligned_risk)


@pytest.mark.parametrize(("train", "test", "place", "wrong"), CASES)
def test_the_simulated_risks_approach_the_closed_form(train, test, place, wrong):
    closed = np.array(aligned_risk(np.array(train), np.array(test), *place))
    found = extrapolated_risks(train, test, place)
    assert are_near(found, closed)
    np.testing.assert_allclose(stated_risks(train, test, place), closed, rtol=0.01)
    same = aligned_risk(np.ones(2), np.ones(2), *place)
    np.testing.assert_allclose(same, asymptotics.ridgeless_risk(*place), rtol=1e-12)
    for terms in wrong:  # Controls
        assert not are_near(found, stated_risks(train, test, place, **terms))
    if (train, test) == SAME:  # and a new task in every prompt
        new = np.array(asymptotics.ridgeless_risk(place[0], np.inf, *place[2:]))
        assert not are_near(found, new)


def test_with_a_penalty_too_where_without_one_the_risk_is_infinite():
    place = (1.0, 0.5, 1.0, 0.1)  # τ = 1
    assert np.isinf(asymptotics.ridgeless_risk(*place)).all()
    closed = np.array(asymptotics.ridge_risk(*place, 0.3))
    assert are_near(extrapolated_risks(*SAME, place, 0.3), closed)
    np.testing.assert_allclose(stated_risks(*SAME, place, 0.3), closed, rtol=0.01)


def test_without_lack_of_prompts_tasks_are_memorised_up_to_one_a_dimension():
    for kappa in (0.3, 0.8, 1.5):
        found = asymptotics.ridgeless_risk(1e7, kappa, np.inf, 0.1)
        tasks = np.random.default_rng(0).standard_normal((round(kappa * 200), 200))
        missed = 200 - np.linalg.matrix_rank(tasks)  # dimensions of which no task says anything
        np.testing.assert_allclose(found, [0.1 + missed / 200, 0.1], atol=1e-5)
    # Control: where demonstrations grow as prompts do, noise adds to new tasks.
    for ratio, noise_var in ((1.0, 1.0), (0.2, 0.5)):
        new, _ = asymptotics.ridgeless_risk(1e7, 0.5, 1e7 / ratio, noise_var)
        added = noise_var * 0.5 * ratio / (1 + noise_var)
        np.testing.assert_allclose(new, noise_var + 0.5 + added, atol=1e-5)
