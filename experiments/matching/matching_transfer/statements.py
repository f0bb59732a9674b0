"""The rules and targets of `matching_transfer`, and what it judges by its Config's criteria."""

from functools import partial

from lsa_lab.claims import Statement

# Gradients of the linear proxy, of it before training, of a prefix of one layer, moments, gradients
# of the proxy that sees half of the covariates, and of a prefix of the shortest descent; then the
# linear proxy mismatched, and after these rules random subsets.
GRADIENTS = ("linear proxy", "its start", "prefix", "moments", "half proxy", "deep prefix")
RULES = (*GRADIENTS, "mismatched")
SMALL = "one layer"  # the model on which the prefix is trained; the linear proxy's first step
TRAINED = ("linear attention", "softmax attention", "transformer")
SUBSETS = ("all", "random")  # whose ranks are compared


def targets(config) -> list[str]:
    """The models that are taught by the chosen subsets, the smallest first."""
    return [
        SMALL,
        *(f"descent, {depth} steps" for depth in config.descents),
        *(name for name, _ in config.models),
    ]


def statements(config) -> tuple[Statement, ...]:
    fresh = f"{config.runs} fresh runs, 12 before"
    models = "models trained to the end, at d = 8; they were brief, at d = 4"
    median = partial(Statement, statistic="median", revision=models, redrawn=fresh)
    added = partial(Statement, statistic="median")
    transfer = "A3 (2506.04579), abstract, in our setting"
    ranking = "modelled on A3 (2506.04579), transfer to larger models"
    worst = f"at the worst of {len(targets(config)) - 1} targets"
    of_random = "the error over that of the median random subset"
    of_targets = f"{of_random}, geometric mean of the targets"
    correlation = "the mean over pools of Spearman's correlation"
    return (
        median(
            "proxy",
            transfer,
            "Subsets that match gradients of the linear proxy help every larger model",
            f"{of_random}, {worst}",
            at_most=config.gain,
        ),
        median(
            "prefix",
            transfer,
            "Subsets that match gradients of a prefix of one-layer attention help every larger "
            "model",
            f"{of_random}, {worst}",
            at_most=config.gain,
        ),
        median(
            "proxy_on_average",
            transfer,
            "Subsets that match gradients of the linear proxy help larger models on average",
            of_targets,
            at_most=config.gain,
            revision=f"added; {models}",
        ),
        median(
            "prefix_on_average",
            transfer,
            "Subsets that match gradients of a prefix of one-layer attention help larger models on "
            "average",
            of_targets,
            at_most=config.gain,
            revision=f"added; {models}",
        ),
        median(
            "mismatching",
            "A3 (2506.04579), figure 4, in our setting",
            "Subsets that mismatch gradients harm every larger model",
            f"{of_random}, at the target with the least harm",
            at_least=config.gain,
        ),
        median(
            "literal",
            "derived here",
            "A prefix's gradients, a linear map of the proxy's, choose as well as these",
            f"the prefix's error over the linear proxy's, {worst}",
            at_most=config.no_loss,
        ),
        median(
            "rank_all",
            ranking,
            "Chosen, mismatched and random subsets rank alike on one layer and every larger model",
            f"{correlation}, {worst}",
            at_least=config.rank,
        ),
        median(
            "rank_random",
            ranking,
            "Random subsets rank alike on one layer and on every larger model",
            f"{correlation}, {worst}",
            at_least=config.rank,
        ),
        added(
            "half_on_average",
            transfer,
            "Subsets that match gradients of a proxy which sees half of the covariates help larger "
            "models on average",
            of_targets,
            at_most=config.gain,
        ),
        added(
            "half_loss",
            ranking,
            "A proxy that sees half of the covariates chooses as well as one that sees all",
            "its error over the linear proxy's, geometric mean of the targets",
            at_most=config.no_loss,
        ),
        added(
            "deep",
            ranking,
            f"Subsets that match gradients of a prefix of {min(config.descents)} layers help the "
            "model of one layer",
            of_random,
            at_most=config.gain,
        ),
        added(
            "deep_loss",
            ranking,
            "They help the model of one layer as those of its own prefix do",
            "the error over that of its own prefix",
            at_most=config.no_loss,
        ),
        added(
            "rank_gap",
            ranking,
            "Random subsets that match gradients of the one-layer prefix better teach larger "
            "models better",
            "the mean over pools of Spearman's correlation of gap and error, mean of the targets",
            at_least=config.rank,
        ),
        added(
            "rank_gap_deep",
            ranking,
            f"Random subsets that match gradients of the prefix of {min(config.descents)} layers "
            "better teach one layer better",
            "the mean over pools of Spearman's correlation of gap and error",
            at_least=config.rank,
        ),
    )
