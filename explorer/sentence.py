"""What the panels show, in a sentence."""

import numpy as np

from explorer.views import Controls, Views


def sentence(controls: Controls, views: Views) -> str:
    """The risk beside ridge's and descent's, and how unequal the two largest flows are."""
    depth, risk = int(controls.depth), float(views.risks[-1])
    layers = "1 layer" if depth == 1 else f"{depth} layers"
    steps = "1 step" if depth == 1 else f"{depth} steps"
    if not np.isfinite(risk):
        return f"After {layers} the risk is no longer a number: the weights are too large."
    risks = (
        f"After {layers} the risk is {_times(risk / float(views.ridge))} ridge's and "
        f"{_times(risk / float(views.descent[-1]))} that of {steps} of descent"
    )
    first, last = float(views.ratio[0]), float(views.ratio[depth - 1])
    if int(controls.shots) == 1 or not np.isfinite([first, last]).all():
        return f"{risks}."
    return (
        f"{risks}. Of the two demonstrations with the largest flow after layer 1, the first has "
        f"{_times(first)} the flow of the second there, and {_times(last)} after layer {depth}."
    )


def _times(ratio: float) -> str:
    return f"{ratio:,.0f} times" if 100 <= ratio < 1e6 else f"{ratio:.2g} times"
