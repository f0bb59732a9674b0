"""What `lm_label_bias` judges, by the criteria in its Config."""

from experiments.language.language_config import redrawn
from lsa_lab.claims import Statement

UNCLIPPED = "unclipped"
DROPPED = "MLP dropped"


def edits(config) -> dict[str, tuple[str, float | str]]:
    """The edits of the deep layer by name: module and rate."""
    by_rate = {f"MLP {rate:g}": ("mlp", rate) for rate in config.rates}
    attention = {strongest(config, "attention"): ("attention", max(config.rates))}
    return by_rate | attention | {DROPPED: ("mlp", "drop")}


def strongest(config, part: str = "MLP") -> str:
    """The edit of a part at the largest rate."""
    return f"{part} {max(config.rates):g}"


def statements(config) -> tuple[Statement, ...]:
    ours, paper = "derived here", "A2 (2406.03768), figures 1 and 4, in our setting"
    ways = {name: f"{config.model_name}, on {task.title}" for name, task in config.tasks}
    attacks = {name: f"{config.model_name}, with {name}" for name, _ in config.attacks}
    everywhere = f"{config.model_name}, on {len(ways)} data sets"
    edit, mildest = strongest(config), f"MLP {min(config.rates):g}"
    clipped = f"{edit} in layer {config.deep}"
    looked = "fixed after a look at eight other sets, with 48 sentences each"
    sets = dict(over="sets of demonstrations", redrawn=redrawn(config, 12))
    accuracy = "accuracy on fresh sentences"
    shift = (
        f"{accuracy}, clipped less unclipped with the threshold moved until it gives each label as "
        "often as the clipped model"
    )

    def auc(id, where, edit):
        return Statement(
            id,
            ours,
            f"{where}: {edit} in layer {config.deep} clips nothing that tells the classes apart",
            "AUC of the label margin, clipped less unclipped,",
            margin=config.auc_margin,
            note=looked,
            **sets,
        )

    def same(id, where, edit):
        return Statement(
            id,
            ours,
            f"{where}: what {edit} in layer {config.deep} does to accuracy a moved threshold does",
            f"{shift},",
            margin=config.accuracy_margin,
            note="the threshold needs no label",
            **sets,
        )

    judged = [f"MLP {rate:g}" for rate in config.rates] + [strongest(config, "attention")]
    return (
        *(
            auc(word("auc", name, edit), where, edit)
            for name, where in ways.items()
            for edit in judged
        ),
        *(same(word("shift", name), where, edit) for name, where in ways.items()),
        same("shift_mild", everywhere, mildest),
        Statement(
            "most_is_bias",
            ours,
            f"{everywhere}: most of what {clipped} does to accuracy is a shift",
            f"|{shift}| less half of |{accuracy}, clipped less unclipped|, averaged over data "
            "sets,",
            at_most=0.0,
            **sets,
        ),
        Statement(
            "order",
            ours,
            f"{everywhere}: {clipped} keeps the order of the sentences' margins",
            "rank correlation of clipped and unclipped margins, averaged over data sets,",
            at_least=config.order,
            **sets,
        ),
        *(
            Statement(
                word("a2_gain", f"{rate:g}"),
                paper,
                f"{everywhere}: MLP {rate:g} in layer {config.deep} improves accuracy",
                f"{accuracy}, clipped less unclipped, averaged over data sets,",
                at_least=0.0,
                note="A2 reports the best of many layers and rates; here both are fixed before",
                **sets,
            )
            for rate in config.rates
        ),
        Statement(
            "calibration_gains",
            "Zhao et al. (2102.09690)",
            f"{everywhere}: contextual calibration of the unclipped model improves accuracy",
            f"{accuracy}, calibrated less unclipped, averaged over data sets,",
            at_least=0.0,
            **sets,
        ),
        Statement(
            "calibration",
            ours,
            f"{everywhere}: calibration gains as much as {clipped}",
            f"{accuracy}, calibrated less clipped, averaged over data sets,",
            at_least=-config.accuracy_margin,
            note=looked,
            **sets,
        ),
        Statement(
            "threshold",
            ours,
            f"{everywhere}: a threshold fitted on other sentences gains as much as {clipped}",
            f"{accuracy}, unclipped with that threshold less clipped, averaged over data sets,",
            at_least=-config.accuracy_margin,
            note="fitted on one half of a set's sentences and judged on the other, both ways",
            **sets,
        ),
        Statement(
            "drop_auc",
            ours,
            f"{everywhere}: without the MLP the classes are told apart as with {clipped}",
            f"AUC of the label margin, dropped less {edit}, averaged over data sets,",
            margin=config.auc_margin,
            **sets,
        ),
        Statement(
            "drop_accuracy",
            ours,
            f"{everywhere}: dropping the MLP does nearly the same as {clipped}",
            f"{accuracy}, dropped less {edit}, averaged over data sets,",
            margin=config.near,
            note=looked,
            **sets,
        ),
        Statement(
            "control",
            ours,
            f"{next(iter(ways.values()))}: {edit} in layer {config.shallow} does change AUC",
            "AUC of the label margin, clipped less unclipped,",
            at_most=-config.fall,
            note="the control: the statistic can move",
            **sets,
        ),
        *(auc(word("auc", name, edit), where, edit) for name, where in attacks.items()),
        *(same(word("shift", name), where, edit) for name, where in attacks.items()),
    )


def word(*names: str) -> str:
    """Names as an id holds them, "auc_reuters_mlp_0.9"."""
    return "_".join(names).lower().replace(" ", "_")
