"""What `lm_clipping` judges: layers that tolerate it, and what it gains beside its rivals."""

from functools import partial

from experiments.language.data_sets import bounds_or_pilot, data_grid, families
from experiments.language.language_config import redrawn
from experiments.language.lm_clipping.config import MATRICES, PARTS, SQUARE, WIDE
from experiments.language.lm_clipping.readings import Numbers
from lsa_lab.judging.statements import Statement, grid

A2, OURS = "A2 (2406.03768)", "derived here"
SETTING = "in our setting"
EACH = "of each collection, since a look at these runs: the average of two hid that signs differ"
SEEN = "added; the largest ratio of attention and that of MLPs by layer had been seen"
HIDDEN = "added, for the mean over all matrices hides that these two differ"
ADDED = "added to these runs: beside Algorithm 1, which gains less, alone"
LATER = "added to these runs, whose means over parts were known, for the finding on one number"
LOOK = "added after a look"
SETS = "sets of demonstrations"
OTHERS = {"w_q": "W_Q", "w_v": "W_V", "w_o": "W_O"}  # matrices of attention beside W_K

numbers = Numbers


def statements(config) -> tuple[Statement, ...]:
    return (
        *layer_statements(config),
        *search_statements(config),
        *spectrum_statements(config),
    )


def layer_statements(config):
    each = EACH if len(config.tasks) > 1 else ""
    anew = config.deep and f"{config.deep.runs} fresh sets, {config.runs} before"
    fresh = {name: anew for name, _ in config.deep.tasks} if config.deep else {}
    family = families(config, fresh=fresh, over=SETS, revision=each)
    cells = data_grid("rotten_tomatoes", "reuters")
    both = partial(cells, part=PARTS)
    # Sentences count layers from 1.
    shallow, deep, high = 1 + min(config.layers), 1 + max(config.layers), max(config.rates)
    fewest, most = min(config.other_shots), max(config.other_shots)
    return (
        family(
            "deep_is_flat",
            f"{A2}, figure 1 (ii), our reading, {SETTING}",
            f"drastic clipping of {{part}} in layer {deep} costs no discrimination",
            f"AUC, clipped less unclipped, averaged over rates >= {min(config.rates):g},",
            at_least=-0.01,
            redrawn="{fresh}",
            sample=lambda n, data, part: n.deepest[data].flatness(part),
            cells=both(
                "rotten_tomatoes_attention_deep_is_flat rotten_tomatoes_mlp_deep_is_flat "
                "reuters_attention_deep_is_flat reuters_mlp_deep_is_flat"
            ),
        ),
        family(
            "deep_keeps_accuracy",
            f"{A2}, figure 1 (ii), {SETTING}",
            f"drastic clipping of {{part}} in layer {deep} costs no accuracy",
            f"accuracy, clipped less unclipped, averaged over rates >= {min(config.rates):g},",
            at_least=-0.01,
            note="the bound is that on AUC",
            revision=f"{LOOK}: figure 1 has accuracy, and AUC alone was judged",
            sample=lambda n, data, part: n.deepest[data].flatness(part, "accuracy"),
            cells=both(
                "rotten_tomatoes_attention_deep_keeps_accuracy "
                "rotten_tomatoes_mlp_deep_keeps_accuracy reuters_attention_deep_keeps_accuracy "
                "reuters_mlp_deep_keeps_accuracy"
            ),
        ),
        family(
            "shallow_collapses",
            f"{A2}, figure 1 (ii), {SETTING}",
            f"{{part}} {high:g} in layer {shallow} leaves little better than guessing",
            "AUC after clipping",
            at_most=0.6,
            sample=lambda n, data, part: n.changes[data].collapse(part),
            cells=both(
                "rotten_tomatoes_attention_shallow_collapses "
                "rotten_tomatoes_mlp_shallow_collapses reuters_attention_shallow_collapses "
                "reuters_mlp_shallow_collapses"
            ),
        ),
        family(
            "deep_tolerates_more",
            f"{A2}, figure 1 (ii), {SETTING}",
            f"layer {deep} tolerates {{part}} {high:g} better than layer {shallow}",
            f"AUC, clipped in layer {deep} less clipped in layer {shallow},",
            at_least=0.05,
            sample=lambda n, data, part: n.changes[data].tolerance(part),
            cells=both(
                "rotten_tomatoes_attention_deep_tolerates_more "
                "rotten_tomatoes_mlp_deep_tolerates_more reuters_attention_deep_tolerates_more "
                "reuters_mlp_deep_tolerates_more"
            ),
        ),
        family(
            "dropped",
            f"{A2}, appendix B.6, {SETTING}",
            f"dropping {{part}} of layer {deep} neither harms nor improves accuracy",
            "accuracy, dropped less unclipped,",
            margin=0.05,
            revision="added to these runs: the row on AUC, dropped beside clipped, is not what the "
            "appendix says",
            redrawn="{fresh}",
            sample=lambda n, data, part: n.deepest[data].drop_change(part),
            cells=both(
                "rotten_tomatoes_attention_dropped rotten_tomatoes_mlp_dropped "
                "reuters_attention_dropped reuters_mlp_dropped"
            ),
        ),
        family(
            "helps",
            f"{A2}, figure 1 (i), {SETTING}",
            "one edit, the same for all sets, improves accuracy",
            "accuracy, clipped less unclipped, by the edit that is best on average for the other "
            "sets,",
            at_least=0.01,
            note=f"of layers {', '.join(str(1 + layer) for layer in config.layers)} and all rates",
            sample=lambda n, data: n.changes[data].gain(),
            cells=cells("rotten_tomatoes_helps reuters_helps"),
        ),
        family(
            "few_shots",
            f"{A2}, figure 2, {SETTING}",
            f"with fewer demonstrations clipping layer {shallow} costs less",
            f"AUC lost by clipping at rate {high:g} with {most} demonstrations less that with "
            f"{fewest}, averaged over parts,",
            at_least=0.0,
            note="where a clipped layer leaves the same whatever the shots, that is the rise of "
            "the unclipped model with them",
            sample=lambda n, data: n.changes[data].few_shots(),
            cells=cells("rotten_tomatoes_few_shots reuters_few_shots"),
        ),
        family(
            "more_shots",
            f"{A2}, section 2.2, {SETTING}",
            "unclipped, more demonstrations tell the classes apart better",
            f"AUC with {most} demonstrations less that with {fewest},",
            at_least=0.0,
            revision="added to these runs, for the row on fewer shots supposes it",
            sample=lambda n, data: n.changes[data].more_shots(),
            cells=cells("rotten_tomatoes_more_shots reuters_more_shots"),
        ),
        family(
            "keys_alone",
            f"{A2}, appendix B.3, {SETTING}",
            f"clipping W_K alone in layer {deep} does not change AUC on average",
            f"AUC, clipped at rate {config.matrix_rate:g} less unclipped,",
            margin=0.01,
            sample=lambda n, data: n.changes[data].alone("w_k"),
            cells=cells("rotten_tomatoes_keys_alone reuters_keys_alone"),
        ),
        family(
            "others_alone",
            f"{OURS}, a control",
            f"clipping {{named}} alone in layer {deep} does not change AUC on average",
            f"AUC, clipped at rate {config.matrix_rate:g} less unclipped,",
            margin=0.01,
            revision=f"{LOOK}: what W_K says of itself, if the others do as little, is nothing",
            sample=lambda n, data, matrix: n.changes[data].alone(matrix),
            cells=cells(
                "rotten_tomatoes_w_q_alone rotten_tomatoes_w_v_alone rotten_tomatoes_w_o_alone "
                "reuters_w_q_alone reuters_w_v_alone reuters_w_o_alone",
                matrix=OTHERS,
            ),
            words=lambda matrix: dict(named=OTHERS[matrix]),
            message=f"clipping W_Q, W_V or W_O alone in layer {deep} does not change AUC",
        ),
    )


