"""What the statements of `matching_transfer` are judged by."""

from experiments.matching.matching_transfer.transferring import SMALL
from lsa_lab import results
from lsa_lab.claims import about_the_median


def ratios(dataset):  # [target, run, rule]
    """Error of the chosen subset over that of the median random one, in each run's median pool."""
    return (dataset.chosen / dataset.random.median("subset")).median("pool")


def claims(dataset):
    settings = results.config_of(dataset)
    ratio, rank = ratios(dataset), dataset.spearman.sel(target=SMALL, drop=True)
    others = [name for name in dataset.target.values if name != SMALL]

    def worst(samples, sign=1):  # [target, run] -> [R], of the target with the worst median
        samples = samples.sel(target=others) * sign
        return sign * samples.isel(target=int(samples.median("run").argmax("target"))).values

    paper, source = "A3, transfer to larger models", "A3; modelled on its rank correlation"
    over = "error over that of the median random subset"
    median = f"median over runs, at the worst of {len(others)} targets, of the"
    proxy, literal = (ratio.sel(rule=rule) for rule in ("linear proxy", "prefix"))
    found = [
        about_the_median(
            f"matching_transfer.{name}",
            paper,
            f"Subsets that match gradients of {what} help every larger model",
            f"{median} {over} <= {settings.gain:g}",
            worst(samples),
            at_most=settings.gain,
        )
        for name, what, samples in (
            ("proxy", "the linear proxy", proxy),
            ("prefix", "a prefix of one-layer attention", literal),
        )
    ]
    found += [
        about_the_median(
            "matching_transfer.mismatching",
            "A3, figure 4",
            "Subsets that mismatch gradients harm every larger model",
            f"median over runs, at the least harmed target, of the {over} >= {settings.gain:g}",
            worst(ratio.sel(rule="mismatched"), sign=-1),
            at_least=settings.gain,
        ),
        about_the_median(
            "matching_transfer.literal",
            "derived here",
            "A prefix's gradients, a linear map of the proxy's, choose as well as these",
            f"{median} prefix's error over the linear proxy's <= {settings.no_loss:g}",
            worst(literal / proxy),
            at_most=settings.no_loss,
        ),
    ]
    for subsets, what in (("all", "Chosen, mismatched and random"), ("random", "Random")):
        correlation = rank.sel(subsets=subsets).rename(other="target")
        found.append(
            about_the_median(
                f"matching_transfer.rank_{subsets}",
                source,
                f"{what} subsets rank alike on one layer and on every larger model",
                f"{median} mean over pools of Spearman's correlation >= {settings.rank:g}",
                worst(correlation, sign=-1),
                at_least=settings.rank,
            )
        )
    return found
