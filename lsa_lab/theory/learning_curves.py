"""Closed learning curves of layers that read one demonstration after the other.

x is N(0, I_d), y = w·x + ε, E |w|² = 1, and ε has variance σ² (``noise_var``). A curve holds the
excess risk r_t = E |ŵ_t - w|² after t = 0, 1, ..., n demonstrations, without sampling. The layers
are those of ``models.recurrent`` (docs/theory, "The state as a regression"). With ``drift`` ρ the
task moves after every demonstration, w_{t+1} = ρ w_t + √((1 - ρ²)/d) z_t, and r_t =
E |ŵ_t - w_{t+1}|²; ``theory.drift`` has the limits of these curves.

Every function takes n ≥ 0, d ≥ 1 and ``noise_var``, and returns the curve [n+1]. A number outside
its domain raises ValueError (``theory.domains``).
"""

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from lsa_lab.arguments import Real, is_concrete
from lsa_lab.theory.domains import NOISY_PENALTY, UNIT_STEP, check, check_domain, check_sizes
from lsa_lab.theory.drift import mean_length
from lsa_lab.theory.recursions import avoid_zero, constant_steps, iterate
from lsa_lab.theory.wishart import wishart_quadrature


def additive(n: int, d: int, noise_var: Real, drift: Real = 1.0) -> Array:  # [n+1]
    """Return the curve of linear attention, ŵ_t = c_t Σ_i y_i x_i with the best c_t:

        1/r_t = 1 + t/(d + 1 + dσ²)

    Every demonstration adds precision and pays for the interference of all of w (derived here;
    the one-layer optimum of Zhang et al. 2306.09927 at every length). With ``drift`` ρ the layer is
    Σ_i ω_i y_i x_i with the best ω, a filter whose noise has the variance a = d + 1 + dσ²:

        r_t = ρ² a r_{t-1}/(r_{t-1} + a) + 1 - ρ²
    """
    n, d = check_sizes(n, d, noise_var, least=0)
    check(drift=drift)
    noise, rho = d * jnp.asarray(noise_var, float), jnp.asarray(drift, float)
    return iterate(_additive_step, jnp.ones(()), jnp.zeros(n), d + 1 + noise, rho)


def _additive_step(r: Array, _: Array, noise: Array, rho: Array) -> Array:
    return rho**2 * (r - r**2 / (r + noise)) + 1 - rho**2


def delta_rule(n: int, d: int, noise_var: ArrayLike) -> Array:  # [n+1]
    """Return the curve of ŵ ← ŵ + β_t (y - ŵ·x)x with the best steps β_t = r/((d + 2)r + dσ²):

        1/r_t = 1/r_{t-1} + 1/((d + 1) r_{t-1} + dσ_t²)

    ``noise_var`` may be an array [n], for labels of different noise; the noisiest first is then the
    best order (derived here; least mean squares, Widrow and Hoff 1960).
    """
    n, d = check_sizes(n, d, noise_var, least=0)
    if jnp.shape(noise_var) not in ((), (n,)):
        raise ValueError(f"noise_var has shape {jnp.shape(noise_var)}: expected [] or [n] = [{n}]")
    noise = jnp.broadcast_to(jnp.asarray(noise_var, float), (n,))
    return iterate(_delta_step, jnp.ones(()), d * noise, d + 2.0)


def _delta_step(r: Array, noise: Array, factor: Array) -> Array:
    return r - r**2 / avoid_zero(factor * r + noise)


def implicit(n: int, d: int, noise_var: Real) -> Array:  # [n+1]
    """Return the curve of the delta rule with the best of all steps that see |x|²,
    β = r/(|x|²r + dσ²):

        r_t = r_{t-1} - E[(r/d)² l/(lr/d + σ²)],  l ~ χ²_d, r = r_{t-1}

    After one demonstration it is the Bayes rule (derived here; the implicit step of Longhorn,
    2407.14207, has this form). The expectation is a sum over nodes, to about 1e-13.
    """
    n, d = check_sizes(n, d, noise_var, least=0)
    nodes, masses = map(jnp.asarray, wishart_quadrature(1, d))  # of |x|², a χ²_d variable
    noise = jnp.asarray(noise_var, float)
    return iterate(_implicit_step, jnp.ones(()), jnp.zeros(n), nodes / d, masses / d, noise)


def _implicit_step(r: Array, _: Array, nodes: Array, masses: Array, noise: Array) -> Array:
    return r - (masses * r**2 * nodes / avoid_zero(nodes * r + noise)).sum()


def delta(
    n: int, d: int, noise_var: Real, step: Real | None = None, drift: Real = 1.0
) -> Array:  # [n+1]
    """Return the curve of DeltaNet, with keys and labels divided by |x|,
    ŵ ← ŵ + β (y/|x| - ŵ·u)u, u = x/|x|:

        r' = (1 - β(2 - β)/d) r + β² σ²/(d - 2)

    It ends at βσ²d/((2 - β)(d - 2)). Without ``step`` the best schedule is β = r/(r + dσ²/(d - 2)):
    r' = r - r²/(d(r + dσ²/(d - 2))), which tends to (d/(d - 2)) σ²d/t (derived here; DeltaNet:
    Yang et al. 2406.06484). With noise d > 2, since 1/|x|² has no mean below; with ``drift`` a step
    is needed.
    """
    n, d = check_sizes(n, d, noise_var, least=0)
    if step is not None:
        return gated_delta(n, d, noise_var, step, 1.0, drift=drift)
    if not is_concrete(drift) or np.any(np.asarray(drift) != 1):
        raise ValueError("drift without a step: the best schedule is known without drift alone")
    noise = jnp.broadcast_to(jnp.asarray(d**2 * _normalised_noise(d, noise_var), float), (n,))
    return iterate(_delta_step, jnp.ones(()), noise, float(d))


