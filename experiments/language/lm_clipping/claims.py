"""What `lm_clipping` judges: layers that tolerate it, and what it gains beside its rivals."""

from functools import partial

from experiments.language.data_sets import about, called, families
from experiments.language.language_config import redrawn
from experiments.language.lm_clipping.config import DROPPED, PARTS
from experiments.language.lm_clipping.readings import Numbers, moved, rise
from lsa_lab.judging.statements import Statement, grid
from lsa_lab.judging.statistics import best_elsewhere

A2, OURS, SETTING = "A2 (2406.03768)", "derived here", "in our setting"
FIGURE_4 = f"{A2}, figure 4 and appendix C.5, {SETTING}"
APART = "of each collection, since the average of two hid that signs differ"
SEEN = "added; the largest ratio of attention and that of MLPs by layer had been seen"
OVER = "sets of demonstrations"
WIDER = "a search of more layers and of both parts"

numbers = Numbers
on_each = partial(grid, data=("rotten_tomatoes", "reuters"))


def statements(config) -> tuple[Statement, ...]:
    return (*layer_statements(config), *search_statements(config), *spectrum_statements(config))


def layer_statements(config):
    anew = config.deep and f"{config.deep.runs} fresh sets, {config.runs} before"
    fresh = {name: anew for name, _ in config.deep.tasks} if config.deep else {}
    each = APART if len(config.tasks) > 1 else ""
    family = families(config, fresh=fresh, over=OVER, revision=each)

    def by_part(id, place, says, measured, ids, reading=None, **fields):
        def words(part, **own):
            added = dict(since="added, for figure 1 has it, and AUC alone was judged", fresh="")
            own |= added if own.get("reading") == "accuracy" else dict(since=each)
            return dict(own, block=part.replace("MLP", "the MLP"))

        cells = on_each(ids, part=PARTS, **({"reading": reading} if reading else {}))
        fields |= dict(cells=cells, words=words)
        return family(id, f"{A2}, {place}, {SETTING}", says, measured, **fields)

    def helps(n, data):
        every = n.change(data, reading="accuracy").drop_sel(rate=DROPPED).transpose("run", ...)
        return best_elsewhere(every.values.reshape(every.sizes["run"], -1))

    def tolerance(n, data, part):
        deeper, other = (n.change(data, part=part, layer=x, rate=high) for x in (last, first))
        return deeper - other

    def lost(n, data, shots):
        own = n.of(data, end=first, shots=shots)
        return (own.shots_unclipped - own.shots_edited).mean("part")

    def alone(n, data, matrix="w_k"):
        own = n.of(data, end=last, matrix=matrix)
        return own.matrix_edited - own.unclipped

    first, last, high = min(config.layers), max(config.layers), max(config.rates)
    shallow, deep = 1 + first, 1 + last  # sentences count layers from 1
    fewest, most = min(config.other_shots), max(config.other_shots)
    clipped = f"clipped less unclipped, averaged over rates >= {min(config.rates):g},"
    one_matrix = partial(
        family,
        measured=f"AUC, clipped at rate {config.matrix_rate:g} less unclipped,",
        margin=0.01,
        sample=alone,
    )
    return (
        by_part(
            "deep_is_flat",
            "figure 1 (ii), our reading",
            f"drastic clipping of {{block}} in layer {deep} costs no {{reading}}",
            f"{{reading}}, {clipped}",
            "rotten_tomatoes_attention_deep_is_flat rotten_tomatoes_attention_deep_keeps_accuracy "
            "rotten_tomatoes_mlp_deep_is_flat rotten_tomatoes_mlp_deep_keeps_accuracy "
            "reuters_attention_deep_is_flat reuters_attention_deep_keeps_accuracy "
            "reuters_mlp_deep_is_flat reuters_mlp_deep_keeps_accuracy",
            reading=("AUC", "accuracy"),
            at_least=-0.01,
            revision="{since}",
            redrawn="{fresh}",
            note="the bound on accuracy is that on AUC",
            sample=lambda n, data, part, reading: n.flatness(data, part, reading.lower()),
        ),
        by_part(
            "shallow_collapses",
            "figure 1 (ii)",
            f"clipping {{block}} of layer {shallow} at rate {high:g} leaves little but guessing",
            "AUC after clipping",
            "rotten_tomatoes_attention_shallow_collapses rotten_tomatoes_mlp_shallow_collapses "
            "reuters_attention_shallow_collapses reuters_mlp_shallow_collapses",
            at_most=0.6,
            sample=lambda n, data, part: n.of(data, part=part, layer=first, rate=high).edited,
        ),
        by_part(
            "deep_tolerates_more",
            "figure 1 (ii)",
            f"layer {deep} bears clipping {{block}} at rate {high:g} better than layer {shallow}",
            f"AUC, clipped in layer {deep} less clipped in layer {shallow},",
            "rotten_tomatoes_attention_deep_tolerates_more rotten_tomatoes_mlp_deep_tolerates_more "
            "reuters_attention_deep_tolerates_more reuters_mlp_deep_tolerates_more",
            at_least=0.05,
            sample=tolerance,
        ),
        by_part(
            "dropped",
            "appendix B.6",
            f"dropping {{block}} of layer {deep} neither harms nor improves accuracy",
            "accuracy, dropped less unclipped,",
            "rotten_tomatoes_attention_dropped rotten_tomatoes_mlp_dropped "
            "reuters_attention_dropped reuters_mlp_dropped",
            margin=0.05,
            revision="added: the row on AUC, dropped beside clipped, is not what the appendix says",
            redrawn="{fresh}",
            sample=lambda n, data, part: n.deepest(data, part, "accuracy").sel(rate=DROPPED),
        ),
        family(
            "helps",
            f"{A2}, figure 1 (i), {SETTING}",
            "one edit, the same for all sets, improves accuracy",
            "the change of accuracy by the edit that is best on average for the other sets,",
            at_least=0.01,
            note=f"of layers {', '.join(str(1 + layer) for layer in config.layers)} and all rates",
            sample=helps,
            cells=on_each("rotten_tomatoes_helps reuters_helps"),
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
            sample=lambda n, data: lost(n, data, most) - lost(n, data, fewest),
            cells=on_each("rotten_tomatoes_few_shots reuters_few_shots"),
        ),
        family(
            "more_shots",
            f"{A2}, section 2.2, {SETTING}",
            "unclipped, more demonstrations tell the classes apart better",
            f"AUC with {most} demonstrations less that with {fewest},",
            at_least=0.0,
            revision="added, for the row on fewer shots supposes it",
            sample=lambda n, data: (
                n.of(data, shots=most).shots_unclipped - n.of(data, shots=fewest).shots_unclipped
            ),
            cells=on_each("rotten_tomatoes_more_shots reuters_more_shots"),
        ),
        one_matrix(
            "keys_alone",
            f"{A2}, appendix B.3, {SETTING}",
            f"clipping W_K alone in layer {deep} does not change AUC on average",
            cells=on_each("rotten_tomatoes_keys_alone reuters_keys_alone"),
        ),
        one_matrix(
            "others_alone",
            f"{OURS}, a control",
            f"clipping {{named}} alone in layer {deep} does not change AUC on average",
            revision="added: what W_K says of itself, if the others do as little, is nothing",
            cells=on_each(
                "rotten_tomatoes_w_q_alone rotten_tomatoes_w_v_alone rotten_tomatoes_w_o_alone "
                "reuters_w_q_alone reuters_w_v_alone reuters_w_o_alone",
                matrix=("w_q", "w_v", "w_o"),
            ),
            words=lambda matrix: dict(named=matrix.upper()),
        ),
    )


