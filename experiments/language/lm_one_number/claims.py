"""What `lm_one_number` judges: what clipping gains, what it leaves, and how affine it is."""

from experiments.language.data_sets import about
from experiments.language.language_config import PARTS
from experiments.language.lm_one_number.config import (
    BOTH,
    CALIBRATED,
    CLIPPED,
    RANDOM_EDIT,
    THRESHOLD,
    UNEDITED,
)
from lsa_lab.judging.statements import Statement, grid

OURS = "derived here"
READ = {"AUC": "auc", "calibrated cross-entropy": "calibrated entropy"}


class Numbers:
    """Changes by method over all sets of all collections, [R], and shares of affine maps."""

    def __init__(self, dataset):
        self.dataset = dataset
        self.test = dataset.test.stack(run_of_task=("task", "run"))
        self.change = self.test - self.test.sel(rule=UNEDITED, drop=True)

    def gain(self, method, reading="accuracy"):  # [R]
        return self.change.sel(rule=method, reading=reading).values

    def by_task(self, method, reading):  # [tasks]
        rows = self.dataset.test.sel(reading=reading).mean("run")
        return (rows.sel(rule=method) - rows.sel(rule=UNEDITED)).values

    def searched(self, kind, reading="accuracy"):  # [R]
        """The mean over parts of what a search changes."""
        names = [f"{kind}, {part}" for part in PARTS]
        return self.change.sel(rule=names, reading=reading).mean("rule").values

    def share(self, kind, part):  # [R]
        """The share of the change that an affine map accounts for, averaged over rates."""
        own = self.dataset.shares.sel(kind=kind, part=part, measure="share")
        return own.mean("clipping").values.ravel()


numbers = Numbers


def statements(config) -> tuple[Statement, ...]:
    sets = config.runs * len(config.tasks)
    judged = about(config, sets, over="sets of demonstrations, all collections together")
    titles = "; ".join(task.title for _, task in config.tasks)
    return (
        judged(
            "gains",
            OURS,
            "Algorithm 1 raises accuracy",
            "the gain of accuracy on fresh sentences, averaged over parts,",
            at_least=0.01,
            note=f"what the rows below account for; the collections: {titles}",
            sample=lambda n: n.searched(CLIPPED),
        ),
        judged(
            "stays",
            OURS,
            "Algorithm 1 on {part} leaves the {reading} as it was",
            "the change of the {reading} on fresh sentences",
            margin=0.02,
            note="calibrated: after an affine map of the log-odds, fitted on validation",
            sample=lambda n, part, reading: n.gain(f"{CLIPPED}, {part}", READ[reading]),
            cells=grid(
                "attention_auc attention_entropy mlp_auc mlp_entropy", part=PARTS, reading=READ
            ),
        ),
        judged(
            "rivals",
            OURS,
            "{rival} gains as much as Algorithm 1",
            "the gain of accuracy on fresh sentences by {rival} less that by Algorithm 1, averaged "
            "over parts,",
            at_least=-0.01,
            note="one temperature changes no label",
            sample=lambda n, rival: n.gain(rival) - n.searched(CLIPPED),
            cells=grid("threshold calibration", rival=(THRESHOLD, CALIBRATED)),
        ),
        judged(
            "two_numbers",
            OURS,
            "a threshold and a temperature lower the cross-entropy as far as Algorithm 1",
            "the cross-entropy after both less that after Algorithm 1, averaged over parts, nats,",
            at_most=0.0,
            sample=lambda n: n.gain(BOTH, "entropy") - n.searched(CLIPPED, "entropy"),
        ),
        judged(
            "random_gains",
            f"{OURS}, a control",
            "the same search over random edits as large gains as much as Algorithm 1",
            "the gain of accuracy by random edits less that by Algorithm 1, averaged over parts,",
            at_least=-0.01,
            note="the null: Gaussian matrices of the Frobenius norm of what is cut away",
            sample=lambda n: n.searched(RANDOM_EDIT) - n.searched(CLIPPED),
        ),
        judged(
            "share",
            OURS,
            "where Algorithm 1 cuts, most of what clipping {part} changes is an affine map of the "
            "answer",
            "the share of the mean squared change of the log-odds that the best affine map "
            "accounts for, averaged over rates,",
            at_least=0.5,
            sample=lambda n, part: n.share(CLIPPED, part),
            cells=grid("attention_share mlp_share", part=PARTS),
        ),
        judged(
            "random_share",
            f"{OURS}, a control",
            "an affine map accounts for no less of a random edit of {part} that is as large",
            "the share of the change by random edits less that by clipping, averaged over rates,",
            at_least=-0.1,
            note="the null: does any edit move one number?",
            sample=lambda n, part: n.share(RANDOM_EDIT, part) - n.share(CLIPPED, part),
            cells=grid("attention_random_share mlp_random_share", part=PARTS),
        ),
    )
