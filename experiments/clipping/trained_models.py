"""The trained models that the experiments on clipping share, each trained once."""

import jax

from experiments.models.model import Model
from experiments.models.regression import dense, of_kernel
from experiments.models.specs import Spec
from experiments.models.trained import trained


def transformer_spec(config) -> Spec:
    """The models of a ``TransformerConfig``: softmax, a norm and an MLP, after a read-in."""
    training = {name: getattr(config, name) for name in ("steps", "batch", "learning_rate")}
    training |= dict(seeds=config.runs, seed=config.training_seed, checkpoints=config.looks)
    shape = dict(heads=config.heads, key_width=config.width // config.heads, width=config.width)
    shape |= dict(mlp_width=config.mlp_width, norm=True, init_scale=0.5)
    sizes = (config.d, config.n, config.depth)
    return dense("softmax", *sizes, noise_std=config.noise_std, training=training, **shape)


def transformers(config, label, progress=None):  # -> Spec, params [R', looks+1, ...], statuses [R]
    """Those models at every checkpoint; the runs that diverged are left out."""
    runs = trained(transformer_spec(config), label, progress=progress)
    path = jax.tree.map(lambda leaf: leaf[runs.finished[0]], runs.path)
    return runs.spec, path, [str(status) for status in runs.status]


def final(path):  # [R', looks+1, ...] -> [R', ...]
    """The params after the last step."""
    return jax.tree.map(lambda leaf: leaf[:, -1], path)


def squared_error(spec):
    """(params, prompts [B]) -> the excess error of each [B]; built once, it is compiled once."""
    return lambda params, batch: Model(spec, params).errors(batch)


def linear_stacks(config, progress=None):  # -> Spec, params [R', ...], statuses [R]
    """The models of a ``LinearConfig`` in float64; the runs that diverged are left out."""
    training = dict(seeds=config.runs, seed=config.training_seed, clip=config.clip)
    spec = of_kernel("linear", config, noise_std=config.noise_std, **training)
    runs = trained(spec, "linear stacks", progress=progress)
    params = runs.models(seeds=runs.finished[0]).in_float64().params
    return spec, params, [str(status) for status in runs.status]