def search_statements(config):
    search, gain = config.search, "the gain of accuracy on test"
    fresh = dict(fresh=redrawn(search, 9), changed="")
    post_hoc = dict(fresh="", changed="added to these runs: beside Algorithm 1, which gains less")
    judged = about(config, search.runs, over=OVER, revision="{changed}", redrawn="{fresh}")
    wider = f"{A2}, figure 1 (i), our reading, {SETTING}"
    edits = {
        "Algorithm 1": dict(of=FIGURE_4, edit="Algorithm 1", **fresh),
        "more layers": dict(of=wider, edit=WIDER, **post_hoc),
    }
    rivals = {
        "threshold fitted": dict(who="a threshold fitted on the same sentences", **fresh),
        "calibrated": dict(who="contextual calibration", **post_hoc),
    }
    return (
        families(config, texts=search, over=OVER)(
            "gains_apart",
            FIGURE_4,
            "Algorithm 1 on {part} improves accuracy",
            f"{gain},",
            at_least=0.01,
            revision="added, each collection and part: their average holds",
            sample=lambda n, data, part: n.gain(f"Algorithm 1, {part}").sel(task=data),
            cells=on_each(
                "rotten_tomatoes_attention_algorithm rotten_tomatoes_mlp_algorithm "
                "reuters_attention_algorithm reuters_mlp_algorithm",
                part=PARTS,
            ),
        ),
        judged(
            "gains",
            "{of}",
            "{edit} improves accuracy",
            f"{gain}, averaged over data sets and, of Algorithm 1, over parts,",
            at_least=0.01,
            sample=lambda n, search: n.gain(search).mean("task"),
            cells=grid("algorithm_gains wider_gains", search=edits),
            words=lambda search: edits[search],
        ),
        judged(
            "rivals",
            OURS,
            f"{{who}} gains as much as {WIDER}",
            f"{gain}, {{rival}} less that of the search, averaged over data sets,",
            at_least=-0.01,
            sample=lambda n, rival: n.rivals[rival] - n.gain("more layers").mean("task"),
            cells=grid("threshold calibration_wider", rival=rivals),
            words=lambda rival: rivals[rival],
        ),
    )


