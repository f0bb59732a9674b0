"""What a selection is, and the steps that lead to it: the best addition, swap, and chance."""

import flax.struct
import jax.numpy as jnp
from jax import Array

TOLERANCE = 1e-6  # a swap must shorten the gap by this share of it
_ROUNDING = 32  # eps of what they were summed from: numbers that agree so far are tied


class Certificate(flax.struct.PyTreeNode):
    """What can be said of a subset without knowing the best one."""

    objective: Array  # []  the gap |mean over S - mean over the pool|
    best_swap: Array  # []  the smallest gap that one swap leads to
    random: Array  # []  root mean square gap of all subsets of this size, in closed form
    repeats: Array  # []  how many of the chosen have exactly the gradient of one chosen earlier

    @property
    def one_swap_optimal(self) -> Array:  # []
        """Whether no single swap lowers the gap by more than 1e-6 of it."""
        return self.best_swap >= (1 - TOLERANCE) * self.objective


class Selection(flax.struct.PyTreeNode):
    """The chosen demonstrations and how they were reached."""

    indices: Array  # [size]  in the order of choice; who is swapped in takes the leaver's place
    objective: Array  # []
    history: Array  # [size + swaps]  the gap after each addition and after each swap
    certificate: Certificate


def best_swap(squares: Array, total: Array, scores: Array, rows: Array, indices: Array) -> tuple:
    """The place i in the subset and the candidate j outside it with the shortest C - c_i + c_j."""
    entering, leaving = squares + 2 * scores, squares[indices] - 2 * scores[indices]
    change = entering[None] + leaving[:, None] - 2 * rows
    j = first(change.min(0).at[indices].set(jnp.inf), squares, total)
    return first(change[:, j], squares[indices], total), j


def first(change: Array, squares: Array, total: Array) -> Array:  # [m], [m], [p] -> []
    """The lowest index whose change of |C|² is the least, up to the rounding of |C + c|²."""
    length = jnp.sqrt(squares[change.argmin()])
    slack = _ROUNDING * jnp.finfo(change.dtype).eps * length * (length + jnp.linalg.norm(total))
    return (change <= change.min() + slack).argmax()


def random_gap(spread: Array, m: int, size: int) -> Array:  # [] -> []
    """Root mean square gap of all subsets of this size; ``spread`` is Σ_i |c_i|²."""
    return jnp.sqrt((1 - size / m) * spread / (max(m - 1, 1) * size))
