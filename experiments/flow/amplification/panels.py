"""The cases that each panel of the figure of `amplification` draws, and how."""

from experiments.flow.amplification.config import CONSTRUCTED
from lsa_lab.harness import style

LABELS = {"linear": "linear", "softmax": "softmax", "norm": "+ norm", "MLP": "+ norm + MLP"}


def panels(config):
    """{title: [(label, case, mode or reading, colour, marker)]}"""
    kinds, (dot, square) = config.kinds, style.MARKERS[:2]
    colour = dict(zip((*LABELS, *config.gains), style.COLOURS * 3, strict=False))
    linear = [
        (f"{tied}gain {gain:g}", f"linear: {tied}gain {gain:g}", {}, colour[gain], mark)
        for tied, mark in (("", dot), ("tied, ", square))
        for gain in config.gains
    ]
    return {
        "linear, random, each alone": linear,
        "linear, random, both in one prompt": [
            (label, case, {"mode": "together"}, *look) for label, case, _, *look in linear
        ],
        "softmax, random, each alone": [
            (f"{LABELS[kind]}, gain {gain:g}", f"{kind}: gain {gain:g}", {}, colour[kind], mark)
            for gain, mark in ((config.gain, dot), (config.gains[-1], square))
            for kind in kinds[1:]
        ],
        "linear, constructed, each alone": [
            (label, case, {"reading": reading}, color, dot)
            for (label, (case, reading)), color in zip(
                CONSTRUCTED.items(), style.COLOURS, strict=False
            )
        ],
        f"trained, two of {config.shots} in a prompt": [
            (f"{LABELS[kind]}{after}", f"{stage}: {kind}", {}, colour[kind], mark)
            for stage, after, mark in (("trained", "", dot), ("untrained", ", before", square))
            for kind in config.trained_kinds
        ],
    }


def shares(config):
    """The rows of the last panel, [(label, case, mode or reading)]."""
    gain = f"gain {config.gain:g}"
    skipping = [kind for kind in ("linear", "softmax") if kind in config.kinds]
    return [
        *[(f"linear, gain {g:g}", f"linear: gain {g:g}", {}) for g in config.gains],
        (f"linear, {gain}, in one prompt", f"linear: {gain}", {"mode": "together"}),
        *[(f"linear, {gain}, d = {d}", f"linear: d = {d}", {}) for d in config.widths],
        *[(f"{LABELS[kind]}, {gain}", f"{kind}: {gain}", {}) for kind in config.kinds[1:]],
        *[
            (f"{kind}, residual × {weight:g}", f"{kind}: skip {weight:g}", {})
            for kind in skipping
            for weight in config.skips
        ],
        *[(label, case, {"reading": reading}) for label, (case, reading) in CONSTRUCTED.items()],
        *[(f"trained {LABELS[kind]}", f"trained: {kind}", {}) for kind in config.trained_kinds],
    ]
