"""What the program does: each command is the module of its name, which obeys it.

A module has ``obey(options) -> status`` and imports jax, or what imports it, inside functions only.
A command is added as a module here, a row of USAGE in ``options.py``, and its name beside each
option there that it takes.
"""
