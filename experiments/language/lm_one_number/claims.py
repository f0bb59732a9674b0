"""What `lm_one_number` judges: what clipping gains, what it leaves, and how affine it is."""

from types import SimpleNamespace

from experiments.language.data_sets import bounds_or_pilot
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
SEARCHED = "where Algorithm 1 cuts"
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

    def shares(self, kind, part, measure, rate=None):  # [R]
        """Shares at one rate, or their mean over rates."""
        own = self.dataset.shares.sel(kind=kind, part=part, measure=measure)
        own = own.mean("clipping") if rate is None else own.sel(clipping=rate)
        return own.values.ravel()

    def layer_r2(self, part, layer):  # [R]
        place = dict(kind=CLIPPED, part=part, layer=layer, measure="R2")
        return self.dataset.layer_shares.sel(place).values.ravel()


numbers = Numbers


def statements(config) -> tuple[Statement, ...]:
    titles = ", ".join(task.title for _, task in config.tasks)
    where = f"{config.model_name}, {titles}"
    last = max(config.layers)
    total = SimpleNamespace(runs=config.runs * len(config.tasks))
    over = dict(over="sets of demonstrations, all collections together")

    def judged(id, says, measured, sample, cells, note="", message="", **bounds):
        return Statement(
            id,
            OURS,
            f"{where}: {says}",
            measured,
            sample=sample,
            cells=cells,
            note=note,
            message=message and f"{where}: {message}",
            **over,
            **bounds_or_pilot(total, **bounds),
        )

    rates = (min(config.rates), config.rates[len(config.rates) // 2], max(config.rates))
    return (
        Statement(
            "gains",
            OURS,
            f"{where}: Algorithm 1 raises accuracy",
            "the gain of accuracy on fresh sentences, averaged over parts,",
            sample=lambda n: n.searched(CLIPPED),
            note="what the rows below account for",
            **over,
            **bounds_or_pilot(total, at_least=0.01),
        ),
        judged(
            "stays",
            "Algorithm 1 on {part} leaves the {reading} as it was",
            "the change of the {reading} on fresh sentences",
            lambda n, part, reading: n.gain(f"{CLIPPED}, {part}", READ[reading]),
            grid(
                "attention_auc attention_entropy mlp_auc mlp_entropy",
                part=PARTS,
                reading=READ,
            ),
            note="calibrated: after an affine map of the log-odds, fitted on validation",
            margin=0.02,
        ),
        judged(
            "rivals",
            "{rival} gains as much as Algorithm 1",
            "the gain of accuracy on fresh sentences by {rival} less that by Algorithm 1, averaged "
            "over parts,",
            lambda n, rival: n.gain(rival) - n.searched(CLIPPED),
            grid("threshold calibration", rival=(THRESHOLD, CALIBRATED)),
            note="one temperature changes no label",
            at_least=-0.01,
        ),
        Statement(
            "two_numbers",
            OURS,
            f"{where}: a threshold and a temperature lower the cross-entropy as far as Algorithm 1",
            "the cross-entropy after both less that after Algorithm 1, averaged over parts, nats,",
            sample=lambda n: n.gain(BOTH, "entropy") - n.searched(CLIPPED, "entropy"),
            **over,
            **bounds_or_pilot(total, at_most=0.0),
        ),
        Statement(
            "random_gains",
            "derived here, a control",
            f"{where}: the same search over random edits as large gains as much as Algorithm 1",
            "the gain of accuracy by random edits less that by Algorithm 1, averaged over parts,",
            sample=lambda n: n.searched(RANDOM_EDIT) - n.searched(CLIPPED),
            note="the null: Gaussian matrices of the Frobenius norm of what is cut away",
            **over,
            **bounds_or_pilot(total, at_least=-0.01),
        ),
        judged(
            "affine",
            f"{SEARCHED}, clipping {{part}} at rate {{rate:g}} is an affine map of the log-odds",
            "R² of the best affine map from the unedited to the clipped log-odds",
            lambda n, part, rate: n.shares(CLIPPED, part, "R2", rate),
            grid(
                "attention_low attention_middle attention_high mlp_low mlp_middle mlp_high",
                part=PARTS,
                rate=rates,
            ),
            message=f"{SEARCHED}, clipping attention or the MLP at rates {min(rates):g} to "
            f"{max(rates):g} is an affine map of the log-odds",
            at_least=0.9,
        ),
        judged(
            "affine_by_layer",
            f"clipping {{part}} of layer {last + 1} at rate {config.layer_rate:g} is an affine map "
            "of the log-odds",
            "R² of the best affine map from the unedited to the clipped log-odds",
            lambda n, part: n.layer_r2(part, last),
            grid("attention_last_layer mlp_last_layer", part=PARTS),
            at_least=0.9,
        ),
        judged(
            "share",
            f"{SEARCHED}, most of what clipping {{part}} changes is an affine map of the answer",
            "the share of the mean squared change of the log-odds that the best affine map "
            "accounts for, averaged over rates,",
            lambda n, part: n.shares(CLIPPED, part, "share"),
            grid("attention_share mlp_share", part=PARTS),
            at_least=0.5,
        ),
        Statement(
            "random_share",
            "derived here, a control",
            f"{where}: of a random edit of {{part}} as large no less is an affine map",
            "the share of the change by random edits less that by clipping, averaged over rates,",
            sample=lambda n, part: (
                n.shares(RANDOM_EDIT, part, "share") - n.shares(CLIPPED, part, "share")
            ),
            cells=grid("attention_random_share mlp_random_share", part=PARTS),
            note="the null: does any edit move one number?",
            **over,
            **bounds_or_pilot(total, at_least=-0.1),
        ),
    )
