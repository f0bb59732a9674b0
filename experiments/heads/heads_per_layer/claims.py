"""What the statements of `heads_per_layer` are judged by."""

import numpy as np

from experiments.heads.heads_per_layer.config import CLAIMS, LONG, STYLES, depths
from experiments.models.specs import Spec, restored
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def claims(dataset):
    config, rows = results.config_of(dataset), []
    for name, saved in depths(config):
        spec = restored(saved)
        depth, seeds = spec.architecture.depth, spec.training.seeds
        measured = dataset[f"risk, {name}"].sel(shots=config.judged).values  # [A, S]
        of_rules = dataset.rule_risk.sel(shots=config.judged)
        risks = {kind: measured[i] for kind, i in spec.architecture.places.items()}
        risks |= {rule: np.full(seeds, float(of_rules.sel(rule=rule))) for rule in STYLES}
        for what, (source, statement, criterion, (over, under), bounds) in CLAIMS.items():
            if over not in risks or under not in risks:
                continue
            limits = {side: getattr(config, bound) for side, bound in bounds.items()}
            texts = (source, f"{statement} ({depth} layers)")
            criterion = "mean over seeds, " + criterion.format(**vars(config))
            id = f"heads_per_layer.{what}_{depth}"
            rows.append(about_the_mean(id, *texts, criterion, risks[over] / risks[under], **limits))
        rows.append(_level(dataset, config, name, spec))
    if LONG in dict(config.models):
        rows.append(_longer(dataset, config))
    return rows


def _level(dataset, config, name, spec: Spec):
    """Whether the training loss has stopped falling."""
    losses = dataset[f"loss, {name}"].values[-1]  # [S, blocks]
    sixth = max(losses.shape[-1] // 6, 1)
    ratios = losses[:, -sixth:].mean(1) / losses[:, -2 * sixth : -sixth].mean(1)
    return about_the_mean(
        f"heads_per_layer.stopped_falling_{spec.architecture.depth}",
        "a check of this experiment",
        f"The full model's loss has stopped falling ({spec.architecture.depth} layers)",
        "mean over seeds of the loss in the last sixth of the training over the sixth before >= "
        f"{config.level:g}",
        ratios[np.isfinite(ratios)],
        at_least=config.level,
    )


def _longer(dataset, config):
    full, longer = (
        dataset[f"risk, {name}"].sel(shots=config.judged).values[-1] for name in ("depth 3", LONG)
    )
    return about_the_mean(
        "heads_per_layer.long_enough",
        "a check of this experiment",
        "Four times the training lowers the full model's risk by little (3 layers)",
        f"mean over seeds of the risk after it over the risk before >= {config.longer:g}",
        longer / full,
        at_least=config.longer,
    )
