"""Truncating W_MLP never enlarges |W_MLP ΔW|_F; of a block with residuals it can.

Papers: A2, Example 4. docs/theory, "Two readings of the MLP".
"""

import numpy as np

from draws import jit_numpy, seed_and
from lsa_lab.analyses import clipping, implicit_gd

E, N = 6, 8
truncate = jit_numpy(clipping.truncate)


def growth(seed, scale, share, read):
    """The update's size after truncation over that before, less one."""
    rng = np.random.default_rng(seed)
    weights, rows = rng.normal(size=(3, E, E)) / 3, rng.normal(size=(N, E))
    update = implicit_gd.implicit_update(*weights, rows)
    mlp = scale * rng.normal(size=(E, E))
    before, after = (np.linalg.norm(read(w, update)) for w in (mlp, truncate(mlp, share)))
    return after / before - 1


@seed_and(scale=(0.01, 10), share=(0, 0.999))
def test_what_an_mlp_makes_of_an_update_shrinks_with_it(seed, scale, share):
    assert growth(seed, scale, share, implicit_gd.relaxed_mlp_update) < 1e-12


def test_control_a_block_with_residuals_is_found_to_grow():
    grown = [growth(seed, 0.2, 0.5, implicit_gd.block_mlp_update) for seed in range(50)]
    assert max(grown) > 0.01
