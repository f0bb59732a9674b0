"""How the weights of a decoder lie on several devices: heads, MLP rows and words are shared out.

    params = place(params, mesh())

and every function of ``lm`` runs as before: XLA adds one sum over devices to each attention and
each MLP (the tensor parallelism of Shoeybi et al. 1909.08053).
"""

from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from lsa_lab.lm.weights import Params

AXIS = "model"

# The axis of each leaf that devices share; leaves that are not named here are replicated.
_SHARED = {
    "embedding": 0,
    "unembedding": 0,
    "unembedding_bias": 0,
    "w_q": 1,
    "w_k": 1,
    "w_v": 1,
    "w_o": 1,
    "b_q": 1,
    "b_k": 1,
    "b_v": 1,
    "mlp_in": 1,
    "mlp_gate": 1,
    "mlp_in_bias": 1,
    "mlp_out": 2,
}


def mesh() -> Mesh:
    """All devices in a row."""
    return jax.make_mesh((jax.device_count(),), (AXIS,), axis_types=(AxisType.Auto,))


def specs(params: Params, num_devices: int) -> Any:
    """The PartitionSpec of each leaf. One whose axis the devices do not divide is replicated."""

    def spec(name: str, leaf: jax.Array | None) -> PartitionSpec | None:
        if leaf is None:
            return None
        axis = _SHARED.get(name)
        if axis is None or leaf.shape[axis] % num_devices:
            return PartitionSpec()
        return PartitionSpec(*[None] * axis, AXIS)

    return params.replace(**{name: spec(name, leaf) for name, leaf in vars(params).items()})


def place(params: Params, devices: Mesh) -> Params:
    """The same weights, shared out over the devices of a mesh with the axis "model"."""
    if AXIS not in devices.shape:
        raise ValueError(
            f"the mesh has the axes {tuple(devices.shape)}; one of them must be {AXIS!r}: take "
            "sharding.mesh()"
        )
    wanted = specs(params, devices.shape[AXIS])
    leaves = {
        name: None
        if leaf is None
        else jax.device_put(leaf, NamedSharding(devices, getattr(wanted, name)))
        for name, leaf in vars(params).items()
    }
    return params.replace(**leaves)
