"""What the statements of `heads_per_layer` are judged by."""

import numpy as np

from experiments.heads.heads_per_layer.compute import _depths, _has_long
from experiments.heads.heads_per_layer.config import _STYLES, CLAIMS
from experiments.models.specs import FAMILIES
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def claims(dataset):
    settings = results.config_of(dataset)
    made = []
    for name in _depths(settings):
        family = FAMILIES[settings.families][name]
        measured = dataset[f"risk, {name}"].sel(shots=settings.judged).values  # [A, S]
        known = dataset.rule_risk.sel(shots=settings.judged)
        named = {kind: measured[i] for kind, i in family.named.items()}
        named |= {rule: np.full(family.seeds, float(known.sel(rule=rule))) for rule in _STYLES}
        for what, (source, statement, criterion, (over, under), bounds) in CLAIMS.items():
            if over not in named or under not in named:
                continue
            limits = {side: getattr(settings, bound) for side, bound in bounds.items()}
            said = (source, f"{statement} ({family.depth} layers)")
            criterion = "mean over seeds, " + criterion.format(**vars(settings))
            id = f"heads_per_layer.{what}_{family.depth}"
            made.append(about_the_mean(id, *said, criterion, named[over] / named[under], **limits))
        made.append(_level(dataset, settings, name, family))
    if _has_long(settings):
        made.append(_longer(dataset, settings))
    return made


def _level(dataset, settings, name, family):
    """Whether the training loss has stopped falling."""
    losses = dataset[f"loss, {name}"].values[-1]  # [S, blocks]
    sixth = max(losses.shape[-1] // 6, 1)
    ratios = losses[:, -sixth:].mean(1) / losses[:, -2 * sixth : -sixth].mean(1)
    return about_the_mean(
        f"heads_per_layer.stopped_falling_{family.depth}",
        "a check of this experiment",
        f"The full model's loss has stopped falling ({family.depth} layers)",
        "mean over seeds of the loss in the last sixth of the training over the sixth before >= "
        f"{settings.level:g}",
        ratios[np.isfinite(ratios)],
        at_least=settings.level,
    )


def _longer(dataset, settings):
    full, longer = (
        dataset[f"risk, {name}"].sel(shots=settings.judged).values[-1]
        for name in ("depth 3", "long training")
    )
    return about_the_mean(
        "heads_per_layer.long_enough",
        "a check of this experiment",
        "Four times the training lowers the full model's risk by little (3 layers)",
        f"mean over seeds of the risk after it over the risk before >= {settings.longer:g}",
        longer / full,
        at_least=settings.longer,
    )
