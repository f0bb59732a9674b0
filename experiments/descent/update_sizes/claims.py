"""What `update_sizes` judges: slopes of the sizes of updates over the number of shots."""

import numpy as np

from lsa_lab.judging.statements import Statement, grid

SHOTS = "A2 (2406.03768), Remark 6 (ii), in our setting"
OUR_READING = "A2 (2406.03768), Remark 6 (ii), our reading, in our setting"
LAYERS = "the median over prompts, the geometric mean over layers"
RANGE = "from half to twice the shots of training,"

GROWING = {
    ("linear", "update"): dict(
        source=SHOTS,
        subject="The updates of a trained linear stack grow",
        symbol="|G_t|",
        label="|G|",
        note="divided by n, as our layers are; of the first layer a theorem says how it falls",
    ),
    ("softmax", "update"): dict(
        source=SHOTS,
        subject="The updates of trained softmax attention grow",
        symbol="|ΔW|",
        label="|ΔW|",
        note="in the feature space of A.2, keys as trained: keys 4 times and queries 1/4 times as "
        "large are the same function, and the slope is then .7 ± .7; balanced, as in "
        "norms_and_updates, -.44 ± .11",
    ),
    ("softmax", "written"): dict(
        source=OUR_READING,
        subject="What a softmax layer adds to the query grows",
        symbol="|ΔW φ|",
        label="|ΔW φ|",
        note="",
    ),
}
WITHOUT_DIVISORS = {
    "linear": dict(
        divisor="the division by n, as in A2",
        symbol="n |G_t|",
        label="n |G|",
        note="of the weights trained with it",
    ),
    "softmax": dict(
        divisor="the normaliser of the softmax, as A2's linear layers have none",
        symbol="Z |ΔW|",
        label="Z |ΔW|",
        note="keys as trained: with keys 1/8 to 8 times as large, and queries 8 to 1/8 times, the "
        "same function, the slope is .35 to 6.8; balanced .59 ± .07",
    ),
}


def slope(sizes) -> np.ndarray:  # (run, factor, layer) -> [R]
    """d log / d log n from half to twice the shots of training, the mean over layers."""
    layer = next(axis for axis in sizes.dims if axis.endswith("layer"))
    logs = np.log(sizes).mean(layer)
    return ((logs.sel(factor=2.0) - logs.sel(factor=0.5)) / np.log(4)).values


def softmax_slope(dataset, size) -> np.ndarray:  # [R]
    return slope(dataset["size"].sel(kind=size))


def over_ridge(dataset) -> float:
    """The geometric mean over runs of the softmax models' risk over that of ridge regression."""
    ratio = dataset.risk.sel(rule="model") / dataset.risk.sel(rule="ridge")
    return float(np.exp(np.log(ratio).mean()))


def statements(config) -> tuple[Statement, ...]:
    positive = dict(
        at_least=0.0,
        revision="it was the root mean square over prompts, averaged over layers, which at few "
        "shots a rare prompt decides, and was once not finite",
        redrawn="fresh prompts",
    )
    clipped = f"when W_V is clipped at rate {config.rate:g} ({LAYERS}) over log n, {RANGE}"
    return (
        Statement(
            "grows",
            "{source}",
            "{subject} with the number of demonstrations",
            f"the slope of log {{symbol}} ({LAYERS}) over log n, {RANGE}",
            note="{note}",
            label="{stack}: {label}",
            sample=lambda d, stack, size: (
                slope(d.linear) if stack == "linear" else softmax_slope(d, size)
            ),
            cells={
                "linear_grows": dict(stack="linear", size="update"),
                "softmax_grows": dict(stack="softmax", size="update"),
                "written_grows": dict(stack="softmax", size="written"),
            },
            words=lambda stack, size: GROWING[stack, size],
            message="Updates of trained layers, linear and softmax, and what softmax layers write "
            "grow with the number of demonstrations",
            **positive,
        ),
        Statement(
            "grows_as_in_the_paper",
            OUR_READING,
            "The same without {divisor}",
            f"the slope of log {{symbol}} ({LAYERS}) over log n, {RANGE}",
            note="{note}",
            label="{stack}: {label}",
            sample=lambda d, stack: (
                slope(d.linear) + 1 if stack == "linear" else softmax_slope(d, "paper")
            ),
            cells=grid(
                "linear_grows_as_in_the_paper softmax_grows_as_in_the_paper",
                stack=("linear", "softmax"),
            ),
            words=lambda stack: WITHOUT_DIVISORS[stack],
            message="Updates of trained layers, linear and softmax, grow with the number of "
            "demonstrations if nothing divides them, as in A2",
            **positive,
        ),
        Statement(
            "more_sensitive",
            SHOTS,
            "The more demonstrations, the more clipping a value matrix changes what it writes",
            f"the slope of log |change| {clipped}",
            label="change by clipping",
            sample=lambda d: softmax_slope(d, "change"),
            **positive,
        ),
        Statement(
            "relatively_more_sensitive",
            OUR_READING,
            "The same, beside what it writes",
            f"the slope of log |change| over |ΔW φ| {clipped}",
            label="the same, relative",
            sample=lambda d: softmax_slope(d, "relative change"),
            **positive,
        ),
    )
