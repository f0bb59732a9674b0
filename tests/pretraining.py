"""Layers fitted to finitely many prompts, for the theorem tests on their risks.

``extrapolated_risks`` draws prompts and fits layers; ``stated_risks`` writes out docs/theory,
"Pretraining on finite data", for many drawn tasks. A place is (α, κ, τ, ρ); a spectrum is a pair of
numbers, each the variance of half of the coordinates.
"""

import functools

import numpy as np
from scipy.optimize import brentq

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
