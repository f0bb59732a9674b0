"""What `lm_heads` judges, by the criteria in its Config."""

from functools import partial

from lsa_lab.claims import Statement

A4 = "A4 (2408.04532), abstract, in our setting"
READING = "A4 (2408.04532), abstract, our reading, in our setting"
MODELLED = "modelled on A4 (2408.04532), abstract"
A2 = "A2 (2406.03768), Theorem 1, our reading, in our setting"
HERE = "derived here"

# How much a head matters: what is measured with it closed, and whose reading that is.
READINGS = {
    "rise": ("the rise of the label cross-entropy with the head closed", A4),
    "change": ("the change of the labels' probabilities, KL(whole, closed),", READING),
    "mean": ("that change with the head at its mean write", READING),
}
_NAMES = {"rise": "rise of the loss", "change": "change of answers", "mean": "mean ablation"}
_AVERAGED = "N was that of each set by itself, which few sentences make uneven by chance"
_MORE = "on 10 sentences of a set, too few"
_WORDS = (
    "it was the best linear map of all tokens, which missed .25: with fewer words in a prompt than "
    "dimensions it is any function of the word, and exact where a word stands once"
)
_NOISE = "rises of either sign count where they are positive: noise makes heads seem alike"


def statements(config) -> tuple[Statement, ...]:
    return tuple(
        row
        for name, task in config.tasks
        for of in (_about_readings, _about_layers, _about_pruning, _about_maps)
        for row in of(config, name, f"{config.model_name}, on {task.title}")
    )


def _row(config, name: str, id: str, **words):
    before = "12, and 18" if config.runs > 12 else "18"
    fresh = f"{config.runs} fresh runs, {before} before"
    return Statement(f"{name}_{id}", over="sets of demonstrations", redrawn=fresh, **words)


def _about_readings(config, name: str, where: str):
    jackknife = "averaged over sets (pseudo-values of the jackknife)"
    for reading, (importance, source) in READINGS.items():
        if reading == "rise" and not config.rises_judged:
            continue
        note = _NOISE if reading == "rise" else ""
        yield _row(
            config,
            name,
            f"first_{reading}",
            source=source,
            says=f"{where}: all heads of the first layer matter, by {_NAMES[reading]}",
            measured=f"N_1 / H, importance being {importance} {jackknife},",
            at_least=config.all_matter,
            note=note,
            revision=_AVERAGED,
        )
        yield _row(
            config,
            name,
            f"later_{reading}",
            source=source,
            says=f"{where}: one head of a later layer is what matters in it, by {_NAMES[reading]}",
            measured=f"N_l, mean over later layers, importance being {importance} {jackknife},",
            at_most=config.one_later,
            note=note,
            revision=_AVERAGED,
        )


def _about_layers(config, name: str, where: str):
    left = "KL(whole, top head kept) over KL(whole, all closed)"
    chosen = "the top head is the one that changes answers to other sentences most"
    row = partial(_row, config, name, statistic="ratio")
    yield row(
        id="one_is_enough",
        note=chosen,
        source=READING,
        says=f"{where}: in a later layer its top head does nearly all that its heads do",
        measured=f"{left}, geometric mean over later layers,",
        at_most=config.enough,
    )
    yield row(
        id="one_is_too_few",
        note=chosen,
        source=READING,
        says=f"{where}: in the first layer its top head alone does not",
        measured=f"{left},",
        at_least=config.enough,
    )
    yield row(
        id="first_layer",
        source=MODELLED,
        says=f"{where}: the heads of the first layer together change answers more than a later's",
        measured="KL(whole, all closed) of the first layer over that of later ones, geometric "
        "mean over these,",
        at_least=config.first,
    )
    yield _row(
        config,
        name,
        "slopes",
        source="Michel et al. (1905.10650), our reading",
        says=f"{where}: first-order estimates rank a layer's heads as closing them does",
        measured="rank correlation of slope and rise over the heads of a layer, mean over layers,",
        at_least=config.agrees,
    )
    yield _row(
        config,
        name,
        "ablations",
        source=HERE,
        says=f"{where}: zero and mean ablation rank a layer's heads alike",
        measured="rank correlation of the two changes, mean over layers,",
        at_least=config.alike,
        note="a constant that a head writes and a bias takes back moves the first alone",
    )


def _about_pruning(config, name: str, where: str):
    order = "rank correlation of the label margins with the whole model's"
    yield _row(
        config,
        name,
        "pruned",
        source=READING,
        says=f"{where}: all heads but the top one of each later layer can be removed",
        measured=f"{order},",
        at_least=config.unchanged,
        note="by the mean absolute slope; the cross-entropy of an empty answer is near the whole's",
        revision=_MORE,
    )
    yield _row(
        config,
        name,
        "first_pruned",
        source=MODELLED,
        says=f"{where}: to keep only the top head of the first layer costs more than that",
        measured=f"{order}, later heads pruned less first layer pruned,",
        at_least=0.0,
        revision=_MORE,
    )
    yield _row(
        config,
        name,
        "top_heads",
        source=MODELLED,
        says=f"{where}: the {config.kept} top heads of each layer keep answers better than as many "
        "random ones",
        measured=f"{order}, top less random,",
        at_least=0.0,
        revision=_MORE,
    )


def _about_maps(config, name: str, where: str):
    recur = "of words that recur, without the first token, unbiased for their number"
    yield _row(
        config,
        name,
        "map",
        source=A2,
        says=f"{where}: the tokens of a prompt have no common map, for a word's rows differ by "
        "context",
        measured=f"|H_L - mean of the word| / |H_L - H_0| after the last layer {recur},",
        at_least=config.missed,
        note="A2's layers are linear attention; which map the others lack is its open question",
        revision=_WORDS,
    )
    yield _row(
        config,
        name,
        "map_relative",
        source=A2,
        says=f"{where}: nor have the directions of their rows",
        measured=f"|U_L - mean of the word| / |U_L| of rows over their lengths {recur},",
        at_least=config.missed,
        revision=_WORDS,
    )
