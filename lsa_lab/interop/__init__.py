"""Other people's models: their weights as our Params, our Params in their layouts, any function.

Arrays and safetensors only; nothing is ever unpickled. Every layout's conventions (tokens, signs,
masks, normalisation) stand as formulas in the docstring of the function that reads it.
"""

from lsa_lab.interop.files import from_safetensors, to_safetensors
from lsa_lab.interop.flax_trees import from_linen, from_nnx, to_linen, to_nnx
from lsa_lab.interop.functions import as_forward
from lsa_lab.interop.gpt2_layout import gpt2_regression, to_gpt2_regression
from lsa_lab.interop.haiku_layout import to_von_oswald, von_oswald
from lsa_lab.interop.merged_layout import ahn, to_ahn
from lsa_lab.interop.torch_modules import TorchModuleError, from_torch

__all__ = [
    "TorchModuleError",
    "ahn",
    "as_forward",
    "from_linen",
    "from_nnx",
    "from_safetensors",
    "from_torch",
    "gpt2_regression",
    "to_ahn",
    "to_gpt2_regression",
    "to_linen",
    "to_nnx",
    "to_safetensors",
    "to_von_oswald",
    "von_oswald",
]
