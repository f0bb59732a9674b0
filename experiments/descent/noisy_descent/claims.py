"""What `noisy_descent` judges: the shape and the size of the noise of updates, and how descent with
such noise tests beside the model."""

from functools import partial

import numpy as np

from experiments.descent.specs import STACK, spec_of
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.store import results


class Noise:
    """A result's noise, and its risks, at the length of training."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.n = max(spec_of(results.config_of(dataset), STACK).task.lengths)
        self.linear, self.softmax = dataset.sel(shots=self.n), dataset.sel(state="trained")

    def shape(self, stack, name, reading="query"):  # [R]
        """The excess kurtosis, or the share that passes the test, of trained stacks."""
        if stack == "softmax":
            return self.softmax[f"softmax_{name}"].mean("softmax_layer").values
        return layer_mean(self.linear[name].sel(state="trained", reading=reading))

    def layer_excess(self, stack, layer):  # [R], or None: a smaller tier lacks the layer
        """The excess kurtosis at one layer of trained stacks."""
        axis = "softmax_layer" if stack == "softmax" else "layer"
        values = self.softmax.softmax_excess
        if stack == "linear":
            values = self.linear["excess"].sel(state="trained", reading="query")
        return values.sel({axis: layer}).values if layer in values[axis].values else None

    def gained(self, name, **place):  # [R]
        """Trained less untrained."""
        values = self.linear[name].sel(**place)
        return layer_mean(values.sel(state="trained") - values.sel(state="untrained"))

    def risks(self, path, name="risk"):  # [R]
        return self.dataset[name].sel(path=path).values

    def ratio(self, path, base="model", name="risk"):  # [R]
        return self.risks(path, name) / self.risks(base, name)

    def share_by_shots(self):  # [R]
        share = self.dataset["share"].sel(state="trained").mean("layer")
        return (share.sel(shots=2 * self.n) / share.sel(shots=self.n)).values


def layer_mean(values) -> np.ndarray:  # (run, layer) -> [R]
    return values.mean("layer").values


SAME_SHAPE = 0.1  # excess kurtosis up to which noise counts as Gaussian
ALIKE = 0.1  # relative difference of risks up to which two descents test alike

ASSUMPTION = "A2 (2406.03768), Assumption 1, our reading, in our setting"
REMARK = "A2 (2406.03768), Remark 3, in our setting"
NOISE = "A2 (2406.03768), appendix C.4, in our setting"
ONE_TASK = "over prompts of one task; the mean over layers and tasks"
RISK = "the mean over prompts of |w_L - w|², each at most |w|², the error of predicting 0"
SHARE = "E|G - E G|² / E|G|² over prompts of one task, the mean over layers and tasks,"

STACKS = {"linear": "linear stack", "softmax": "softmax transformer"}


numbers = Noise


def statements(config) -> tuple[Statement, ...]:
    excess = f"excess kurtosis of what an update adds to the answer, {ONE_TASK},"
    return (
        Statement(
            "gaussian",
            ASSUMPTION,
            "The noise of a trained {model}'s updates is Gaussian",
            excess,
            margin=SAME_SHAPE,
            note="{note}",
            sample=lambda c, stack: c.shape(stack, "excess"),
            cells=grid("gaussian_linear gaussian_softmax", stack=STACKS),
            words=lambda stack: dict(
                model=STACKS[stack],
                note={
                    "linear": "at the first layer between 12/(n e) and 12/n, a theorem",
                    "softmax": "at one query; softmax has no update that is common to all",
                }[stack],
            ),
            message="The noise of trained updates, of linear stacks and of softmax transformers, "
            "is Gaussian",
        ),
        Statement(
            "gaussian_by_layer",
            ASSUMPTION,
            "The noise of updates at layer {layer} of a trained {model} is Gaussian",
            "excess kurtosis of what an update adds to the answer, over prompts of one task; the "
            "mean over tasks,",
            margin=SAME_SHAPE,
            revision="added, for the mean over layers is carried by the last one",
            sample=Noise.layer_excess,
            cells=grid(
                "linear_early_1 linear_early_2 linear_early_3 linear_last "
                "softmax_early_1 softmax_early_2 softmax_early_3 softmax_last",
                stack=STACKS,
                layer=(1, 2, 3, 4),
            ),
            words=lambda stack, layer: dict(model=STACKS[stack]),
            message="The noise of trained updates is Gaussian, each layer apart",
        ),
        Statement(
            "gaussian_whole",
            ASSUMPTION,
            "The noise of a linear stack's whole update, in random directions, is Gaussian",
            f"excess kurtosis of R·G, R of independent N(0, 1), {ONE_TASK},",
            margin=SAME_SHAPE,
            sample=lambda c: c.shape("linear", "excess", "whole"),
        ),
        Statement(
            "passes",
            ASSUMPTION,
            "A test of normality lets the noise of a trained {model} pass",
            f"the share of layers and tasks whose {config.prompts} updates a test of normality at "
            "5 % lets pass",
            at_least=0.9,  # of normal noise .95
            note="Jarque and Bera's test, of what an update adds to the answer; critical value "
            "simulated",
            sample=lambda c, stack: c.shape(stack, "passed"),
            cells=grid("passes_linear passes_softmax", stack=STACKS),
            words=lambda stack: dict(model=STACKS[stack]),
            message="A test of normality lets the noise of trained updates, of linear stacks and "
            "of softmax transformers, pass",
        ),
        *about_the_test(),
        Statement(
            "less_with_shots",
            NOISE,
            "The more demonstrations, the less noise is in the updates",
            f"{SHARE} at 2n over that at n",
            "ratio",
            at_most=0.75,
            note="at the first layer it halves but for its own weight in the size: a theorem",
            sample=lambda c: c.share_by_shots(),
        ),
        Statement(
            "less_with_training",
            NOISE,
            "Training takes noise out of the updates",
            f"{SHARE} after training less before",
            at_most=0.0,
            note="16 runs of the laptop tier leave it open, 57 of the paper tier decide",
            sample=lambda c: c.gained("share"),
        ),
    )


def about_the_test() -> tuple[Statement, ...]:
    """Risks of descent with noise over those of the model, and of each other."""
    alike = partial(Statement, statistic="ratio", margin=ALIKE)
    noises = {
        "Eq. 4": dict(
            source=REMARK,
            noise="a draw for each step (Eq. 4)",
            note="noise of the covariance that fresh demonstrations give G_t, given W_{t-1}",
        ),
        "Gaussian, same": dict(
            source="A2 (2406.03768), Remark 3, our reading, in our setting",
            noise="one draw for all steps",
            note="one prompt's demonstrations are the same in all layers",
        ),
    }
    subjects = {"Eq. 4": "Descent with Gaussian noise (Eq. 4)", "fresh demonstrations": "The model"}
    return (
        alike(
            "tests_like_the_model",
            "{source}",
            "Implicit descent with Gaussian noise, {noise}, tests like the model",
            f"the risk of that descent over the model's: {RISK},",
            note="{note}",
            sample=lambda c, path: c.ratio(path),
            cells=grid("tests_alike one_draw_alike", path=noises),
            words=lambda path: noises[path],
            message="Implicit descent with Gaussian noise, a draw for each step (Eq. 4) or one for "
            "all steps, tests like the model",
        ),
        alike(
            "typically_alike",
            REMARK,
            "Descent with Gaussian noise (Eq. 4) does as well as the model on the typical prompt",
            "Eq. 4's |w_L - w|² over the model's, the median over prompts of each,",
            sample=lambda c: c.ratio("Eq. 4", name="typical"),
        ),
        alike(
            "tests_like_sgd",
            REMARK,
            "{subject} tests like stochastic gradient descent",
            f"the risk of {{whose}}: {RISK},",
            note="stochastic gradient descent has the weights of the model and fresh "
            "demonstrations for each step, as in the works that Remark 3 cites",
            sample=lambda c, path, base: c.ratio(path, base),
            cells={
                "sgd_alike": dict(path="Eq. 4", base="fresh demonstrations"),
                "learns_like_sgd": dict(path="fresh demonstrations", base="model"),
            },
            words=lambda path, base: dict(
                subject=subjects[path],
                whose="Eq. 4 over that of descent with fresh demonstrations"
                if path == "Eq. 4"
                else "descent with fresh demonstrations over the model's",
            ),
            message="Descent with Gaussian noise (Eq. 4) and the model test like stochastic "
            "gradient descent",
        ),
        Statement(
            "size_matters",
            "derived here",
            "Half the noise of Eq. 4 tests better",
            f"its risk over Eq. 4's: {RISK},",
            "ratio",
            at_most=0.9,
            sample=lambda c: c.ratio("half the noise", "Eq. 4"),
        ),
    )
