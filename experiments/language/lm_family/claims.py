"""What `lm_family` judges: who learns in context, beside chance, and what else is learned."""

import numpy as np

from experiments.language.data_sets import called
from experiments.language.lm_family.config import MAPPED
from lsa_lab.judging.statements import Statement

OURS = "derived here"
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
LACKS = {  # what a decoder lacks that does not learn
    "a layer": dict(
        says="one layer does not learn in context",
        note="a label is one token after its word: to bind them takes a layer of its own; not "
        "judged where deeper ones are at chance too, which was added after a look",
    ),
    "copying": dict(
        says="without copying in the mixture mapping is not learned in as many steps",
        note="prompts of mapping stand in place of copying; copying without mapping, and text "
        "in place of copying, were not tried; judged where decoders learn, as one_layer is",
    ),
}


class Numbers:
    """Shares of right answers by size, every run's: after the last step unless said otherwise."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.most = int(dataset.shots.max())

    def share(self, name, size, shots=None, step=-1):  # [R]
        own = self.dataset[name].sel(size=size).isel(step=step)
        shots = self.most if shots is None else shots  # 0 is a number of shots
        return (own.sel(shots=shots) if "shots" in own.dims else own).values

    def learns(self, size) -> bool:
        return self.share("mapping", size).mean() >= LEARNED

    def beside_deep(self, size, deep):  # [R], or None where no deeper decoder learns either
        return self.share("mapping", size) if any(map(self.learns, deep)) else None

    def null(self, name, size):  # [R]
        own = ("mapping", size, None, 0) if name == "untrained" else (name, size)
        return self.share(*own) - 0.5

    def other(self, name, prompts=1):  # (share, standard error)
        share = float(self.dataset[f"other_{name}"].sel(shots=self.most))
        return share, np.sqrt(max(share * (1 - share), 1e-9) / prompts)


numbers = Numbers


def statements(config) -> tuple[Statement, ...]:
    every = [size.name for size in config.sizes]
    deep = [size.name for size in config.sizes if size.depth > 1 and size.copying]
    single = [size.name for size in config.sizes if size.depth == 1]
    uncopied = [size.name for size in config.sizes if not size.copying]
    after = f"after {config.shots[-1]} demonstrations"
    again = "whose labels are drawn anew"
    nulls = {  # says, after what
        "shuffled": ("labels drawn anew leave chance", f"{after} {again}"),
        "untrained": ("before the first step answers are at chance", after),
        "sentiment_shuffled": ("sentiments drawn anew leave chance", f"after reviews {again}"),
    }

    def state(id, says, measured, cells, source=OURS, revision=LOOK, **fields):
        own = dict(over="seeds", cells=cells, revision=revision, message=says) | fields
        return Statement(id, source, f"{says}: {{size}}", measured, **own)

    return (
        state(
            "learns",
            f"{ABLE} learn in context",
            f"{SHARE}, of classes that every prompt names anew, {after}",
            {f"learns_{size}": {"size": size} for size in deep},
            revision=TRIED,
            at_least=LEARNED,
            note="chance is .5",
            sample=lambda n, size: n.share("mapping", size),
        ),
        state(
            "lacking",
            "{says}",
            f"{SHARE} {after}",
            {f"one_layer_{size}": {"lacks": "a layer", "size": size} for size in single}
            | {f"without_copying_{size}": {"lacks": "copying", "size": size} for size in uncopied},
            at_most=0.6,
            note="{note}",
            sample=lambda n, size, lacks: n.beside_deep(size, deep),
            words=lambda size, lacks: LACKS[lacks],
            message="with one layer, or without copying in the mixture, nothing is learned in "
            "context in as many steps",
        ),
        state(
            "chance",
            "{says}",
            f"{SHARE} {{after}}, less .5,",
            {f"shuffled_{size}": {"null": "shuffled", "size": size} for size in every}
            | {f"untrained_{size}": {"null": "untrained", "size": size} for size in every}
            | {
                f"sentiment_null_{size}": {"null": "sentiment_shuffled", "size": size}
                for size in deep
            },
            source=f"{OURS}, a control",
            margin=0.05,
            note=f"all seeds are asked the same {config.prompts} prompts, whose own error of "
            f"{0.5 / config.prompts**0.5:.2g} is not in the interval",
            sample=lambda n, size, null: n.null(null, size),
            words=lambda size, null: dict(zip(("says", "after"), nulls[null], strict=True)),
            message="without training, and where labels say nothing, answers are at chance",
        ),
        state(
            "more",
            f"{config.shots[-1]} demonstrations help more than one",
            f"{SHARE}, {after} less after one,",
            {f"more_{size}": {"size": size} for size in deep},
            at_least=0.02,
            sample=lambda n, size: n.share("mapping", size) - n.share("mapping", size, shots=1),
        ),
        state(
            "tokens",
            f"{ABLE} learn {{task}}",
            "the share of fresh answers that are the likeliest of all words",
            {f"copying_{size}": {"size": size, "task": "copying"} for size in deep}
            | {f"counting_{size}": {"size": size, "task": "counting"} for size in deep},
            at_least=0.9,
            sample=lambda n, size, task: n.share(task, size),
            message=f"{ABLE} learn copying and counting",
        ),
        state(
            "sentiment",
            "the sentiment of fresh reviews is told in context",
            f"{SHARE}, for the sentiment of the first words of a review, after the demonstrations "
            "that a prompt has room for",
            {f"sentiment_{size}": {"size": size} for size in deep},
            at_least=0.55,
            note="chance is .5",
            sample=lambda n, size: n.share("sentiment", size),
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
        ),
    )