def search_statements(config):
    titles = " and ".join(task.title for _, task in config.search.tasks)
    where, gain = f"{config.model_name}, on {titles}", "the gain of accuracy on test"
    fresh = redrawn(config.search, 9)
    sources = {
        "Algorithm 1": "figure 4 and appendix C.5",
        "more layers": "figure 1 (i), our reading",
    }
    edits = {
        "Algorithm 1": "A2's Algorithm 1",
        "more layers": f"the edit that a search of {WIDE} chooses for each set",
    }

    def gain_words(search):
        changes = {"fresh": fresh} if search == "Algorithm 1" else {"changed": ADDED}
        words = dict(of=sources[search], edit=edits[search], fresh="", changed="")
        return words | changes

    rivals = {
        "threshold fitted": dict(
            who="a threshold fitted on the same validation sentences", changed="", fresh=fresh
        ),
        "calibrated": dict(who="contextual calibration", changed=ADDED, fresh=""),
    }
    apart = families(config, texts=config.search, over=SETS)
    return (
        apart(
            "gains_apart",
            f"{A2}, figure 4 and appendix C.5, {SETTING}",
            "A2's Algorithm 1 on {part} improves accuracy",
            f"{gain},",
            at_least=0.01,
            revision=f"{LOOK}, each collection and part: their average holds",
            sample=lambda n, data, part: n.gains.apart(data, part),
            cells=data_grid("rotten_tomatoes", "reuters")(
                "rotten_tomatoes_attention_algorithm rotten_tomatoes_mlp_algorithm "
                "reuters_attention_algorithm reuters_mlp_algorithm",
                part=PARTS,
            ),
        ),
        Statement(
            "gains",
            f"{A2}, {{of}}, {SETTING}",
            f"{where}: {{edit}} improves accuracy",
            f"{gain}, averaged over data sets and, of Algorithm 1, over parts,",
            **bounds_or_pilot(config.search, at_least=0.01),
            over=SETS,
            revision="{changed}",
            redrawn="{fresh}",
            sample=lambda n, search: n.gains.gain(search),
            cells=grid("algorithm_gains wider_gains", search=edits),
            words=gain_words,
        ),
        Statement(
            "rivals",
            OURS,
            f"{where}: {{who}} gains as much as a search of {WIDE}",
            f"{gain}, {{rival}} less that of the search, averaged over data sets,",
            **bounds_or_pilot(config.search, at_least=-0.01),
            over=SETS,
            revision="{changed}",
            redrawn="{fresh}",
            sample=lambda n, rival: n.gains.rivals[rival] - n.gains.gain("more layers"),
            cells=grid("threshold calibration_wider", rival=rivals),
            words=lambda rival: rivals[rival],
        ),
        Statement(
            "one_number",
            OURS,
            f"{where}: {{who}} gains as much as Algorithm 1",
            f"{gain}, {{rival}} less that of Algorithm 1, averaged over data sets and parts,",
            **bounds_or_pilot(config.search, at_least=-0.01),
            over=SETS,
            revision=LATER,
            sample=lambda n, rival: n.gains.rivals[rival] - n.gains.gain("Algorithm 1"),
            cells=grid("algorithm_threshold algorithm_calibration", rival=rivals),
            words=lambda rival: dict(who=rivals[rival]["who"]),
        ),
        Statement(
            "algorithm_auc",
            OURS,
            f"{where}: Algorithm 1 on {{part}} leaves the AUC as it was",
            "the change of AUC on test, averaged over data sets,",
            **bounds_or_pilot(config.search, margin=0.02),
            over=SETS,
            revision=LATER,
            sample=lambda n, part: n.gains.auc(part),
            cells=grid("attention_auc mlp_auc", part=PARTS),
        ),
    )


