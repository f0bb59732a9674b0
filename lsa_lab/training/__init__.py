"""``fit`` minimises what a Training says, leaves Files, and returns a Run.

The four are loaded when they are first used: what a program says while a training lasts, and how
one ended, leave jax out.
"""

import importlib
from typing import TYPE_CHECKING, Any

__all__ = ["Files", "Run", "Training", "fit"]

if TYPE_CHECKING:
    from lsa_lab.training.loop import fit
    from lsa_lab.training.recipe import Files, Run, Training
else:
    _FILES = {"fit": "loop", "Files": "recipe", "Run": "recipe", "Training": "recipe"}

    def __getattr__(name: str) -> Any:
        if name not in _FILES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
