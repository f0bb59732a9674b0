"""What `lm_label_bias` judges: changes of accuracy and AUC beside what a moved threshold does."""

from experiments.language.language_config import redrawn
from experiments.language.lm_label_bias.config import mildest, strongest
from experiments.language.lm_label_bias.margins import (
    EVERYWHERE,
    Readings,
    accuracy,
    auc,
    averaged,
    calibrated,
    fitted,
    order,
)
from lsa_lab.judging.statements import Statement, grid

DATA = ("rotten_tomatoes", "imdb", "reuters")
WORDINGS = ("other words", "another template", "classes as they come")
# Committed ids; those of a config's own data sets, wordings and rates follow from their names.
AUCS = grid(
    "auc_rotten_tomatoes_mlp_0.9 auc_rotten_tomatoes_mlp_0.99 auc_rotten_tomatoes_attention_0.99 "
    "auc_imdb_mlp_0.9 auc_imdb_mlp_0.99 auc_imdb_attention_0.99 "
    "auc_reuters_mlp_0.9 auc_reuters_mlp_0.99 auc_reuters_attention_0.99 "
    "- auc_other_words_mlp_0.99 - - auc_another_template_mlp_0.99 - "
    "- auc_classes_as_they_come_mlp_0.99 -",
    data=(*DATA, *WORDINGS),
    edit=("MLP 0.9", "MLP 0.99", "attention 0.99"),
)
SHIFTS = grid(
    "shift_rotten_tomatoes shift_imdb shift_reuters "
    "shift_other_words shift_another_template shift_classes_as_they_come",
    data=(*DATA, *WORDINGS),
)
SAME_AUC = 0.01  # a change of AUC within this is none
LOOKED = "fixed after a look at eight other sets, with 48 sentences each"
RIVALS = {
    "calibrated": dict(
        statistic=calibrated,
        rival="calibration",
        measured="calibrated",
        note=LOOKED,
    ),
    "threshold": dict(
        statistic=fitted,
        rival="a threshold fitted on other sentences",
        measured="unclipped with that threshold",
        note="fitted on one half of a set's sentences and judged on the other, both ways",
    ),
}


def numbers(dataset) -> Readings:
    return Readings(dataset)


