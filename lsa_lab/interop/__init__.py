"""Other people's models: any function, modules of flax and PyTorch, published weights, files.

Nothing is ever unpickled. The conventions of every layout (tokens, signs, masks, normalisation) are
formulas in the docstring of the function that reads it.
"""

from lsa_lab.interop.functions import as_forward as as_forward
from lsa_lab.interop.gpt2 import gpt2_regression as gpt2_regression
from lsa_lab.interop.published import ahn as ahn
from lsa_lab.interop.published import von_oswald as von_oswald
from lsa_lab.interop.pytorch import TorchModuleError as TorchModuleError
from lsa_lab.interop.pytorch import from_torch as from_torch
from lsa_lab.interop.weights import from_linen as from_linen
from lsa_lab.interop.weights import from_nnx as from_nnx
from lsa_lab.interop.weights import from_safetensors as from_safetensors
from lsa_lab.interop.weights import to_linen as to_linen
from lsa_lab.interop.weights import to_nnx as to_nnx
from lsa_lab.interop.weights import to_safetensors as to_safetensors
