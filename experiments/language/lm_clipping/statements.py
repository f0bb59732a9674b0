"""What `lm_clipping` judges, by the criteria in its Config."""

from dataclasses import replace

from lsa_lab.claims import Statement

PARTS = {"attention": "attention", "MLP": "mlp"}  # of a block, which A2 clips whole
MATRICES = ("w_q", "w_k", "w_v", "w_o", "mlp_in", "mlp_gate", "mlp_out")
READINGS = ("accuracy", "auc", "entropy")  # the last after the best constant shift
DROPPED = 1.0  # the rate that stands for rank 0
_EACH = "of each collection, since a look at these runs: the average of two hid that signs differ"
ONE_EDIT = "one edit, the same for all sets"


def statements(config) -> tuple[Statement, ...]:
    """The same rows for each collection of texts."""
    rows = [
        replace(row, id=of_text(name, row.id))
        for name, task in config.tasks
        for row in _rows(config, f"{config.model_name}, on {task.title}")
    ]
    if len(config.tasks) == 1:
        return tuple(rows)
    return tuple(replace(row, revision=row.revision or _EACH) for row in rows)


def of_text(name: str, id: str) -> str:
    """The id of a row on one of several collections of texts."""
    return f"{name}_{id}"


def _rows(config, where: str) -> tuple[Statement, ...]:
    shallow, deep, high = min(config.layers), max(config.layers), max(config.rates)
    paper, ours = "A2 (2406.03768), figure 1", "derived here"
    sets = dict(over="sets of demonstrations")
    elsewhere = "by the edit that is best on average for the other sets"
    of_layers = f"of layers {', '.join(map(str, config.layers))} and all rates"
    rows = []
    for part in PARTS:
        name, strongest = part.lower(), f"{part} {high:g}"
        rows += [
            Statement(
                f"{name}_deep_is_flat",
                f"{paper} (ii), our reading, in our setting",
                f"{where}: drastic clipping of {part} in layer {deep} costs no discrimination",
                f"AUC, clipped less unclipped, averaged over rates >= {min(config.rates):g},",
                at_least=-config.auc_margin,
                **sets,
            ),
            Statement(
                f"{name}_shallow_collapses",
                f"{paper} (ii), in our setting",
                f"{where}: {strongest} in layer {shallow} leaves little better than guessing",
                "AUC after clipping",
                at_most=config.guess,
                **sets,
            ),
            Statement(
                f"{name}_deep_tolerates_more",
                f"{paper} (ii), in our setting",
                f"{where}: layer {deep} tolerates {strongest} better than layer {shallow}",
                f"AUC, clipped in layer {deep} less clipped in layer {shallow},",
                at_least=config.more,
                **sets,
            ),
            Statement(
                f"{name}_entropy",
                ours,
                f"{where}: {strongest} in layer {deep} leaves the cross-entropy as it is but for "
                "a constant shift",
                "cross-entropy after the best shift, fitted on other sentences, clipped less "
                "unclipped, in nats,",
                margin=config.nats,
                **sets,
            ),
            Statement(
                f"{name}_drop",
                ours,
                f"{where}: dropping {part} of layer {deep} does what {strongest} does",
                "AUC, dropped less clipped,",
                margin=config.auc_margin,
                **sets,
            ),
            Statement(
                f"{name}_dropped",
                "A2 (2406.03768), appendix B.6, in our setting",
                f"{where}: dropping {part} of layer {deep} neither harms nor improves accuracy",
                "accuracy, dropped less unclipped,",
                margin=config.flat,
                revision="added to these runs: the row on AUC, dropped beside clipped, is not what "
                "the appendix says",
                **sets,
            ),
        ]
    return (
        *rows,
        Statement(
            "deep_accuracy",
            f"{paper} (ii), in our setting",
            f"{where}: drastic clipping in layer {deep} does not cost much accuracy",
            "accuracy, clipped less unclipped, averaged over parts and rates,",
            at_least=-config.flat,
            **sets,
        ),
        Statement(
            "helps",
            f"{paper} (i), in our setting",
            f"{where}: {ONE_EDIT}, improves accuracy",
            f"accuracy, clipped less unclipped, {elsewhere},",
            at_least=config.gain,
            note=f"{of_layers}; an edit for each set is what `lm_clipping_search` looks for",
            **sets,
        ),
        Statement(
            "helps_auc",
            f"{paper} (i), our reading, in our setting",
            f"{where}: {ONE_EDIT}, tells the classes apart better",
            f"AUC, clipped less unclipped, {elsewhere},",
            at_least=config.gain,
            **sets,
        ),
        Statement(
            "calibration",
            ours,
            f"{where}: contextual calibration gains as much as {ONE_EDIT}",
            f"accuracy, calibrated less clipped {elsewhere},",
            at_least=-config.gain,
            note="calibration is of each set, and the edit is not",
            **sets,
        ),
        Statement(
            "threshold",
            ours,
            f"{where}: a threshold fitted on other sentences gains as much as {ONE_EDIT}",
            f"accuracy, unclipped at that threshold less clipped {elsewhere},",
            at_least=-config.gain,
            note="the threshold is of each set, and the edit is not",
            **sets,
        ),
        Statement(
            "few_shots",
            "A2 (2406.03768), figure 2, in our setting",
            f"{where}: with fewer demonstrations clipping layer {shallow} costs less",
            f"AUC lost by clipping at rate {high:g} with {max(config.other_shots)} demonstrations "
            f"less that with {min(config.other_shots)}, averaged over parts,",
            at_least=0.0,
            note="where a clipped layer leaves the same whatever the shots, that is the rise of "
            "the unclipped model with them",
            **sets,
        ),
        Statement(
            "more_shots",
            "A2 (2406.03768), section 2.2, in our setting",
            f"{where}: unclipped, more demonstrations tell the classes apart better",
            f"AUC with {max(config.other_shots)} demonstrations less that with "
            f"{min(config.other_shots)},",
            at_least=0.0,
            revision="added to these runs, for the row on fewer shots supposes it",
            **sets,
        ),
        Statement(
            "keys_alone",
            "A2 (2406.03768), appendix B.3, in our setting",
            f"{where}: clipping W_K alone in layer {deep} does not change AUC on average",
            f"AUC, clipped at rate {config.matrix_rate:g} less unclipped,",
            margin=config.auc_margin,
            **sets,
        ),
        Statement(
            "single_matrices",
            ours,
            f"{where}: no single matrix of layer {deep}, clipped, changes discrimination",
            f"AUC, clipped at rate {config.matrix_rate:g} less unclipped, of the matrix where the "
            "other sets' mean differs most,",
            margin=config.auc_margin,
            **sets,
        ),
    )
