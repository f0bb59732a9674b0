"""What `lm_clipping` judges: layers that tolerate clipping, gains by it, and its rivals."""

from functools import partial

from experiments.language.data_sets import data_grid, families
from experiments.language.lm_clipping.changes import Changes
from experiments.language.lm_clipping.config import PARTS
from lsa_lab.judging.statements import Statement

PAPER, OURS = "A2 (2406.03768), figure 1", "derived here"
EACH = "of each collection, since a look at these runs: the average of two hid that signs differ"
RIVALS = {
    "calibrated": dict(
        who="contextual calibration",
        what="calibrated",
        note="calibration is of each set, and the edit is not",
    ),
    "threshold": dict(
        who="a threshold fitted on other sentences",
        what="unclipped at that threshold",
        note="the threshold is of each set, and the edit is not",
    ),
}
ONE_EDIT = "one edit, the same for all sets"
ELSEWHERE = "by the edit that is best on average for the other sets"


def numbers(dataset) -> dict[str, Changes]:
    return {name: Changes(dataset.sel(task=name)) for name in dataset.task.values}


def statements(config) -> tuple[Statement, ...]:
    each = EACH if len(config.tasks) > 1 else ""
    family = families(config, over="sets of demonstrations", revision=each)
    grid = data_grid("rotten_tomatoes", "reuters")
    part_grid = partial(grid, part=PARTS)
    shallow, deep, high = min(config.layers), max(config.layers), max(config.rates)
    fewest, most = min(config.other_shots), max(config.other_shots)
    layers = f"of layers {', '.join(map(str, config.layers))} and all rates"
    parts = "it is asked of attention and of the MLP whether"
    matrix = f"AUC, clipped at rate {config.matrix_rate:g} less unclipped"
    gains = {
        "accuracy": dict(
            reading_of="",
            better="improves accuracy",
            what="accuracy",
            note=f"{layers}; an edit for each set is what `lm_clipping_search` looks for",
        ),
        "auc": dict(
            reading_of="our reading, ", better="tells the classes apart better", what="AUC", note=""
        ),
    }
    return (
        family(
            "deep_is_flat",
            f"{PAPER} (ii), our reading, in our setting",
            f"drastic clipping of {{part}} in layer {deep} costs no discrimination",
            f"AUC, clipped less unclipped, averaged over rates >= {min(config.rates):g},",
            at_least=-0.01,
            label="{part}: change, last layer",
            sample=lambda c, data, part: c[data].flatness(part),
            cells=part_grid(
                "rotten_tomatoes_attention_deep_is_flat rotten_tomatoes_mlp_deep_is_flat "
                "reuters_attention_deep_is_flat reuters_mlp_deep_is_flat"
            ),
            message=f"drastic clipping of attention, or of the MLP, in layer {deep} costs no "
            "discrimination",
        ),
        family(
            "shallow_collapses",
            f"{PAPER} (ii), in our setting",
            f"{{part}} {high:g} in layer {shallow} leaves little better than guessing",
            "AUC after clipping",
            at_most=0.6,
            sample=lambda c, data, part: c[data].collapse(part),
            cells=part_grid(
                "rotten_tomatoes_attention_shallow_collapses "
                "rotten_tomatoes_mlp_shallow_collapses reuters_attention_shallow_collapses "
                "reuters_mlp_shallow_collapses"
            ),
            message=f"{parts} its clipping at {high:g} in layer {shallow} leaves little better "
            "than guessing",
        ),
        family(
            "deep_tolerates_more",
            f"{PAPER} (ii), in our setting",
            f"layer {deep} tolerates {{part}} {high:g} better than layer {shallow}",
            f"AUC, clipped in layer {deep} less clipped in layer {shallow},",
            at_least=0.05,
            label="{part}: last less first layer",
            sample=lambda c, data, part: c[data].tolerance(part),
            cells=part_grid(
                "rotten_tomatoes_attention_deep_tolerates_more "
                "rotten_tomatoes_mlp_deep_tolerates_more reuters_attention_deep_tolerates_more "
                "reuters_mlp_deep_tolerates_more"
            ),
            message=f"{parts} layer {deep} tolerates its clipping at {high:g} better than layer "
            f"{shallow}",
        ),
        family(
            "entropy",
            OURS,
            f"{{part}} {high:g} in layer {deep} leaves the cross-entropy as it is but for a "
            "constant shift",
            "cross-entropy after the best shift, fitted on other sentences, clipped less "
            "unclipped, in nats,",
            margin=0.02,
            label="{part}: cross-entropy, last layer",
            sample=lambda c, data, part: c[data].entropy(part),
            cells=part_grid(
                "rotten_tomatoes_attention_entropy rotten_tomatoes_mlp_entropy "
                "reuters_attention_entropy reuters_mlp_entropy"
            ),
            message=f"{parts} its clipping at {high:g} in layer {deep} leaves the cross-entropy "
            "as it is but for a constant shift",
        ),
        family(
            "drop",
            OURS,
            f"dropping {{part}} of layer {deep} does what {{part}} {high:g} does",
            "AUC, dropped less clipped,",
            margin=0.01,
            label="{part}: dropped less clipped",
            sample=lambda c, data, part: c[data].drop(part),
            cells=part_grid(
                "rotten_tomatoes_attention_drop rotten_tomatoes_mlp_drop reuters_attention_drop "
                "reuters_mlp_drop"
            ),
            message=f"dropping attention, or the MLP, of layer {deep} does what clipping it at "
            f"{high:g} does",
        ),
        family(
            "dropped",
            "A2 (2406.03768), appendix B.6, in our setting",
            f"dropping {{part}} of layer {deep} neither harms nor improves accuracy",
            "accuracy, dropped less unclipped,",
            margin=0.05,
            revision="added to these runs: the row on AUC, dropped beside clipped, is not what the "
            "appendix says",
            label="{part}: accuracy, dropped",
            sample=lambda c, data, part: c[data].dropped("accuracy", part),
            cells=part_grid(
                "rotten_tomatoes_attention_dropped rotten_tomatoes_mlp_dropped "
                "reuters_attention_dropped reuters_mlp_dropped"
            ),
            message=f"{parts} dropping it in layer {deep} neither harms nor improves accuracy",
        ),
        family(
            "deep_accuracy",
            f"{PAPER} (ii), in our setting",
            f"drastic clipping in layer {deep} does not cost much accuracy",
            "accuracy, clipped less unclipped, averaged over parts and rates,",
            at_least=-0.05,
            label="accuracy, last layer",
            sample=lambda c, data: c[data].accuracy(),
            cells=grid("rotten_tomatoes_deep_accuracy reuters_deep_accuracy"),
        ),
        family(
            "helps",
            f"{PAPER} (i), {{reading_of}}in our setting",
            f"{ONE_EDIT}, {{better}}",
            f"{{what}}, clipped less unclipped, {ELSEWHERE},",
            at_least=0.01,
            note="{note}",
            label="one edit, {what}",
            sample=lambda c, data, reading: c[data].gain(reading),
            cells=grid(
                "rotten_tomatoes_helps rotten_tomatoes_helps_auc reuters_helps reuters_helps_auc",
                reading=gains,
            ),
            words=lambda reading: gains[reading],
            message=f"it is asked of each data set whether {ONE_EDIT}, improves accuracy, and "
            "whether it tells the classes apart better",
        ),
        family(
            "as_good_as_an_edit",
            OURS,
            f"{{who}} gains as much as {ONE_EDIT}",
            f"accuracy, {{what}} less clipped {ELSEWHERE},",
            at_least=-0.01,
            note="{note}",
            label="{rival} less one edit",
            sample=lambda c, data, rival: c[data].over_edit(rival),
            cells=grid(
                "rotten_tomatoes_calibration rotten_tomatoes_threshold reuters_calibration "
                "reuters_threshold",
                rival=RIVALS,
            ),
            words=lambda rival: RIVALS[rival],
            message="contextual calibration, and a threshold fitted on other sentences, gain as "
            f"much as {ONE_EDIT}",
        ),
        family(
            "few_shots",
            "A2 (2406.03768), figure 2, in our setting",
            f"with fewer demonstrations clipping layer {shallow} costs less",
            f"AUC lost by clipping at rate {high:g} with {most} demonstrations less that with "
            f"{fewest}, averaged over parts,",
            at_least=0.0,
            note="where a clipped layer leaves the same whatever the shots, that is the rise of "
            "the unclipped model with them",
            label="lost, most less fewest shots",
            sample=lambda c, data: c[data].few_shots(),
            cells=grid("rotten_tomatoes_few_shots reuters_few_shots"),
            message="it is asked of each data set whether with fewer demonstrations clipping layer "
            f"{shallow} costs less",
        ),
        family(
            "more_shots",
            "A2 (2406.03768), section 2.2, in our setting",
            "unclipped, more demonstrations tell the classes apart better",
            f"AUC with {most} demonstrations less that with {fewest},",
            at_least=0.0,
            revision="added to these runs, for the row on fewer shots supposes it",
            label="AUC, most less fewest shots",
            sample=lambda c, data: c[data].more_shots(),
            cells=grid("rotten_tomatoes_more_shots reuters_more_shots"),
            message="it is asked of each data set whether, unclipped, more demonstrations tell the "
            "classes apart better",
        ),
        family(
            "keys_alone",
            "A2 (2406.03768), appendix B.3, in our setting",
            f"clipping W_K alone in layer {deep} does not change AUC on average",
            f"{matrix},",
            margin=0.01,
            label="W_K alone",
            sample=lambda c, data: c[data].matrices.sel(matrix="w_k").values,
            cells=grid("rotten_tomatoes_keys_alone reuters_keys_alone"),
        ),
        family(
            "single_matrices",
            OURS,
            f"no single matrix of layer {deep}, clipped, changes discrimination",
            f"{matrix}, of the matrix where the other sets' mean differs most,",
            margin=0.01,
            label="worst single matrix",
            sample=lambda c, data: c[data].worst_matrix(),
            cells=grid("rotten_tomatoes_single_matrices reuters_single_matrices"),
            message=f"it is asked of each data set whether a single matrix of layer {deep}, "
            "clipped, changes discrimination",
        ),
    )
