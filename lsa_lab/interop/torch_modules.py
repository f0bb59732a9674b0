"""A module of PyTorch as a function of arrays in JAX: its answers and derivatives are torch's own,
called back on the host. PyTorch is no dependency: ``pip install torch`` beside lsa_lab."""

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
    """``forward(params, tokens) -> predictions`` of a ``torch.nn.Module``, and its params.

    ``example`` are tokens as the module takes them: of one prompt [T, w], or of a batch [B, T, w],
    which is then given one prompt at a time. It returns a prediction for every token, [T] or
    [T, 1], or one number. ``params`` are its parameters by dotted name; buffers are constants of
    the module. The dtype of tokens is that of params, and of the predictions.

    Each call leaves JAX for torch, on the host's processors: slow, right, and under ``jit``,
    ``vmap`` (``torch.func.vmap``) and ``grad`` of any order, by
    ``torch.func.vjp``; forward mode (``jvp``, ``jacfwd``) is not there. For a card,
    ``report_card(forward, params=params)``; for analyses, ``as_forward(forward, causal=True)``.

    Raises TorchModuleError without PyTorch, and for a module whose two answers to the example
    differ or that changes its buffers: ``module.eval()`` turns dropout and running means off.
    """
    torch = _torch()
    tokens = torch.as_tensor(np.array(example))
    params = {name: leaf.detach() for name, leaf in module.named_parameters()}
    buffers = {name: leaf.detach() for name, leaf in module.named_buffers()}
    batched = tokens.ndim == 3
    _check(torch, module, params, buffers, tokens)

    def answer(*leaves: Any) -> Any:
        *own, rows = leaves
        given = {name: leaf.to(rows.dtype) if leaf.is_floating_point() else leaf
                 for name, leaf in buffers.items()}  # fmt: skip
        values = given | dict(zip(params, own, strict=True))
        out = torch.func.functional_call(module, values, rows[None] if batched else rows)
        out = out[0] if batched else out
        return (out[..., 0] if out.ndim > 1 and out.shape[-1] == 1 else out,)

    def forward(params: dict[str, Array], tokens: Array) -> Array:
        if odd := {str(leaf.dtype) for leaf in params.values()} - {str(tokens.dtype)}:
            raise TypeError(f"tokens are {tokens.dtype} and params {', '.join(odd)}: cast one")
        leaves = *(params[name] for name in names), tokens
        zeros = (torch.zeros(leaf.shape, dtype=getattr(torch, str(leaf.dtype))) for leaf in leaves)
        (shape,) = (leaf.shape for leaf in answer(*zeros))
        return _lifted(answer, [jax.ShapeDtypeStruct(shape, tokens.dtype)])(*leaves)[0]

    names = list(params)
    return forward, {name: jax.numpy.asarray(_array(leaf)) for name, leaf in params.items()}


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise TorchModuleError("from_torch needs PyTorch: pip install torch") from None


def _check(torch: Any, module: Any, params: dict, buffers: dict, tokens: Any) -> None:
    """Two calls have to agree and leave the buffers."""
    kept, trial = dict(buffers), {name: leaf.clone() for name, leaf in buffers.items()}
    with torch.no_grad():
        first, second = (
            torch.func.functional_call(module, trial | params, tokens) for _ in range(2)
        )
    if moved := [name for name, leaf in kept.items() if not torch.equal(leaf, trial[name])]:
        raise TorchModuleError(f"the module changes its buffers {', '.join(moved)}: module.eval()")
    if not torch.is_tensor(first):
        raise TorchModuleError(f"the module returns {type(first).__name__}: return one tensor")
    if not torch.equal(first, second):
        raise TorchModuleError("two calls of the module differ: module.eval() turns dropout off")


def _lifted(function: Callable, shapes: list[jax.ShapeDtypeStruct]) -> Callable:
    """A function of torch tensors, with outputs of these shapes, as one of JAX; its derivative is
    the lift of torch's, and so has one itself."""

    @jax.custom_vjp
    def call(*leaves: Array) -> list[Array]:
        run = _on_host(function, [leaf.ndim for leaf in leaves])
        return jax.pure_callback(run, shapes, *leaves, vmap_method="expand_dims")

    def pulled_back(*leaves: Any) -> tuple:
        own, slopes = leaves[: -len(shapes)], leaves[-len(shapes) :]
        return tuple(_torch().func.vjp(function, *own)[1](slopes))

    def backward(leaves: tuple, slopes: list[Array]) -> tuple:
        like = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
        return tuple(_lifted(pulled_back, like)(*leaves, *slopes))

    call.defvjp(lambda *leaves: (call(*leaves), leaves), backward)
    return call


def _on_host(function: Callable, ranks: list[int]) -> Callable:
    def run(*leaves: Any) -> list[np.ndarray]:
        dtype = np.asarray(leaves[-1]).dtype
        axes = np.ndim(leaves[-1]) - ranks[-1]
        out = _mapped(function, [_tensor(np.asarray(leaf)) for leaf in leaves], axes)
        return [_array(leaf).astype(dtype) for leaf in out]

    return run


def _mapped(function: Callable, leaves: list, axes: int) -> tuple:
    """The function over leading axes, which are 1 long for leaves that are not mapped."""
    if not axes:
        return tuple(function(*leaves))
    dims = tuple(0 if len(leaf) > 1 else None for leaf in leaves)
    rows = [leaf if dim == 0 else leaf[0] for leaf, dim in zip(leaves, dims, strict=True)]
    if 0 not in dims:
        return tuple(leaf[None] for leaf in _mapped(function, rows, axes - 1))
    each = lambda *own: _mapped(function, list(own), axes - 1)  # noqa: E731
    with contextlib.suppress(RuntimeError):  # torch maps some modules not, such as GRU
        return tuple(_torch().func.vmap(each, dims)(*rows))
    count = max(len(row) for row, dim in zip(rows, dims, strict=True) if dim == 0)
    apart = [
        each(*(row[i] if dim == 0 else row for row, dim in zip(rows, dims, strict=True)))
        for i in range(count)
    ]
    return tuple(map(_torch().stack, zip(*apart, strict=True)))


def _tensor(array: np.ndarray) -> Any:
    """The array as a tensor of its dtype; numpy's bfloat16 is none of torch's."""
    torch, name = _torch(), str(array.dtype)
    plain = np.array(array, np.float32) if name == "bfloat16" else np.array(array)
    return torch.from_numpy(plain).to(getattr(torch, name))


def _array(tensor: Any) -> np.ndarray:
    tensor = tensor.detach()
    return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).cpu().numpy()
