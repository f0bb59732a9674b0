"""A model: its Spec, its weights, and which of its heads it has, in one value."""

import dataclasses
from functools import partial
from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from experiments.models.specs import Architecture, Recipe, Spec, Task
from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.models.trace import Trace
from lsa_lab.prompts import Prompt


class Model(flax.struct.PyTreeNode):
    """One model, or many along leading axes of ``params`` and ``gates``.

    The functions are for one; map over the others. ``spec`` is a constant of compiled programs.
    """

    spec: Spec = flax.struct.field(pytree_node=False)
    params: Any  # linear_attention.Params or transformer.Params
    gates: Any = None  # [L, H]; None: every head is there

    def predict(self, batch: Prompt) -> Array:  # [B]
        """ŷ of every prompt, in its own units; compile with ``moments.compiler_options``."""
        own, scale = jax.vmap(partial(own_prompt, self.spec.architecture))(batch)
        if not _mergeable(self.spec.architecture):
            tokens, config = jax.vmap(prompts.tokens)(own), shape(self.spec)
            return scale * transformer.predictions(self.params, tokens, config, self.gates)
        params = self.merged().params
        if self.gates is not None:
            gates = jnp.asarray(self.gates, params.w_pv.dtype)[:, :, None, None]
            params = params.replace(w_pv=gates * params.w_pv)
        return scale * moments.predictions(params, own)

    def errors(self, batch: Prompt) -> Array:  # [B]
        """Squared errors against targets without noise: their mean is the excess risk."""
        return (self.predict(batch) - batch.y_query) ** 2

    def cut_errors(self, batch: Prompt) -> Array:  # [B]
        """The same for predictions that are ``cut``."""
        return (cut(self.predict(batch), batch) - batch.y_query) ** 2

    def risk(self, batch: Prompt) -> Array:  # []
        """The mean excess risk over a batch, of predictions that are cut."""
        return self.cut_errors(batch).mean()

    def forward(self, prompt: Prompt) -> Trace:
        """What the factored model makes of a prompt as it reads it, that is, in its own units."""
        own, _ = own_prompt(self.spec.architecture, prompt)
        weights, config = self.factored(), shape(self.spec)
        return transformer.forward(weights, prompts.tokens(own), config, self.gates)

    def factored(self) -> transformer.Params:
        """The same model with factored heads: W_K = W_O = I where the weights are merged."""
        if isinstance(self.params, transformer.Params):
            return self.params
        w_kq, w_pv = self.params.w_kq, self.params.w_pv
        identity = jnp.broadcast_to(jnp.eye(w_kq.shape[-1]), w_kq.shape)
        return transformer.Params(w_q=w_kq, w_k=identity, w_v=w_pv, w_o=identity)

    def merged(self) -> "Model":
        """The same model with merged weights, if it can have them."""
        architecture = self.spec.architecture
        if architecture.merged or not _mergeable(architecture):
            return self
        spec = _changed(self.spec, key_width=None)
        return Model(spec, transformer.merge(self.params, shape(self.spec)), self.gates)

    def plain(self) -> "Model":
        """The same function, merged if it can be, and of the Spec that most models share."""
        model = self.merged()
        return model.replace(spec=skeleton(model.spec))

    def first(self, layers: int) -> "Model":
        """The model that its first layers are."""
        params, gates = jax.tree.map(lambda leaf: leaf[:layers], (self.params, self.gates))
        return Model(_changed(self.spec, depth=layers, variants=()), params, gates)

    def cast_float64(self) -> "Model":
        return jax.tree.map(lambda leaf: np.asarray(leaf, float), self)


def cut(predicted: Array, batch: Prompt) -> Array:  # [B]
    """Predictions cut at twice the largest label of their prompt, in either direction.

    Models of sparse regression are judged so, and the known rules beside them: on a rare prompt,
    and often without one of its heads, a polynomial of degree 3^L explodes, and the mean would tell
    of nothing else.
    """
    most = 2 * jnp.abs(batch.y).max(-1)
    return jnp.clip(predicted, -most, most)


def gates_of(architecture: Architecture) -> np.ndarray | None:  # [A, L, H]
    """Which heads each variant has; None without variants."""
    if not architecture.variants:
        return None
    counts = np.array(architecture.variants)[..., None]
    return (np.arange(architecture.heads) < counts).astype(float)


def shape(spec: Spec) -> transformer.Config:
    """The model as a transformer, with all heads in every layer."""
    architecture, e = spec.architecture, spec.token_width
    return transformer.Config(
        e,
        architecture.depth,
        architecture.heads,
        architecture.key_width or e,
        width=architecture.width,
        norm=architecture.norm,
        kernel=architecture.kernel,
        keys=architecture.keys,
        mlp_width=architecture.mlp_width,
        init_scale=architecture.init_scale,
    )


def own_prompt(architecture: Architecture, prompt: Prompt) -> tuple[Prompt, Array]:  # Prompt, []
    """The prompt as the model reads it, and what its prediction is to be multiplied by."""
    scale = jnp.ones_like(prompt.y_query)
    if architecture.own_units:
        prompt, scale = prompts.normalised(prompt)
    return prompts.with_scratch(prompt, architecture.scratch), scale


def init(spec: Spec, key) -> Any:
    """Params before the training, in float32."""
    if not spec.architecture.merged:
        return transformer.init(key, shape(spec), jnp.float32)
    sizes = (spec.architecture.depth, spec.architecture.heads, spec.token_width - 1)
    scale = spec.architecture.init_scale
    return linear_attention.init(key, *sizes, scale=scale, dtype=jnp.float32)


def forward(spec: Spec):
    """(params, tokens) -> Trace, for analyses that edit or differentiate these."""
    if spec.architecture.merged:
        return linear_attention.forward
    return partial(transformer.forward, config=shape(spec))


def skeleton(spec: Spec) -> Spec:
    """The Spec with all that a forward pass does not depend on left out: models with the same one
    share their programs."""
    return Spec(
        Task(spec.task.width, (1,)),
        _changed(spec, variants=(), init_scale=1.0).architecture,
        Recipe(steps=1, batch=1, learning_rate=1.0, seeds=1),
    )


def _changed(spec: Spec, **changes) -> Spec:
    architecture = dataclasses.replace(spec.architecture, **changes)
    return dataclasses.replace(spec, architecture=architecture)


def _mergeable(architecture: Architecture) -> bool:
    """Whether the moment form serves: linear heads and nothing else."""
    plain = ("linear", "demonstrations", None, False, None)
    return plain == tuple(
        getattr(architecture, name) for name in ("kernel", "keys", "width", "norm", "mlp_width")
    )
