"""Which operations of a computation a platform lacks; no device of that platform is needed.

A program lowers for a platform if each of its operations does. So those of many programs are taken
down while they are traced, each kind once, and lowered together in one program.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import jax
from jax.extend.core import Primitive, jaxprs_in_params

# What calls Python back: a GPU does it, but only a process that has one can lower it.
_OF_THE_HOST = ("pure_callback", "io_callback", "debug_callback")

Kinds = dict[tuple, tuple]  # (primitive, dtypes of its inputs) -> (shapes, parameters) of the first


@contextlib.contextmanager
def operations() -> Iterator[Kinds]:
    """The kinds of operations that are traced or run meanwhile.

    Of a program that jax holds from before, outside of another one, nothing is seen.
    """
    kinds: Kinds = {}
    seen: dict[int, Any] = {}  # programs inside others, kept so that no other gets their id
    bind = Primitive.bind

    def note(primitive: Primitive, avals: list, params: dict[str, Any]) -> None:
        inside = list(jaxprs_in_params(params))
        for jaxpr in inside:
            if id(jaxpr) not in seen:
                seen[id(jaxpr)] = jaxpr
                for equation in jaxpr.eqns:
                    note(equation.primitive, [x.aval for x in equation.invars], equation.params)
        if not inside and primitive.name not in _OF_THE_HOST and not _holds_a_function(primitive):
            kind = (primitive, *(aval.dtype for aval in avals))
            if kind not in kinds:
                shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
                kinds[kind] = (shapes, params)

    def noted(self: Primitive, *args: Any, **params: Any) -> Any:
        note(self, [jax.typeof(x) for x in args], params)
        return bind(self, *args, **params)

    Primitive.bind = noted
    try:
        yield kinds
    finally:
        Primitive.bind = bind


def lacking(kinds: Kinds, platform: str) -> list[str]:
    """The names of the operations that do not lower for a platform."""
    if _lower(kinds, platform):
        return []
    alone = ({kind: call} for kind, call in kinds.items())
    return sorted({next(iter(one))[0].name for one in alone if not _lower(one, platform)})


def _holds_a_function(primitive: Primitive) -> bool:
    """Whether what it does is a Python function's, whose own operations are bound too."""
    return primitive.name.startswith(("shard_map", "custom_", "call_hi_primitive", "vjp_node"))


def _lower(kinds: Kinds, platform: str) -> bool:
    def program(inputs: list) -> list:
        calls = zip(kinds.items(), inputs, strict=True)
        return [kind[0].bind(*xs, **params) for (kind, (_, params)), xs in calls]

    traced = jax.jit(program).trace([shapes for shapes, _ in kinds.values()])
    try:
        traced.lower(lowering_platforms=(platform,))
    except NotImplementedError:  # "MLIR translation rule ... not found for platform cuda"
        return False
    return True