def spectrum_statements(config):
    spectra, model = config.spectra, config.model_name
    by_layer = partial(Statement, over="layers")
    # The last singular value, as in A2, and the one in the middle, which rounding hardly moves.
    shares = {"condition": 1.0, "median": 0.5}
    ratios = {
        "condition": "condition number",
        "median": "ratio of the first to the median singular value",
    }
    layers = {
        "deeper": ("in the deeper half of its layers", "a layer less the one that many before it"),
        "last": (
            f"in its last {spectra.last} layers",
            f"the last {spectra.last} layers less one of the others",
        ),
    }
    ids = "deep_condition last_condition deep_median last_median"

    def words(ratio, where):
        place, less = layers[where]
        return dict(measure=ratios[ratio], place=place, less=less)

    def places(ids):
        return grid(ids, ratio=tuple(ratios), where=tuple(layers))

    chosen = {"all": MATRICES, "square": SQUARE}  # the latter are W_Q and W_O
    logs = "log10 of the {measure}, averaged over matrices"
    return (
        by_layer(
            "spectra_rise",
            f"{A2}, figure 3, our reading, {SETTING}",
            f"{model}: the matrices {{place}} have a larger {{measure}}",
            f"{logs}, {{less}},",
            at_least=0.0,
            revision=SEEN,
            sample=lambda n, ratio, where: n.spectra.rise(where, "stored", shares[ratio]),
            cells=places(ids),
            words=words,
            message=f"{model}: deep layers, and the last ones, have larger condition numbers",
        ),
        by_layer(
            "spectra_rise_beyond_norms",
            OURS,
            f"{model}: {{place}} the {{measure}} is larger by more than in random matrices with "
            "the same norms of rows and columns",
            f"{logs}, {{less}}, less the same of random matrices,",
            at_least=0.0,
            note="the null of figure 3",
            revision=SEEN,
            sample=lambda n, ratio, where: (
                n.spectra.rise(where, "stored", shares[ratio])
                - n.spectra.rise(where, "random", shares[ratio])
            ),
            cells=places(
                "deep_condition_beyond_norms last_condition_beyond_norms deep_median_beyond_norms "
                "last_median_beyond_norms"
            ),
            words=words,
        ),
        by_layer(
            "spectra_rounding",
            OURS,
            f"{model}: another error of rounding to {spectra.bits} bits leaves the {{measure}} "
            "of {of} matrices within a factor 2",
            "|log10| of the {measure} with that error over without, averaged over {of} matrices "
            "and draws,",
            at_most=0.3,
            note="above it, the number is that of the rounding and not of the model; W_Q and W_O "
            "are square",
            revision="{revision}",
            sample=lambda n, ratio, of: n.spectra.moved(shares[ratio], chosen[of]),
            cells=grid(
                "condition_rounded condition_rounded_square median_rounded median_rounded_square",
                ratio=tuple(ratios),
                of=tuple(chosen),
            ),
            words=lambda ratio, of: dict(
                measure=ratios[ratio], revision=SEEN if of == "all" else HIDDEN
            ),
        ),
    )
