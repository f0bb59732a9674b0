"""What `lm_clipping_search` judges, by the criteria in its Config."""

from experiments.language.language_config import redrawn
from lsa_lab.claims import Statement

PARTS = {"attention": "attention", "MLP": "mlp"}  # of a block, which A2 clips whole
ALGORITHM = tuple(f"Algorithm 1, {part}" for part in PARTS)
WIDE = "more layers, both parts"
SEARCHES = (*ALGORITHM, WIDE)
_ADDED = "added to these runs: beside Algorithm 1, which gains less, alone"


def statements(config) -> tuple[Statement, ...]:
    titles = " and ".join(task.title for _, task in config.tasks)
    where = f"{config.model_name}, on {titles}"
    paper, ours = "A2 (2406.03768), figure 4 and appendix C.5, in our setting", "derived here"
    these = dict(over="sets of demonstrations")
    sets = these | dict(redrawn=redrawn(config, 9))
    gain, optimism = "the gain of accuracy on test", "the gain on validation less that on test"
    return (
        Statement(
            "algorithm_gains",
            paper,
            f"{where}: A2's Algorithm 1 improves accuracy",
            f"{gain}, averaged over parts and data sets,",
            at_least=config.gain,
            note="table C.5: +.019 of score on average",
            **sets,
        ),
        Statement(
            "algorithm_wins",
            paper,
            f"{where}: it improves accuracy clearly more often than it harms",
            "wins less losses on test, as a share of the searches,",
            at_least=config.wins,
            note="table C.5: 20 wins, 3 losses, 5 ties",
            **sets,
        ),
        Statement(
            "algorithm_auc",
            ours,
            f"{where}: what it chooses, which may be no edit, tells the classes apart as the "
            "unclipped model does",
            "AUC on test, clipped less unclipped, averaged over parts and data sets,",
            margin=config.gain,
            note="where it chooses no edit the difference is 0",
            **sets,
        ),
        Statement(
            "selection",
            ours,
            f"{where}: its gain on validation is in part won by selection",
            f"{optimism}, averaged over parts and data sets,",
            at_least=0.0,
            **sets,
        ),
        Statement(
            "wider_gains",
            "A2 (2406.03768), figure 1 (i), our reading, in our setting",
            f"{where}: the edit that a search of {WIDE} chooses improves accuracy",
            f"{gain}, averaged over data sets,",
            at_least=config.gain,
            note="an edit for each set; `lm_clipping` judges one edit for all sets",
            revision=_ADDED,
            **these,
        ),
        Statement(
            "wider_gains_more",
            ours,
            f"{where}: a search of {WIDE} finds better edits",
            f"{gain}, of {WIDE} less that of Algorithm 1, averaged over data sets,",
            at_least=0.0,
            **sets,
        ),
        Statement(
            "wider_is_more_optimistic",
            ours,
            f"{where}: a search of {WIDE} promises more than it keeps by a larger amount",
            f"{optimism}, of {WIDE} less that of Algorithm 1, averaged over data sets,",
            at_least=0.0,
            note="an amount; as a share of the gain on validation it is another question",
            **sets,
        ),
        Statement(
            "wider_auc",
            ours,
            f"{where}: the edit that a search of {WIDE} chooses does not tell the classes apart "
            "better",
            "AUC on test, clipped less unclipped, averaged over data sets,",
            at_most=config.gain,
            **sets,
        ),
        Statement(
            "threshold",
            ours,
            f"{where}: a threshold fitted on the same validation sentences gains as much as a "
            f"search of {WIDE}",
            f"{gain}, by the threshold less by the search, averaged over data sets,",
            at_least=-config.gain,
            **sets,
        ),
        Statement(
            "calibration",
            ours,
            f"{where}: contextual calibration, which needs no label, gains as much as Algorithm 1",
            f"{gain}, by calibration less by Algorithm 1, averaged over parts and data sets,",
            at_least=-config.gain,
            **sets,
        ),
        Statement(
            "calibration_wider",
            ours,
            f"{where}: contextual calibration gains as much as a search of {WIDE}",
            f"{gain}, by calibration less by the search, averaged over data sets,",
            at_least=-config.gain,
            revision=_ADDED,
            **these,
        ),
        Statement(
            "beside_a_threshold",
            ours,
            f"{where}: where each model has its threshold fitted, the clipped one gains nothing to "
            "speak of",
            f"accuracy on test at the fitted threshold, chosen by a search of {WIDE} less "
            "unclipped, averaged over data sets,",
            at_most=config.gain,
            **sets,
        ),
    )
