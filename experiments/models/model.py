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
        """Return ŷ of every prompt; compile with ``moments.compiler_options``."""
        read, scale = jax.vmap(partial(prepare_prompt, self.spec.architecture))(batch)
        if not _can_be_merged(self.spec.architecture):
            tokens, config = jax.vmap(prompts.tokens)(read), transformer_config(self.spec)
            predict = partial(transformer.predict, self.params, config=config, head_mask=self.gates)
            return scale * jax.vmap(predict)(tokens)
        params = self.merged().params
        if self.gates is not None:
            gates = jnp.asarray(self.gates, params.w_pv.dtype)[:, :, None, None]
            params = params.replace(w_pv=gates * params.w_pv)
        return scale * moments.predictions(params, read)

    def errors(self, batch: Prompt) -> Array:  # [B]
        """Return (ŷ - y)² for targets without noise: the mean is the excess risk."""
        return (self.predict(batch) - batch.y_query) ** 2

    def clipped_errors(self, batch: Prompt) -> Array:  # [B]
        """Return the squared errors of predictions after ``clip_predictions``."""
        return (clip_predictions(self.predict(batch), batch) - batch.y_query) ** 2

    def risk(self, batch: Prompt) -> Array:  # []
        """Return the mean excess risk over a batch, of clipped predictions."""
        return self.clipped_errors(batch).mean()

    def forward(self, prompt: Prompt) -> Trace:
        """Return the trace of the factored model on a prompt, in the units in which it is read."""
        read, _ = prepare_prompt(self.spec.architecture, prompt)
        weights, config = self.factored(), transformer_config(self.spec)
        return transformer.forward(weights, prompts.tokens(read), config, self.gates)

    def factored(self) -> transformer.Params:
        """Return the params with factored heads: W_K = W_O = I where the weights are merged."""
        if isinstance(self.params, transformer.Params):
            return self.params
        w_kq, w_pv = self.params.w_kq, self.params.w_pv
        identity = jnp.broadcast_to(jnp.eye(w_kq.shape[-1]), w_kq.shape)
        return transformer.Params(w_q=w_kq, w_k=identity, w_v=w_pv, w_o=identity)

    def merged(self) -> "Model":
        """Return the same model with merged weights, if it can have them."""
        architecture = self.spec.architecture
        if architecture.merged or not _can_be_merged(architecture):
            return self
        spec = _change(self.spec, key_width=None)
        params = transformer.merge(self.params, transformer_config(self.spec))
        return Model(spec, params, self.gates)

    def plain(self) -> "Model":
        """Return the same function, merged if it can be, with a Spec that most models share."""
        model = self.merged()
        return model.replace(spec=compilation_key(model.spec))

    def first(self, layers: int) -> "Model":
        """Return the model of the first layers."""
        params, gates = jax.tree.map(lambda leaf: leaf[:layers], (self.params, self.gates))
        return Model(_change(self.spec, depth=layers, variants=()), params, gates)

    def cast_float64(self) -> "Model":
        return jax.tree.map(lambda leaf: np.asarray(leaf, float), self)


def clip_predictions(predicted: Array, batch: Prompt) -> Array:  # [B]
    """Return predictions clipped at twice the largest label of their prompt."""
    # On a rare prompt a polynomial of degree 3^L explodes, and would be most of the mean.
    largest = 2 * jnp.abs(batch.y).max(-1)
    return jnp.clip(predicted, -largest, largest)


def head_gates(architecture: Architecture) -> np.ndarray | None:  # [A, L, H]
    """Return which heads each variant has; None without variants."""
    if not architecture.variants:
        return None
    counts = np.array(architecture.variants)[..., None]
    return (np.arange(architecture.heads) < counts).astype(float)


def transformer_config(spec: Spec) -> transformer.Config:
    """Return the config of the model as a transformer, with all heads in every layer."""
    shape, e = spec.architecture, spec.token_width
    same = ("width", "norm", "kernel", "keys", "mlp_width", "init_scale")
    fields = {name: getattr(shape, name) for name in same}
    return transformer.Config(e, shape.depth, shape.heads, shape.key_width or e, **fields)


def prepare_prompt(architecture: Architecture, prompt: Prompt) -> tuple[Prompt, Array]:
    """Return the prompt as the model reads it, and the factor [] of its prediction."""
    scale = jnp.ones_like(prompt.y_query)
    if architecture.normalise_prompt:
        prompt, scale = prompts.normalise(prompt)
    return prompts.pad_covariates(prompt, architecture.padding_slots), scale


def init(spec: Spec, key) -> Any:
    """Draw params as before the training, in float32."""
    if not spec.architecture.merged:
        return transformer.init(key, transformer_config(spec), jnp.float32)
    sizes = (spec.architecture.depth, spec.architecture.heads, spec.token_width - 1)
    scale = spec.architecture.init_scale
    return linear_attention.init(key, *sizes, scale=scale, dtype=jnp.float32)


def forward(spec: Spec):
    """Return (params, tokens) -> Trace, for analyses that edit or differentiate these."""
    if spec.architecture.merged:
        return linear_attention.forward
    return partial(transformer.forward, config=transformer_config(spec))


def compilation_key(spec: Spec) -> Spec:
    """Return a Spec with only what a forward pass depends on: models with it share programs."""
    return Spec(
        Task(spec.task.d, (1,)),
        _change(spec, variants=(), init_scale=1.0).architecture,
        Recipe(steps=1, batch=1, learning_rate=1.0, seeds=1),
    )


def _change(spec: Spec, **changes) -> Spec:
    architecture = dataclasses.replace(spec.architecture, **changes)
    return dataclasses.replace(spec, architecture=architecture)


def _can_be_merged(architecture: Architecture) -> bool:
    """Return whether the moment form serves: linear heads and nothing else."""
    names = ("kernel", "keys", "width", "norm", "mlp_width")
    plain = ("linear", "demonstrations", None, False, None)
    return plain == tuple(getattr(architecture, name) for name in names)
