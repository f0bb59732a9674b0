"""Expected density of the eigenvalues of XᵀX, X [n, d] with independent N(0, 1) entries."""

import functools
import math

import numpy as np

_LARGEST = 300  # above it the smallest Laguerre function leaves the range of float64
_NODES = 24  # Gauss-Legendre nodes in a panel
SPLITS = 20  # of the first panel, by fours: enough for 1/(x + κ) with κ above 1e-24
_TAIL = 9.0  # so far outside the support the density of √x is below 1e-20


@functools.lru_cache(maxsize=256)
def wishart_quadrature(
    n: int, d: int, splits: int = SPLITS, degree: int = 0
) -> tuple[np.ndarray, np.ndarray]:  # [q], [q]
    """Return nodes x and weights m with E Σ_k f(x_k) = Σ_q m_q f(x_q), without sampling; x_k are
    the min(n, d) positive eigenvalues of XᵀX.

    They are distributed as Π_k v(x_k) Π_{j<k} |x_j - x_k|, v = x^{(a-1)/2} e^{-x/2}, a = |n - d|,
    K = min(n, d). Take ψ_j = p_j v with deg p_j = j < K, (εψ)(x) = ½ ∫ sgn(x - y) ψ(y) dy and the
    antisymmetric A_ij = 2 ∫ ψ_j εψ_i. By de Bruijn's integral the normalisation is a Pfaffian of A,
    and its logarithmic derivative in v is the density of eigenvalues

        ρ(x) = 2 Σ_ij (A⁻¹)_ji ψ_j(x) (εψ_i)(x),

    with, for odd K, one more row and column c_i = ∫ ψ_i in A and one more term Σ_i (A⁻¹)_Ki ψ_i(x).
    The orthonormal Laguerre functions of x^a e^{-x}, over √x, keep A well conditioned (de Bruijn
    1955; Adler, Forrester, Nagao and van Moerbeke, solv-int/9907001; assembled here). For functions
    f that grow like x^degree the nodes reach further out. Raises ValueError for min(n, d) > 300.
    """
    size = min(n, d)
    if size > _LARGEST:
        raise ValueError(f"min(n, d) = {size}: the eigenvalue density is computed up to {_LARGEST}")
    roots, weights, halves = _panels(n, d, splits, degree)
    psi = 2 * _laguerre_functions(size, abs(n - d), roots)  # dx/√x = 2 du with x = u²
    integrals, totals = _integrate(psi, halves)
    centred = integrals - totals[:, None, None] / 2
    pairing = 2 * np.tensordot(centred, psi * weights, axes=([1, 2], [1, 2]))
    pairing = (pairing - pairing.T) / 2
    if size % 2:
        pairing = np.block([[pairing, totals[:, None]], [-totals[None], np.zeros((1, 1))]])
    inverse = np.linalg.inv(pairing)
    density = 2 * (np.tensordot(inverse[:size, :size].T, psi, axes=1) * centred).sum(0)
    if size % 2:
        density = density + np.tensordot(inverse[size, :size], psi, axes=1)
    nodes, counts = (roots**2).ravel(), (density * weights).ravel()
    nodes.flags.writeable = counts.flags.writeable = False  # the cache returns these arrays
    return nodes, counts


def _panels(
    n: int, d: int, splits: int, degree: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # [p, g], [p, g], [p]
    """Return Gauss-Legendre panels for u = √x over the support |√n - √d| to √n + √d and its tails:
    even ones with about four zeros of ψ each, the first split by fours to resolve 1/(x + κ) at a κ
    not far below 16^-splits."""
    lower = max(0.0, abs(math.sqrt(n) - math.sqrt(d)) - _TAIL)
    upper = math.sqrt((math.sqrt(n) + math.sqrt(d)) ** 2 + 2 * degree) + _TAIL  # x^degree e^{-x/2}
    count = math.ceil((upper - lower) * max(1.0, math.sqrt(min(n, d)) / 8))
    even = np.linspace(lower, upper, count + 1)
    first = lower + (even[1] - lower) * 4.0 ** np.arange(-splits, 0)
    edges = np.concatenate([[lower], first, even[1:]])
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    halves = np.diff(edges) / 2
    middles = edges[:-1] + halves
    return middles[:, None] + halves[:, None] * nodes, halves[:, None] * weights, halves


def _laguerre_functions(size: int, a: int, roots: np.ndarray) -> np.ndarray:  # [size, p, g]
    """Return φ_j at x = u², orthonormal in x, from φ_0 = √(x^a e^{-x}/Γ(a+1)) by the recurrence

    √((j+1)(j+1+a)) φ_{j+1} = (2j + 1 + a - x) φ_j - √(j(j+a)) φ_{j-1}.
    """
    x = roots**2
    before, now = np.zeros_like(x), np.exp((a * np.log(x) - x - math.lgamma(a + 1)) / 2)
    functions = []
    for j in range(size):
        functions.append(now)
        after = (2 * j + 1 + a - x) * now - np.sqrt(j * (j + a)) * before
        before, now = now, after / np.sqrt((j + 1) * (j + 1 + a))
    return np.stack(functions)


def _integrate(values: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the integrals [size, p, g] from zero to every node, and [size] over all of them.

    In a panel f = Σ_k (k + ½) P_k Σ_i w_i P_k(t_i) f_i, (2k + 1) ∫_{-1}^t P_k = P_{k+1} - P_{k-1}.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    legendre = np.polynomial.legendre.legvander(nodes, _NODES)  # [g, g+1]
    lower = np.concatenate([-np.ones((_NODES, 1)), legendre[:, :-2]], axis=1)
    within = (legendre[:, 1:] - lower) / 2 @ (legendre[:, :-1].T * weights)  # [g, g]
    panels = halves * (values @ weights)  # [size, p]
    before = np.cumsum(panels, axis=1) - panels
    return before[..., None] + halves[:, None] * (values @ within.T), panels.sum(1)
