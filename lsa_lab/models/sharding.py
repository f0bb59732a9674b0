"""How a wide model lies on several devices: they share its heads and MLP rows, and the batch.

    devices = sharding.mesh(batch=2)  # of eight: two rows of four
    state = sharding.place((params, optimizer.init(params)), devices)
    batch = sharding.share(batch, devices)

and every function of these arrays runs as before: the four devices of a row share each attention
and each MLP, and XLA adds one sum over them to each (the tensor parallelism of Shoeybi et al.
1909.08053); the rows share the batch, and the gradient is summed over them. The last bits are not
those of one device, for the sums are taken in parts.
"""

from functools import partial
from typing import Any

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

BATCH, MODEL = "batch", "model"

# The axis that devices share, counted from the end, for axes such as runs may stand in front.
# Leaves of other names are on every device whole.
_SHARED = {
    "embedding": -2,  # [V, D]
    "unembedding": -2,  # [V, D]
    "unembedding_bias": -1,  # [V]
    "w_kq": -3,  # [L, H, e, e]
    "w_pv": -3,  # [L, H, e, e]
    "w_q": -3,  # [L, H, k, D]
    "w_k": -3,  # [L, H, k, D], and that of groups [L, G, k, D]
    "w_v": -3,  # [L, H, k, D], and that of groups [L, G, k, D]
    "w_o": -3,  # [L, H, D, k]
    "b_q": -2,  # [L, H, k]
    "b_k": -2,  # [L, H, k]
    "b_v": -2,  # [L, H, k]
    "mlp_in": -2,  # [L, m, D]
    "mlp_gate": -2,  # [L, m, D]
    "mlp_in_bias": -1,  # [L, m]
    "mlp_out": -1,  # [L, D, m]
}


def mesh(batch: int = 1) -> Mesh:
    """All devices in ``batch`` rows, which share the batch; those of a row share the weights."""
    count = jax.device_count()
    if batch < 1 or count % batch:
        raise ValueError(f"batch is {batch}: {count} devices do not make so many equal rows")
    return jax.make_mesh((batch, count // batch), (BATCH, MODEL), axis_types=(AxisType.Auto,) * 2)


def specs(tree: Any, num_devices: int) -> Any:
    """The PartitionSpec of each leaf, by its name: that of params, and of what an optimiser keeps
    for each of them.

    A leaf that has no such axis, or one that the devices do not divide, is replicated.
    """

    def spec(path: tuple, leaf: jax.Array) -> PartitionSpec:
        axis = _SHARED.get(jax.tree_util.keystr(path[-1:], simple=True))
        if axis is None or leaf.ndim < -axis or leaf.shape[axis] % num_devices:
            return PartitionSpec()
        return PartitionSpec(*[None] * (leaf.ndim + axis), MODEL)

    return jax.tree.map_with_path(spec, tree)


def place(tree: Any, devices: Mesh) -> Any:
    """The same numbers, their heads and MLP rows shared out over the mesh's axis "model"."""
    return jax.device_put(tree, shardings(tree, devices))


def shardings(tree: Any, devices: Mesh) -> Any:
    """Where ``place`` puts each leaf, of which the shape is enough."""
    _check(devices, MODEL)
    return jax.tree.map(partial(NamedSharding, devices), specs(tree, devices.shape[MODEL]))


def share(batch: Any, devices: Mesh, axis: int = 0) -> Any:
    """The same batch, its ``axis`` shared out over the mesh's axis "batch"; within jit too."""
    _check(devices, BATCH)
    rows = devices.shape[BATCH]

    def part(leaf: jax.Array) -> jax.Array:
        if leaf.shape[axis] % rows:
            raise ValueError(
                f"a batch of {leaf.shape[axis]} is not shared evenly by the mesh's {rows} rows"
            )
        spec = PartitionSpec(*[None] * (axis % leaf.ndim), BATCH)
        return jax.lax.with_sharding_constraint(leaf, NamedSharding(devices, spec))

    return jax.tree.map(part, batch)


def _check(devices: Mesh, axis: str) -> None:
    if axis not in devices.shape:
        raise ValueError(
            f"the mesh has the axes {tuple(devices.shape)}; one of them must be {axis!r}: take "
            "sharding.mesh()"
        )