def gated_delta(
    n: int,
    d: int,
    noise_var: Real,
    step: Real,
    gate: Real,
    scale: Real | None = None,
    drift: Real = 1.0,
) -> Array:  # [n+1]
    """Return the curve of Gated DeltaNet, ŵ ← gŵ + β (y/|x| - gŵ·u)u, by m = E ŵ·w, q = E |ŵ|²:

        m' = (1 - β/d) g m + β/d
        q' = (1 - β(2 - β)/d) g² q + 2β(1 - β) g m/d + β²/d + β²σ²/(d - 2)
        r = q - 2m + 1

    (derived here; Gated DeltaNet: Yang et al. 2412.06464). A gate below 1 forgets: with noise the
    best constant gate and step depend on the length.

    Args:
        n, d, noise_var: as above; without ``scale`` and with noise d > 2.
        step: β in (0, 2).
        gate: g in [0, 1]; at 1 the layer is ``delta``.
        scale: c for labels cy in place of y/|x|, as in layers without a division. The length of x
            is then a noise beside ε: with κ = c E |x| the added terms are κβ/d in m' and
            2κβ(1 - β) g m/d and β²c²(1 + σ²) in q'.
        drift: ρ; it multiplies m'.

    Returns:
        The curve; infinite from where E |ŵ|² has no floating-point number.
    """
    n, d = check_sizes(n, d, noise_var, least=0)
    check_domain("step", step, UNIT_STEP)
    product: Real = 1 / d
    if scale is None:
        square = 1 / d + _normalised_noise(d, noise_var)
    else:
        check(scale=scale)
        scale, noise_var = jnp.asarray(scale, float), jnp.asarray(noise_var, float)
        product, square = scale * mean_length(d) / d, scale**2 * (1 + noise_var)
    return constant_steps(n, step, gate, drift, (1 / d, 1 / d), (product, product, square))


def lms(
    n: int,
    d: int,
    noise_var: Real,
    step: Real,
    gate: Real = 1.0,
    scale: Real = 1.0,
    drift: Real = 1.0,
) -> Array:  # [n+1]
    """Return the curve of least mean squares, ŵ ← gŵ + β (cy - gŵ·x)x, by m = E ŵ·w, q = E |ŵ|²:

        m' = (1 - β) g m + βc
        q' = (1 - 2β + β²(d + 2)) g² q + 2βc(1 - β(d + 2)) g m + β²c²(d + 2 + dσ²)
        r = q - 2m + 1

    It falls if β(d + 2) < 2; at g = c = 1 it ends at βdσ²/(2 - β(d + 2)) (classical; Widrow and
    Hoff 1960).

    Args:
        n, d, noise_var: as above.
        step: β > 0.
        gate: g in [0, 1].
        scale: c, the factor of the labels.
        drift: ρ; it multiplies m'.

    Returns:
        The curve; infinite from where E |ŵ|² has no floating-point number.
    """
    n, d = check_sizes(n, d, noise_var, least=0)
    check(step=step, scale=scale)
    scale, noise_var = jnp.asarray(scale, float), jnp.asarray(noise_var, float)
    labels = scale, scale * (d + 2), scale**2 * (d + 2 + d * noise_var)
    return constant_steps(n, step, gate, drift, (1.0, d + 2.0), labels)


def ridge(n: int, d: int, noise_var: float, penalty: float | None = None) -> np.ndarray:  # [n+1]
    """Return the curve of ridge regression with ``penalty`` λ beside XᵀX:

        r_t = E (1/d) Σ_k (λ² + dσ² x_k)/(x_k + λ)²,  x_k the eigenvalues of XᵀX

    λ = dσ² by default, the Bayes rule for w ~ N(0, I/d). This is what a mesa layer computes (von
    Oswald et al. 2309.05858, MesaNet 2506.05233). Exact, by quadrature over the expected density of
    eigenvalues, on the host in float64.
    """
    n, d = check_sizes(n, d, noise_var, least=0)
    noise_var = float(noise_var)
    penalty = d * noise_var if penalty is None else float(penalty)
    check(penalty=penalty)
    if noise_var > 0:
        check_domain("penalty", penalty, NOISY_PENALTY)
    curve = [1.0]
    for t in range(1, n + 1):
        nodes, counts = wishart_quadrature(t, d)
        unseen = max(d - t, 0) / d  # eigenvalues that are zero keep all of w
        filtered = (penalty**2 + d * noise_var * nodes) / (nodes + penalty) ** 2
        curve.append(unseen + float(counts @ filtered) / d)
    return np.array(curve)


def _normalised_noise(d: int, noise_var: Real) -> Real:
    """Return E ε²/|x|² = σ²/(d - 2)."""
    if d > 2:
        return jnp.asarray(noise_var, float) / (d - 2)
    if is_concrete(noise_var) and not noise_var > 0:
        return 0.0
    raise ValueError(f"d = {d} with noise: labels divided by |x| have no variance; take d > 2")
