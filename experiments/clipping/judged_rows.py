"""Judged statements as rows of a panel, each with the bound that it is to keep in words."""

import numpy as np

from lsa_lab.harness import style


def judged_rows(ax, statements, samples, labels):  # labels {id: text}, from the top
    by_id = {statement.id: statement for statement in statements}
    rows = [by_id[id] for id in labels]
    texts = [f"{text} {_bound(row)}" for text, row in zip(labels.values(), rows, strict=True)]
    style.judged(ax, rows, samples, texts)
    ax.tick_params(axis="y", labelsize=7)


def _bound(statement):
    if statement.margin is not None:
        return f"(± {statement.margin:g})"
    signs = zip("≥≤", statement.bounds, strict=True)
    kept = [f"{sign} {bound:g}" for sign, bound in signs if np.isfinite(bound)]
    return f"({', '.join(kept)})"
