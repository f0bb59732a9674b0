"""``fit`` minimises the loss of a Training, writes Files, and returns a Run.

All four are imported at first use: ``status`` does not need jax.
"""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Files", "Run", "Training", "fit"]

if TYPE_CHECKING:
    from lsa_lab.training.loop import fit
    from lsa_lab.training.recipe import Files, Run, Training
else:
    _MODULES = {"fit": "loop", "Files": "recipe", "Run": "recipe", "Training": "recipe"}

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
