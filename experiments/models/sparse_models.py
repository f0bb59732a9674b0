"""The models of the experiments on sparse regression: their prompts, and what they predict."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from experiments.models.specs import Family
from lsa_lab import prompts
from lsa_lab.models import linear_attention, moments, transformer
from lsa_lab.models.trace import Trace
from lsa_lab.models.trace import predict as read
from lsa_lab.prompts import Prompt
from lsa_lab.tasks import linear, polynomial


def masks(family: Family) -> np.ndarray:  # [A, L, H]
    """Which heads each architecture has."""
    counts = np.array(family.architectures)
    return (np.arange(family.heads) < counts[..., None]).astype(float)


def width(family: Family) -> int:
    """Of a token: covariates, scratch, label."""
    shown = law(family, 1).width if family.task == "polynomial" else family.d
    return shown + family.scratch + 1


def law(family: Family, n: int, dtype=None) -> linear.LinearTask | polynomial.PolynomialTask:
    """Of prompts with n demonstrations, with E |w|² = 1."""
    noise = dict(noise_std=family.noise_std, dtype=dtype)
    if family.task == "polynomial":
        count = polynomial.PolynomialTask(n, family.d).num_features
        return polynomial.PolynomialTask(n, family.d, weight_std=count**-0.5, **noise)
    sparsity = family.sparsity if family.task == "sparse" else None
    return linear.LinearTask(
        n, family.d, sparsity, weight_std=(sparsity or family.d) ** -0.5, **noise
    )


def draw(family: Family, key, n: int, size: int, dtype=None) -> Prompt:
    """Prompts [size]."""
    return draw_from(law(family, n, dtype), key, size)


def draw_from(task: linear.LinearTask | polynomial.PolynomialTask, key, size: int) -> Prompt:
    kind = linear if isinstance(task, linear.LinearTask) else polynomial
    return jax.vmap(partial(kind.sample, task=task))(jax.random.split(key, size))


def shape(family: Family) -> transformer.Config:
    e = width(family)
    return transformer.Config(
        e, family.depth, family.heads, family.key_width or e, kernel=family.kernel, init_scale=1.0
    )


def skeleton(family: Family) -> Family:
    """The family with all that a forward pass does not depend on left out: families with the same
    one share their programs."""
    covariates = width(family) - family.scratch - 1
    kept = dict(kernel=family.kernel, key_width=family.key_width, scratch=family.scratch)
    return Family(((family.heads,) * family.depth,), d=covariates, **kept)


def factored(family: Family, params) -> transformer.Params:
    """The same model as a transformer: W_K = W_O = I where the weights are merged."""
    if isinstance(params, transformer.Params):
        return params
    identity = jnp.broadcast_to(jnp.eye(width(family)), params.w_kq.shape)
    return transformer.Params(w_q=params.w_kq, w_k=identity, w_v=params.w_pv, w_o=identity)


def forward(family: Family, params, prompt: Prompt, head_mask=None, head_fill=None) -> Trace:
    """On the prompt in units of its own: times c, its prediction is the prompt's."""
    own = prompts.with_scratch(prompts.normalised(prompt)[0], family.scratch)
    tokens = prompts.tokens(own)
    return transformer.forward(
        factored(family, params), tokens, shape(family), head_mask, head_fill
    )


def predict(family: Family, params, batch: Prompt, head_mask) -> jax.Array:  # [B]
    """ŷ of every prompt, in the prompt's own units; compile with ``moments.compiler_options``."""
    own, scale = jax.vmap(prompts.normalised)(batch)
    own = jax.vmap(partial(prompts.with_scratch, width=family.scratch))(own)
    if family.kernel == "softmax":
        run = partial(transformer.forward, config=shape(family), head_mask=head_mask)
        return scale * jax.vmap(lambda one: read(run(params, prompts.tokens(one))))(own)
    if isinstance(params, transformer.Params):
        params = transformer.merge(params, shape(family))
    gates = jnp.asarray(head_mask, params.w_pv.dtype)[:, :, None, None]
    return scale * moments.predictions(params.replace(w_pv=gates * params.w_pv), own)


def errors(family: Family, params, batch: Prompt, head_mask) -> jax.Array:  # [B]
    """Squared errors against targets without noise: their mean is the excess risk."""
    return (predict(family, params, batch, head_mask) - batch.y_query) ** 2


def cut(predicted: jax.Array, batch: Prompt) -> jax.Array:  # [B]
    """Predictions cut at twice the largest label of their prompt, in either direction.

    All risks are judged so, those of known rules too: on a rare prompt, and often without one of
    its heads, a polynomial of degree 3^L explodes, and the mean would tell of nothing else.
    """
    most = 2 * jnp.abs(batch.y).max(-1)
    return jnp.clip(predicted, -most, most)


def risk(family: Family, params, batch: Prompt, head_mask) -> jax.Array:  # []
    """The mean excess risk over a batch, of predictions that are cut."""
    predicted = cut(predict(family, params, batch, head_mask), batch)
    return ((predicted - batch.y_query) ** 2).mean()


def init(family: Family, key):
    """Weights before the training, in float32."""
    if family.kernel == "softmax" or family.key_width is not None:
        return transformer.init(key, shape(family), jnp.float32)
    sizes = (family.depth, family.heads, width(family) - 1)
    return linear_attention.init(key, *sizes, scale=0.1, dtype=jnp.float32)
