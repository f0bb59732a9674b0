"""What `lm_family` judges: who learns in context, beside chance, and what else is learned."""

import numpy as np

from experiments.language.data_sets import called
from experiments.language.lm_family.config import MAPPED
from lsa_lab.judging.statements import Statement

OURS, CONTROL = "derived here", "derived here, a control"
SHARE = "the share of right label words of two"
LEARNED = 0.75  # of two labels
# The criteria are those of before the first training; that on copying is of before its own.
LOOK = "another mixture, at other seeds"
TRIED = (
    f"{LOOK}: at chance were width 32 after 2 000 steps (.51 [.46, .56]) and, of 16 prompts a "
    "step, 11 of mapping and 2 of copying, width 64 after 2 500 steps (.50 [.41, .59]); on one "
    "seed each, 64 prompts of mapping a step stayed there too, and half mapping, half copying did "
    "not (1.0)"
)
ABLE = "decoders of two layers or more that are trained here"


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
    deep = [size.name for size in config.sizes if size.depth > 1 and size.copying]
    after = f"after {config.shots[-1]} demonstrations"
    common = (
        f"all seeds are asked the same {config.prompts} prompts, whose own error of "
        f"{0.5 / config.prompts**0.5:.2g} is not in the interval"
    )

    def by_size(id, source, says, measured, ids, sample, **fields):
        return Statement(
            id,
            source,
            f"{says}: {{size}}",
            measured,
            sample=sample,
            cells={each: {"size": each.removeprefix(f"{id}_")} for each in ids},
            message=says,
            **dict(over="seeds", revision=LOOK) | fields,
        )

    def apart(test):  # names of the sizes that are alike
        return [size.name for size in config.sizes if test(size)]

    return (
        by_size(
            "learns",
            OURS,
            f"{ABLE} learn in context",
            f"{SHARE}, of classes that every prompt names anew, {after}",
            [f"learns_{size}" for size in deep],
            lambda n, size: n.share("mapping", size),
            at_least=LEARNED,
            note="chance is .5",
            revision=TRIED,
        ),
        by_size(
            "without_copying",
            OURS,
            "without copying in the mixture mapping is not learned in as many steps",
            f"{SHARE} {after}",
            [f"without_copying_{size}" for size in apart(lambda size: not size.copying)],
            lambda n, size: n.beside_deep(size, deep),
            at_most=0.6,
            note="prompts of mapping stand in place of copying; copying without mapping, and text "
            "in place of copying, were not tried; judged where decoders learn, as one_layer is",
        ),
        by_size(
            "emerges",
            OURS,
            "demonstrations are used from a step on",
            f"the first step that was looked at with a share of {LEARNED} {after}",
            [f"emerges_{size}" for size in deep],
            lambda n, size: n.step_of_learning(size),
            unjudged="a step is no claim",
            over="seeds that learn",
            revision="",
        ),
        by_size(
            "one_layer",
            OURS,
            "one layer does not learn in context",
            f"{SHARE} {after}",
            [f"one_layer_{size}" for size in apart(lambda size: size.depth == 1)],
            lambda n, size: n.beside_deep(size, deep),
            at_most=0.6,
            note="a label is one token after its word: to bind them takes a layer of its own; not "
            "judged where deeper ones are at chance too, which was added after a look",
        ),
        by_size(
            "shuffled",
            CONTROL,
            "labels that have nothing to do with the classes leave chance",
            f"{SHARE} {after} whose labels are drawn anew, less .5,",
            [f"shuffled_{size}" for size in apart(bool)],
            lambda n, size: n.share("shuffled", size) - 0.5,
            margin=0.05,
            note=common,
        ),
        by_size(
            "untrained",
            CONTROL,
            "before the first step answers are at chance",
            f"{SHARE} {after}, less .5,",
            [f"untrained_{size}" for size in apart(bool)],
            lambda n, size: n.share("mapping", size, step=0) - 0.5,
            margin=0.05,
            note=common,
        ),
        by_size(
            "more",
            OURS,
            f"{config.shots[-1]} demonstrations help more than one",
            f"{SHARE}, {after} less after one,",
            [f"more_{size}" for size in deep],
            lambda n, size: n.share("mapping", size) - n.share("mapping", size, shots=1),
            at_least=0.02,
        ),
        Statement(
            "tokens",
            OURS,
            f"{ABLE} learn {{task}}: {{size}}",
            "the share of fresh answers that are the likeliest of all words",
            at_least=0.9,
            over="seeds",
            revision=LOOK,
            sample=lambda n, size, task: n.share(task, size),
            cells={f"copying_{size}": {"size": size, "task": "copying"} for size in deep}
            | {f"counting_{size}": {"size": size, "task": "counting"} for size in deep},
            message=f"{ABLE} learn copying and counting",
        ),
        by_size(
            "sentiment",
            OURS,
            "the sentiment of fresh reviews is told in context",
            f"{SHARE}, for the sentiment of the first words of a review, after the demonstrations "
            "that a prompt has room for",
            [f"sentiment_{size}" for size in deep],
            lambda n, size: n.share("sentiment", size),
            at_least=0.55,
            note="chance is .5",
        ),
        by_size(
            "sentiment_null",
            CONTROL,
            "labels that have nothing to do with sentiments leave chance",
            f"{SHARE} after reviews whose labels are drawn anew, less .5,",
            [f"sentiment_null_{size}" for size in deep],
            lambda n, size: n.share("sentiment_shuffled", size) - 0.5,
            margin=0.05,
        ),
        Statement(
            "other",
            OURS,
            f"{called(config.model_name)} answers prompts of the same law: {{labels}} labels",
            f"{SHARE} {after}",
            "estimate",
            unjudged="a comparison: its training is not ours",
            sample=lambda n, labels: n.other(labels, config.other_prompts),
            cells={f"other_{name}": {"labels": name} for name in MAPPED},
            message=f"{called(config.model_name)} answers prompts of the same law",
        ),
    )
