"""Packages that only a part of the library needs: imported where they are used."""

import importlib
from types import ModuleType


def package(name: str, extra: str) -> ModuleType:
    """The module, or an ImportError that names the extra with which it comes."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"{name} is not installed; it comes with an extra: pip install 'lsa-lab[{extra}]'"
        ) from error
