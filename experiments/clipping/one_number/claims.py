"""What `one_number` judges: what clipping leaves beyond one number, and how affine it is."""

from functools import partial

from experiments.clipping.clipped_models import PARTS
from experiments.clipping.one_number.config import (
    CALIBRATED,
    CLASSES,
    CLIPPED,
    CUBIC,
    MODELS,
    NO_NOISE,
    RANDOM_EDIT,
    REGRESSION,
    SIZED,
    TASKS,
    THRESHOLD,
    UNEDITED,
)
from lsa_lab.judging.statements import Statement, grid

OURS = "derived here"
NOTHING = 0.02  # share of the risk that is no gain to speak of
READ = {"AUC": "auc", "calibrated cross-entropy": "calibrated entropy"}
NAMES = {CLASSES: "two-class models", REGRESSION: "regression models"}
LOWERED = "the words said that it raises accuracy, and all lower it"


class Numbers:
    """Changes by rule and gains by map, [R], and shares of affine maps."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.change = dataset.test - dataset.test.sel(rule=UNEDITED, drop=True)

    def changes(self, rule, reading="accuracy"):  # [R]
        return self.change.sel(rule=rule, reading=reading).mean("task").values

    def searched(self, kind):  # [R]
        """The change of accuracy by a search, averaged over parts and tasks."""
        names = [f"{kind}, {part}" for part in PARTS]
        return self.change.sel(rule=names, reading="accuracy").mean(("rule", "task")).values

    def beyond(self, part, task, kind=CLIPPED):  # [R]
        return self.dataset.gain_beyond.sel(search=f"{kind}, {part}", task=task).values

    def over_map(self, name):  # [R]
        """A map's gain less that of Algorithm 1 on the MLP, without noise: the exception."""
        exception = self.dataset.sel(task=NO_NOISE)
        edit = exception.searched_gain.sel(search=f"{CLIPPED}, MLP")
        return (exception.gain.sel(map=name) - edit).values

    def shares(self, model, part, kind=CLIPPED):  # [R]
        own = self.dataset.shares.sel(model=model, part=part, measure="share", kind=kind)
        return own.mean(("layer", "clipping")).values


numbers = Numbers


def statements(config) -> tuple[Statement, ...]:
    of_models = partial(Statement, words=lambda model, **_: dict(models=NAMES[model]))
    return (
        Statement(
            "stays",
            OURS,
            "Algorithm 1 on the {part} of two-class models leaves the {reading} as it was",
            "the change of that reading on test prompts, averaged over tasks,",
            margin=0.01,
            note="calibrated: after an affine map of the answer, fitted on validation; one "
            "threshold, one temperature and both leave either reading as it is",
            sample=lambda n, part, reading: n.changes(f"{CLIPPED}, {part}", READ[reading]),
            cells=grid(
                "attention_auc attention_entropy mlp_auc mlp_entropy", part=PARTS, reading=READ
            ),
            message="Algorithm 1 leaves the AUC and the calibrated cross-entropy of two-class "
            "models as they were",
        ),
        Statement(
            "rivals",
            OURS,
            "The accuracy of two-class models with {rival} is at most .01 below that with "
            "Algorithm 1",
            "the change of accuracy by the rival less that by Algorithm 1, averaged over parts and "
            "tasks,",
            at_least=-0.01,
            revision=LOWERED,
            sample=lambda n, rival: n.changes(rival) - n.searched(CLIPPED),
            cells=grid("threshold calibration", rival=(THRESHOLD, CALIBRATED)),
            message="With one threshold, or with contextual calibration, two-class models are at "
            "most a hundredth less accurate than with Algorithm 1",
        ),
        Statement(
            "random_gains",
            "derived here, a control",
            "The accuracy of two-class models with a search over random edits is at most .01 below "
            "that with Algorithm 1",
            "the change of accuracy by random edits less that by Algorithm 1, averaged over parts "
            "and tasks,",
            at_least=-0.01,
            note="the null: Gaussian matrices of the Frobenius norm of what is cut away",
            revision=LOWERED,
            sample=lambda n: n.searched(RANDOM_EDIT) - n.searched(CLIPPED),
        ),
        Statement(
            "beyond",
            OURS,
            "Of regression models Algorithm 1 on the {part} gains nothing beyond two numbers: "
            "{task}",
            "1 less the risk after the edit over that without, each after an affine map that is "
            "fitted on the same validation prompts,",
            at_most=NOTHING,
            note="no noise and the MLP are the exception that was known before",
            sample=lambda n, part, task: n.beyond(part, task),
            cells=grid(
                "attention_as_trained attention_no_noise attention_fewer_shots "
                "attention_smaller_inputs attention_larger_inputs mlp_as_trained mlp_no_noise "
                "mlp_fewer_shots mlp_smaller_inputs mlp_larger_inputs",
                part=PARTS,
                task=TASKS,
            ),
            message="Of regression models Algorithm 1 gains nothing beyond an affine map",
        ),
        Statement(
            "exception",
            OURS,
            "Without noise a {map} of the answer gains as much as Algorithm 1 on the MLP",
            "the gain by that map less that by Algorithm 1, relative to the unedited risk on the "
            "same prompts,",
            at_least=-NOTHING,
            note="label size: the root mean square of the labels of a prompt",
            sample=lambda n, map: n.over_map(map),
            cells=grid("exception_sized exception_cubic", map=(SIZED, CUBIC)),
            message="Without noise a multiple of the answer by the size of labels, or a cubic of "
            "it, gains as much as Algorithm 1 on the MLP",
        ),
        Statement(
            "exception_null",
            "derived here, a control",
            "Without noise a search over random edits of the MLP gains nothing beyond two numbers",
            "1 less the risk after the random edit over that without, each after an affine map,",
            at_most=NOTHING,
            note="the null of the exception",
            sample=lambda n: n.beyond("MLP", NO_NOISE, RANDOM_EDIT),
        ),
        of_models(
            "share",
            OURS,
            "Most of what clipping the {part} of {models} changes is an affine map of the answer",
            "the share of the mean squared change that the best affine map accounts for, averaged "
            "over layers and rates,",
            at_least=0.5,
            sample=lambda n, model, part: n.shares(model, part),
            cells=grid(
                "classes_attention_share classes_mlp_share regression_attention_share "
                "regression_mlp_share",
                model=MODELS,
                part=PARTS,
            ),
            message="Most of what clipping attention or the MLP changes, in two-class models "
            f"({CLASSES}) and in regression models ({REGRESSION}), is an affine map of the answer",
        ),
        of_models(
            "random_share",
            "derived here, a control",
            "In the {part} of {models} an affine map accounts for no less of what random edits as "
            "large change than of what clipping changes",
            "the share by random edits less that by clipping, averaged over layers and rates,",
            at_least=-0.1,
            note="the null: does any edit move one number?",
            sample=lambda n, model, part: (
                n.shares(model, part, RANDOM_EDIT) - n.shares(model, part)
            ),
            cells=grid(
                "classes_attention_random classes_mlp_random regression_attention_random "
                "regression_mlp_random",
                model=MODELS,
                part=PARTS,
            ),
            message="An affine map accounts for no less of what random edits as large change than "
            "of what clipping changes",
        ),
    )
