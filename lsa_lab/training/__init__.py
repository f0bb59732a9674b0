"""``fit`` minimises the loss of a Training, writes Files, and returns a Run."""

from lsa_lab.training.loop import fit
from lsa_lab.training.recipe import Files, Run, Training

__all__ = ["Files", "Run", "Training", "fit"]
