"""Other people's models: their weights as our Params, our Params in their layouts, any function.

Arrays and safetensors only; nothing is ever unpickled. Every layout's conventions (tokens, signs,
masks, normalisation) stand as formulas in the docstring of the function that reads it.
"""

from lsa_lab.interop.functions import as_forward
from lsa_lab.interop.haiku_layout import to_von_oswald, von_oswald
from lsa_lab.interop.merged_layout import ahn, to_ahn

__all__ = ["ahn", "as_forward", "to_ahn", "to_von_oswald", "von_oswald"]