def statements(config) -> tuple[Statement, ...]:
    ours, paper = "derived here", "A2 (2406.03768), figures 1 and 4, in our setting"
    where = {name: f"{config.model_name}, on {task.title}" for name, task in config.tasks}
    first, everywhere = (
        next(iter(where.values())),
        f"{config.model_name}, on {len(where)} data sets",
    )
    where |= {name: f"{config.model_name}, with {name}" for name, _ in config.attacks}
    where[EVERYWHERE] = everywhere
    titles = {name: task.title for name, task in config.tasks}
    edit, attention = strongest(config), strongest(config, "attention")
    clipped = f"{edit} in layer {config.deep}"
    sets = dict(over="sets of demonstrations", redrawn=redrawn(config, 12))
    fresh = "accuracy on fresh sentences"
    moved = (
        f"{fresh}, clipped less unclipped with the threshold moved until it gives each label as "
        "often as the clipped model"
    )
    judged = [*(f"MLP {rate:g}" for rate in config.rates), attention]
    alone = [(name, edit) for name, _ in (*config.tasks, *config.attacks)]
    aucs = [(name, each) for name, _ in config.tasks for each in judged]
    aucs += alone[len(config.tasks) :]

    def words(data, edit):
        title = titles.get(data, data)
        mild = f"rest, {edit}" if data == EVERYWHERE else f"rest, {title}, {edit}"
        return dict(where=where[data], title=title, rest=mild)

    return (
        Statement(
            "auc",
            ours,
            f"{{where}}: {{edit}} in layer {config.deep} clips nothing that tells the classes "
            "apart",
            "AUC of the label margin, clipped less unclipped,",
            margin=SAME_AUC,
            note=LOOKED,
            label="AUC, {title}, {edit}",
            sample=lambda r, data, edit: r.change_of_auc(data, edit),
            cells={
                id_of(AUCS, "auc", data=name, edit=each): dict(data=name, edit=each)
                for name, each in aucs
            },
            words=words,
            message=f"{config.model_name}: clipping an MLP or attention in layer {config.deep} "
            "clips nothing that tells the classes apart",
            **sets,
        ),
        Statement(
            "shift",
            ours,
            f"{{where}}: what {{edit}} in layer {config.deep} does to accuracy a moved threshold "
            "does",
            f"{moved},",
            margin=0.02,
            note="the threshold needs no label",
            label="{rest}",
            sample=lambda r, data, edit: r.rest(data, edit),
            cells={
                id_of(SHIFTS, "shift", data=name): dict(data=name, edit=edit) for name, _ in alone
            }
            | {"shift_mild": dict(data=EVERYWHERE, edit=mildest(config))},
            words=words,
            message=f"{config.model_name}: what clipping an MLP in layer {config.deep} does to "
            "accuracy a moved threshold does",
            **sets,
        ),
        Statement(
            "most_is_bias",
            ours,
            f"{everywhere}: most of what {clipped} does to accuracy is a shift",
            f"|{moved}| less half of |{fresh}, clipped less unclipped|, averaged over data sets,",
            at_most=0.0,
            label="|rest| less half of\n|change|",
            sample=lambda r: r.rest_beyond_half(edit),
            **sets,
        ),
        Statement(
            "order",
            ours,
            f"{everywhere}: {clipped} keeps the order of the sentences' margins",
            "rank correlation of clipped and unclipped margins, averaged over data sets,",
            at_least=0.95,
            sample=lambda r: averaged(r.table(order).sel(edit=edit)),
            **sets,
        ),
        Statement(
            "a2_gain",
            paper,
            f"{everywhere}: MLP {{rate:g}} in layer {config.deep} improves accuracy",
            f"{fresh}, clipped less unclipped, averaged over data sets,",
            at_least=0.0,
            note="A2 reports the best of many layers and rates; here both are fixed before",
            label="MLP {rate:g} less unclipped",
            sample=lambda r, rate: averaged(r.gain(f"MLP {rate:g}")),
            cells={f"a2_gain_{rate:g}": dict(rate=rate) for rate in config.rates},
            message=f"{everywhere}: clipping the MLP in layer {config.deep} improves accuracy",
            **sets,
        ),
        Statement(
            "calibration_gains",
            "Zhao et al. (2102.09690)",
            f"{everywhere}: contextual calibration of the unclipped model improves accuracy",
            f"{fresh}, calibrated less unclipped, averaged over data sets,",
            at_least=0.0,
            label="calibrated less unclipped",
            sample=lambda r: averaged(r.rival(calibrated) - r.base),
            **sets,
        ),
        Statement(
            "rivals",
            ours,
            f"{everywhere}: {{rival}} gains as much as {clipped}",
            f"{fresh}, {{measured}} less clipped, averaged over data sets,",
            at_least=-0.02,
            note="{note}",
            label="{name} less clipped",
            sample=lambda r, name: averaged(
                r.rival(RIVALS[name]["statistic"]) - r.table(accuracy).sel(edit=edit)
            ),
            cells=grid("calibration threshold", name=RIVALS),
            words=lambda name: RIVALS[name],
            message=f"{everywhere}: calibration and a fitted threshold gain as much as {clipped}",
            **sets,
        ),
        Statement(
            "drop_auc",
            ours,
            f"{everywhere}: without the MLP the classes are told apart as with {clipped}",
            f"AUC of the label margin, dropped less {edit}, averaged over data sets,",
            margin=SAME_AUC,
            label="AUC, dropped less clipped",
            sample=lambda r: r.dropped(auc, edit),
            **sets,
        ),
        Statement(
            "drop_accuracy",
            ours,
            f"{everywhere}: dropping the MLP does nearly the same as {clipped}",
            f"{fresh}, dropped less {edit}, averaged over data sets,",
            margin=0.05,
            note=LOOKED,
            label="dropped less clipped",
            sample=lambda r: r.dropped(accuracy, edit),
            **sets,
        ),
        Statement(
            "control",
            ours,
            f"{first}: {edit} in layer {config.shallow} does change AUC",
            "AUC of the label margin, clipped less unclipped,",
            at_most=-0.05,
            note="the control: the statistic can move",
            label=f"AUC, {edit}, layer {config.shallow}",
            sample=lambda r: r.control(),
            **sets,
        ),
    )


def id_of(committed, stem: str, **case: str) -> str:
    """The committed id of a case, else its names as an id holds them, "auc_news_mlp_0.5"."""
    ids = [id for id, place in committed.items() if place == case]
    return ids[0] if ids else "_".join([stem, *case.values()]).lower().replace(" ", "_")
