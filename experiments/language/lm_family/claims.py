"""What `lm_family` judges: who learns in context, beside chance, and what else is learned."""

import numpy as np

from experiments.language.lm_family.config import MAPPED
from lsa_lab.judging.statements import Statement

OURS, CONTROL = "derived here", "derived here, a control"
LEARNED = 0.75  # of two labels
# The criteria are those of before the first training; that on copying is of before its own.
LOOK = (
    "another mixture, at other seeds: at chance were width 32 after 2 000 steps (.51 [.46, .56]) "
    "and, of 16 prompts a step, 11 of mapping and 2 of copying, width 64 after 2 500 steps (.50 "
    "[.41, .59]); on one seed each, 64 prompts of mapping a step stayed there too, and half "
    "mapping, half copying did not (1.0)"
)


class Numbers:
    """Shares of right answers by size, every run's: after the last step unless said otherwise."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.most = int(dataset.shots.max())

    def share(self, name, size, shots=None, step=-1):  # [R]
        own = self.dataset[name].sel(size=size).isel(step=step)
        own = own.sel(shots=self.most if shots is None else shots) if "shots" in own.dims else own
        return own.values

    def beside_deep(self, size, deep):  # [R], or None where no deeper decoder learns either
        learned = [self.share("mapping", other).mean() >= LEARNED for other in deep]
        return self.share("mapping", size) if any(learned) else None

    def step_of_learning(self, size):  # [R'], of the runs that learn; None below two
        learned = self.dataset.mapping.sel(size=size, shots=self.most) >= LEARNED
        first = self.dataset.step.values[learned.transpose("run", "step").values.argmax(1)]
        own = first[learned.any("step").values]
        return own if len(own) > 1 else None

    def other(self, name, prompts=1):  # (share, standard error)
        share = float(self.dataset[f"other_{name}"].sel(shots=self.most))
        return share, np.sqrt(max(share * (1 - share), 1e-9) / prompts)


numbers = Numbers


def statements(config) -> tuple[Statement, ...]:
    most = config.shots[-1]
    deep = [size.name for size in config.sizes if size.depth > 1 and size.copying]
    alone = [size.name for size in config.sizes if not size.copying]
    flat = [size.name for size in config.sizes if size.depth == 1]
    every = [size.name for size in config.sizes]
    asked_words = "the share of right label words of two"
    after = f"after {most} demonstrations"
    judged = dict(over="seeds", revision=LOOK)
    common = (
        f"all seeds are asked the same {config.prompts} prompts, whose own error of "
        f"{0.5 / config.prompts**0.5:.2g} is not in the interval"
    )
    return (
        Statement(
            "learns",
            OURS,
            "decoders of two layers or more that are trained here learn in context: {size}",
            f"{asked_words}, of classes that every prompt names anew, {after}",
            at_least=LEARNED,
            sample=lambda n, size: n.share("mapping", size),
            cells={f"learns_{size}": {"size": size} for size in deep},
            message="decoders of two layers or more that are trained here learn in context",
            note="chance is .5",
            **judged,
        ),
        Statement(
            "without_copying",
            OURS,
            "without copying in the mixture mapping is not learned in as many steps: {size}",
            f"{asked_words} {after}",
            at_most=0.6,
            sample=lambda n, size: n.beside_deep(size, deep),
            cells={f"without_copying_{size}": {"size": size} for size in alone},
            message="without copying in the mixture mapping is not learned in as many steps",
            note="prompts of mapping stand in place of copying; copying without mapping, and text "
            "in place of copying, were not tried; judged where decoders learn, as one_layer is",
            **judged,
        ),
        Statement(
            "emerges",
            OURS,
            "the step at which demonstrations are used: {size}",
            f"the first step that was looked at with a share of {LEARNED} {after}",
            unjudged="a step is no claim",
            over="seeds that learn",
            sample=lambda n, size: n.step_of_learning(size),
            cells={f"emerges_{size}": {"size": size} for size in deep},
        ),
        Statement(
            "one_layer",
            OURS,
            "one layer does not learn in context: {size}",
            f"{asked_words} {after}",
            at_most=0.6,
            sample=lambda n, size: n.beside_deep(size, deep),
            cells={f"one_layer_{size}": {"size": size} for size in flat},
            note="a label is one token after its word: to bind them takes a layer of its own; not "
            "judged where deeper ones are at chance too, which was added after a look",
            **judged,
        ),
        Statement(
            "shuffled",
            CONTROL,
            "labels that have nothing to do with the classes leave chance: {size}",
            f"{asked_words} {after} whose labels are drawn anew, less .5,",
            margin=0.05,
            sample=lambda n, size: n.share("shuffled", size) - 0.5,
            cells={f"shuffled_{size}": {"size": size} for size in every},
            note=common,
            message="labels that have nothing to do with the classes leave chance",
            **judged,
        ),
        Statement(
            "untrained",
            CONTROL,
            "before the first step answers are at chance: {size}",
            f"{asked_words} {after}, less .5,",
            margin=0.05,
            sample=lambda n, size: n.share("mapping", size, step=0) - 0.5,
            cells={f"untrained_{size}": {"size": size} for size in every},
            note=common,
            message="before the first step answers are at chance",
            **judged,
        ),
        Statement(
            "more",
            OURS,
            f"{most} demonstrations help more than one: {{size}}",
            f"{asked_words}, {after} less after one,",
            at_least=0.02,
            sample=lambda n, size: n.share("mapping", size) - n.share("mapping", size, shots=1),
            cells={f"more_{size}": {"size": size} for size in deep},
            message=f"{most} demonstrations help more than one",
            **judged,
        ),
        Statement(
            "tokens",
            OURS,
            "decoders of two layers or more learn {task}: {size}",
            "the share of fresh answers that are the likeliest of all words",
            at_least=0.9,
            sample=lambda n, size, task: n.share(task, size),
            cells={f"copying_{size}": {"size": size, "task": "copying"} for size in deep}
            | {f"counting_{size}": {"size": size, "task": "counting"} for size in deep},
            message="decoders of two layers or more learn copying and counting",
            **judged,
        ),
        Statement(
            "sentiment",
            OURS,
            "the sentiment of fresh reviews is told in context: {size}",
            f"{asked_words}, for the sentiment of the first words of a review, after the "
            "demonstrations that a prompt has room for",
            at_least=0.55,
            sample=lambda n, size: n.share("sentiment", size),
            cells={f"sentiment_{size}": {"size": size} for size in deep},
            message="the sentiment of fresh reviews is told in context",
            note="chance is .5",
            **judged,
        ),
        Statement(
            "sentiment_null",
            CONTROL,
            "labels that have nothing to do with sentiments leave chance: {size}",
            f"{asked_words} after reviews whose labels are drawn anew, less .5,",
            margin=0.05,
            sample=lambda n, size: n.share("sentiment_shuffled", size) - 0.5,
            cells={f"sentiment_null_{size}": {"size": size} for size in deep},
            message="labels that have nothing to do with sentiments leave chance",
            **judged,
        ),
        Statement(
            "other",
            OURS,
            f"{config.model_name} on prompts of the same law, {{labels}} labels",
            f"{asked_words} {after}",
            "estimate",
            unjudged="a comparison: its training is not ours",
            sample=lambda n, labels: n.other(labels, config.other_prompts),
            cells={f"other_{name}": {"labels": name} for name in MAPPED},
        ),
    )