def spectrum_statements(config):
    spectra, model = config.spectra, called(config.model_name)
    # The last singular value, as in A2, and the one in the middle, which rounding hardly moves.
    shares = {"condition": 1.0, "median": 0.5}
    median = "ratio of the first to the median singular value"
    ratios = {"condition": "condition number", "median": median}
    last = f"last {spectra.last} layers"
    deeper = "a layer less the one that many before it"
    layers = {
        "deeper": dict(place="in the deeper half of its layers", less=deeper),
        "last": dict(place=f"in its {last}", less=f"the {last} less one of the others"),
    }
    beyond = ", by more than in random matrices with the same norms of rows and columns"

    def rising(id, source, ids, more="", measured=""):
        return Statement(
            id,
            source,
            f"{model}: the {{measure}} is larger {{place}}{more}",
            f"log10 of the {{measure}}, averaged over matrices, {{less}},{measured}",
            over="layers",
            at_least=0.0,
            revision=SEEN,
            sample=lambda n, ratio, where: rise(n.spectra, where, shares[ratio], null=bool(more)),
            cells=grid(ids, ratio=ratios, where=layers),
            words=lambda ratio, where: dict(layers[where], measure=ratios[ratio]),
            message=f"{model}: deep layers, and the last ones, have larger condition numbers{more}",
        )

    return (
        rising(
            "spectra_rise",
            f"{A2}, figure 3, our reading, {SETTING}",
            "deep_condition last_condition deep_median last_median",
        ),
        rising(
            "spectra_rise_beyond_norms",
            f"{OURS}, the null of figure 3",
            "deep_condition_beyond_norms last_condition_beyond_norms deep_median_beyond_norms "
            "last_median_beyond_norms",
            beyond,
            " less the same of random matrices,",
        ),
        Statement(
            "spectra_rounding",
            OURS,
            f"{model}: another error of rounding to {spectra.bits} bits leaves the {{measure}} "
            "of square matrices within a factor 2",
            "|log10| of the {measure} with that error over without, averaged over square matrices "
            "and draws,",
            over="layers",
            at_most=0.3,
            note="above it, the number is that of the rounding; W_Q and W_O are square",
            revision="added, for the mean over all matrices hides that these two differ",
            sample=lambda n, ratio: moved(n.spectra, shares[ratio]),
            cells=grid("condition_rounded_square median_rounded_square", ratio=ratios),
            words=lambda ratio: dict(measure=ratios[ratio]),
        ),
    )
