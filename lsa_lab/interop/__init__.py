"""Other people's models: their weights as our Params, our Params in their layouts, any function.

Arrays and safetensors only; nothing is ever unpickled. Every layout's conventions (tokens, signs,
masks, normalisation) stand as formulas in the docstring of the function that reads it.
"""

from lsa_lab.interop.files import from_safetensors as from_safetensors
from lsa_lab.interop.files import to_safetensors as to_safetensors
from lsa_lab.interop.flax_trees import from_linen as from_linen
from lsa_lab.interop.flax_trees import from_nnx as from_nnx
from lsa_lab.interop.flax_trees import to_linen as to_linen
from lsa_lab.interop.flax_trees import to_nnx as to_nnx
from lsa_lab.interop.functions import as_forward as as_forward
from lsa_lab.interop.gpt2_layout import gpt2_regression as gpt2_regression
from lsa_lab.interop.gpt2_layout import to_gpt2_regression as to_gpt2_regression
from lsa_lab.interop.haiku_layout import to_von_oswald as to_von_oswald
from lsa_lab.interop.haiku_layout import von_oswald as von_oswald
from lsa_lab.interop.merged_layout import ahn as ahn
from lsa_lab.interop.merged_layout import to_ahn as to_ahn
from lsa_lab.interop.torch_modules import TorchModuleError as TorchModuleError
from lsa_lab.interop.torch_modules import from_torch as from_torch
