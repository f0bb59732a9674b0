"""What the statements of `head_lower_bound` are judged by."""

import numpy as np

from experiments.heads.head_lower_bound.config import CLAIMS
from lsa_lab import results
from lsa_lab.claims import Claim, about_the_median, verdict_of


def claims(dataset):
    settings = results.config_of(dataset)
    residual, image, ratio = dataset.residual, dataset.of_image, over_all_heads(dataset)
    best, missing = residual.min("restart"), residual.d - residual.heads
    below = dataset.image_heads < dataset["rank"]
    built = dataset.built.where(dataset.image_heads == dataset["rank"])
    fewer = ratio.sel(used=[count for count in settings.heads if count < settings.d]).values
    samples = {
        "fewer": residual.where(missing > 0).min(),
        "enough": best.where(missing == 0).max(),
        "count": abs(best - missing).where(missing > 0).max(),
        "image": built.max(),
        "image_fewer": image.where(below).min(),
        "cost": fewer[:, np.argmin(np.median(fewer, axis=0))],
    }
    made = []
    for name, (source, statement, measured, bounds) in CLAIMS.items():
        ((side, bound),) = bounds.items()
        bound = getattr(settings, bound)
        criterion = f"{measured} {'<=' if side == 'at_most' else '>='} {bound:g}"
        row = (f"head_lower_bound.{name}", source, statement, criterion)
        if np.ndim(samples[name]):
            made.append(about_the_median(*row, samples[name], **{side: bound}))
        else:  # searches: one number, without a spread
            value = float(samples[name])
            verdict = verdict_of((value, value), **{side: bound})
            made.append(Claim(*row, value, (value, value), verdict))
    return made


def over_all_heads(dataset):  # [run, used]
    return dataset.risk / dataset.risk.sel(used=results.config_of(dataset).d)
