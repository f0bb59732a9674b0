"""Other people's models: their weights in our Params, ours in their layouts, any function of tokens.

Arrays and safetensors only; nothing is ever unpickled. Every layout's conventions (tokens, signs,
masks, normalisation) stand as formulas in the docstring of the function that reads it.
"""
