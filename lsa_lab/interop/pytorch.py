"""A module of PyTorch as a function of arrays in JAX, called back on the host.

Its answers and derivatives are torch's own. PyTorch is no dependency: ``pip install torch``.
"""

import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.typing import ArrayLike


class TorchModuleError(ValueError):
    """A module of PyTorch that is no function of its parameters and tokens, or no PyTorch."""


def from_torch(
    module: Any, example: ArrayLike
) -> tuple[Callable[[dict[str, Array], Array], Array], dict[str, Array]]:
    """Return forward(params, tokens) -> predictions of a ``torch.nn.Module``, and its params.

    ``example`` are tokens as the module takes them: of one prompt [T, w], or of a batch [B, T, w],
    which is then given one prompt at a time. It returns a prediction for every token, [T] or
    [T, 1], or one number. ``params`` are its parameters by dotted name; buffers are constants of
    the module. The dtype of tokens is that of params, and of the predictions.

    Each call leaves JAX for torch, on the host's processors: slow, exact, and under ``jit``,
    ``vmap`` (``torch.func.vmap``) and ``grad`` of any order, by ``torch.func.vjp``; there is no
    forward mode (``jvp``, ``jacfwd``). For a card, ``report_card(forward, params=params)``; for
    analyses, ``as_forward(forward, causal=True)``.

    Raises TorchModuleError without PyTorch, and for a module whose two answers to the example
    differ or that changes its buffers: ``module.eval()`` turns dropout and running means off.
    """
    torch = _import_torch()
    tokens = torch.as_tensor(np.array(example))
    leaves = {name: leaf.detach() for name, leaf in module.named_parameters()}
    buffers = {name: leaf.detach() for name, leaf in module.named_buffers()}
    _check_module(torch, module, leaves, buffers, tokens)

    def call(*arrays: Any) -> tuple:
        *weights, rows = arrays
        constants = {
            name: leaf.to(rows.dtype) if leaf.is_floating_point() else leaf
            for name, leaf in buffers.items()
        }
        values = constants | dict(zip(leaves, weights, strict=True))
        batched = tokens.ndim == 3
        out = torch.func.functional_call(module, values, rows[None] if batched else rows)
        out = out[0] if batched else out
        return (out[..., 0] if out.ndim > 1 and out.shape[-1] == 1 else out,)

    def forward(params: dict[str, Array], tokens: Array) -> Array:
        if odd := {str(leaf.dtype) for leaf in params.values()} - {str(tokens.dtype)}:
            raise TypeError(f"tokens are {tokens.dtype} and params {', '.join(odd)}: cast one")
        arrays = *(params[name] for name in leaves), tokens
        zeros = (torch.zeros(x.shape, dtype=getattr(torch, str(x.dtype))) for x in arrays)
        (answer,) = call(*zeros)
        return _lift(call, [jax.ShapeDtypeStruct(answer.shape, tokens.dtype)])(*arrays)[0]

    return forward, {name: jax.numpy.asarray(_to_numpy(leaf)) for name, leaf in leaves.items()}


def _import_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise TorchModuleError("from_torch needs PyTorch: pip install torch") from None


def _check_module(torch: Any, module: Any, params: dict, buffers: dict, tokens: Any) -> None:
    """Raise unless two calls agree and leave the buffers as they are."""
    trial = {name: leaf.clone() for name, leaf in buffers.items()}
    values = trial | params
    with torch.no_grad():
        first, second = (torch.func.functional_call(module, values, tokens) for _ in range(2))
    changed = [name for name, leaf in buffers.items() if not torch.equal(leaf, trial[name])]
    if changed:
        names = ", ".join(changed)
        raise TorchModuleError(f"the module changes its buffers {names}: module.eval()")
    if not torch.is_tensor(first):
        raise TorchModuleError(f"the module returns {type(first).__name__}: return one tensor")
    if not torch.equal(first, second):
        raise TorchModuleError("two calls of the module differ: module.eval() turns dropout off")


def _lift(function: Callable, shapes: list[jax.ShapeDtypeStruct]) -> Callable:
    """Return a function of torch tensors, with outputs of these shapes, as one of JAX.

    Its derivative is the lift of torch's, and so has one itself.
    """

    @jax.custom_vjp
    def call(*arrays: Array) -> list[Array]:
        rank = arrays[-1].ndim

        def run(*arrays: Any) -> list[np.ndarray]:  # on the host, with axes of vmap before others
            dtype, axes = np.asarray(arrays[-1]).dtype, np.ndim(arrays[-1]) - rank
            out = _map_axes(function, [_to_tensor(np.asarray(x)) for x in arrays], axes)
            return [_to_numpy(x).astype(dtype) for x in out]

        return jax.pure_callback(run, shapes, *arrays, vmap_method="expand_dims")

    def pull_back(*arrays: Any) -> tuple:
        inputs, slopes = arrays[: -len(shapes)], arrays[-len(shapes) :]
        return tuple(_import_torch().func.vjp(function, *inputs)[1](slopes))

    def backward(arrays: tuple, slopes: list[Array]) -> tuple:
        like = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
        return tuple(_lift(pull_back, like)(*arrays, *slopes))

    call.defvjp(lambda *arrays: (call(*arrays), arrays), backward)
    return call


def _map_axes(function: Callable, arrays: list, axes: int) -> tuple:
    """Map the function over leading axes, which are 1 long for arrays that are not mapped."""
    if not axes:
        return tuple(function(*arrays))
    dims = tuple(0 if len(x) > 1 else None for x in arrays)
    rows = [x if dim == 0 else x[0] for x, dim in zip(arrays, dims, strict=True)]

    def inner(*arguments: Any) -> tuple:
        return _map_axes(function, list(arguments), axes - 1)

    if 0 not in dims:
        return tuple(x[None] for x in inner(*rows))
    with contextlib.suppress(RuntimeError):  # torch does not map some modules, such as GRU
        return tuple(_import_torch().func.vmap(inner, dims)(*rows))
    mapped = list(zip(rows, dims, strict=True))
    count = max(len(row) for row, dim in mapped if dim == 0)
    calls = [inner(*(row[i] if dim == 0 else row for row, dim in mapped)) for i in range(count)]
    return tuple(map(_import_torch().stack, zip(*calls, strict=True)))


def _to_tensor(array: np.ndarray) -> Any:
    torch, name = _import_torch(), str(array.dtype)  # NumPy's bfloat16 is none of torch's
    plain = np.array(array, np.float32) if name == "bfloat16" else np.array(array)
    return torch.from_numpy(plain).to(getattr(torch, name))


def _to_numpy(tensor: Any) -> np.ndarray:
    tensor = tensor.detach()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).cpu().numpy()
