"""One look for a trained model in all figures on heads."""

from typing import Any

from lsa_lab.harness.style import METHOD

_METHODS = {"narrow keys": "linear, narrow keys", "softmax": "softmax"}


def look_of(name: str) -> dict[str, Any]:
    """The colour and marker of a model, by its name: linear attention where it names no other."""
    return METHOD[_METHODS.get(name, "linear")]
