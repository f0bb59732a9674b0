"""What `lm_clipping` judges: layers that tolerate it, what it gains, and what is a shift."""

from functools import partial

from experiments.language.data_sets import data_grid, families
from experiments.language.language_config import redrawn
from experiments.language.lm_clipping.config import PARTS, WIDE
from experiments.language.lm_clipping.readings import Numbers, averaged
from lsa_lab.judging.statements import Statement, grid

A2, OURS = "A2 (2406.03768)", "derived here"
SETTING = "in our setting"
EACH = "of each collection, since a look at these runs: the average of two hid that signs differ"
ADDED = "added to these runs: beside Algorithm 1, which gains less, alone"
ONE_EDIT = "one edit, the same for all sets"
SETS = "sets of demonstrations"

numbers = Numbers


def statements(config) -> tuple[Statement, ...]:
    return (*layer_statements(config), *search_statements(config), *shift_statements(config))


def layer_statements(config):
    each = EACH if len(config.tasks) > 1 else ""
    family = families(config, over=SETS, revision=each)
    cells = data_grid("rotten_tomatoes", "reuters")
    both = partial(cells, part=PARTS)
    shallow, deep, high = min(config.layers), max(config.layers), max(config.rates)
    fewest, most = min(config.other_shots), max(config.other_shots)
    gains = {
        "accuracy": dict(
            reading_of="",
            better="improves accuracy",
            what="accuracy",
            note=f"of layers {', '.join(map(str, config.layers))} and all rates; a search chooses "
            "an edit for each set",
        ),
        "auc": dict(
            reading_of="our reading, ", better="tells the classes apart better", what="AUC", note=""
        ),
    }
    return (
        family(
            "deep_is_flat",
            f"{A2}, figure 1 (ii), our reading, {SETTING}",
            f"drastic clipping of {{part}} in layer {deep} costs no discrimination",
            f"AUC, clipped less unclipped, averaged over rates >= {min(config.rates):g},",
            at_least=-0.01,
            label="{part}: change, last layer",
            sample=lambda n, data, part: n.changes[data].flatness(part),
            cells=both(
                "rotten_tomatoes_attention_deep_is_flat rotten_tomatoes_mlp_deep_is_flat "
                "reuters_attention_deep_is_flat reuters_mlp_deep_is_flat"
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
            label="{part}: last less first layer",
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
            label="{part}: accuracy, dropped",
            sample=lambda n, data, part: n.changes[data].drop_change(part),
            cells=both(
                "rotten_tomatoes_attention_dropped rotten_tomatoes_mlp_dropped "
                "reuters_attention_dropped reuters_mlp_dropped"
            ),
        ),
        family(
            "helps",
            f"{A2}, figure 1 (i), {{reading_of}}{SETTING}",
            f"{ONE_EDIT}, {{better}}",
            "{what}, clipped less unclipped, by the edit that is best on average for the other "
            "sets,",
            at_least=0.01,
            note="{note}",
            label="one edit, {what}",
            sample=lambda n, data, reading: n.changes[data].gain(reading),
            cells=cells(
                "rotten_tomatoes_helps rotten_tomatoes_helps_auc reuters_helps reuters_helps_auc",
                reading=gains,
            ),
            words=lambda reading: gains[reading],
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
            label="lost, most less fewest shots",
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
            label="AUC, most less fewest shots",
            sample=lambda n, data: n.changes[data].more_shots(),
            cells=cells("rotten_tomatoes_more_shots reuters_more_shots"),
        ),
        family(
            "keys_alone",
            f"{A2}, appendix B.3, {SETTING}",
            f"clipping W_K alone in layer {deep} does not change AUC on average",
            f"AUC, clipped at rate {config.matrix_rate:g} less unclipped,",
            margin=0.01,
            label="W_K alone",
            sample=lambda n, data: n.changes[data].keys_alone(),
            cells=cells("rotten_tomatoes_keys_alone reuters_keys_alone"),
        ),
    )


def search_statements(config):
    titles = " and ".join(task.title for _, task in config.search.tasks)
    where, gain = f"{config.model_name}, on {titles}", "the gain of accuracy on test"
    fresh = redrawn(config.search, 9)
    gains = {
        "Algorithm 1": dict(
            source=f"{A2}, figure 4 and appendix C.5, {SETTING}",
            edit="A2's Algorithm 1",
            note="table C.5: +.019 of score on average",
            changed="",
            fresh=fresh,
        ),
        "more layers": dict(
            source=f"{A2}, figure 1 (i), our reading, {SETTING}",
            edit=f"the edit that a search of {WIDE} chooses",
            note="an edit for each set, beside one edit for all sets",
            changed=ADDED,
            fresh="",
        ),
    }
    rivals = {
        "threshold fitted": dict(
            who="a threshold fitted on the same validation sentences", changed="", fresh=fresh
        ),
        "calibrated": dict(who="contextual calibration", changed=ADDED, fresh=""),
    }
    return (
        Statement(
            "gains",
            "{source}",
            f"{where}: {{edit}} improves accuracy",
            f"{gain}, averaged over data sets and, of Algorithm 1, over parts,",
            at_least=0.01,
            over=SETS,
            note="{note}",
            revision="{changed}",
            redrawn="{fresh}",
            label="{search}",
            sample=lambda n, search: n.gains.gain(search),
            cells=grid("algorithm_gains wider_gains", search=gains),
            words=lambda search: gains[search],
        ),
        Statement(
            "rivals",
            OURS,
            f"{where}: {{who}} gains as much as a search of {WIDE}",
            f"{gain}, {{rival}} less that of the search, averaged over data sets,",
            at_least=-0.01,
            over=SETS,
            revision="{changed}",
            redrawn="{fresh}",
            label="{rival} less more layers",
            sample=lambda n, rival: n.gains.rivals[rival] - n.gains.gain("more layers"),
            cells=grid("threshold calibration_wider", rival=rivals),
            words=lambda rival: rivals[rival],
        ),
    )


def shift_statements(config):
    bias, titles = config.label_bias, {name: task.title for name, task in config.label_bias.tasks}
    edit, whose = f"MLP {max(bias.rates):g}", f"in layer {bias.deep}"
    fresh = "accuracy on fresh sentences, clipped less unclipped"
    sets = dict(over=SETS, redrawn=redrawn(bias, 12))
    return (
        Statement(
            "shift",
            OURS,
            f"{config.model_name}, on {{title}}: what {edit} {whose} does to accuracy a moved "
            "threshold does",
            f"{fresh} with the threshold moved until it gives each label as often as the clipped "
            "model,",
            margin=0.02,
            note="the threshold needs no label",
            label=f"rest, {{title}}, {edit}",
            sample=lambda n, data: n.margins.changes[2].sel(task=data, edit=edit).values,
            cells={f"shift_{name}": dict(data=name) for name in titles},
            words=lambda data: dict(title=titles[data]),
            **sets,
        ),
        Statement(
            "a2_gain",
            f"{A2}, figures 1 and 4, {SETTING}",
            f"{config.model_name}, on {len(titles)} data sets: MLP {{rate:g}} {whose} improves "
            "accuracy",
            f"{fresh}, averaged over data sets,",
            at_least=0.0,
            note="A2 reports the best of many layers and rates; here both are fixed before",
            label="MLP {rate:g} less unclipped",
            sample=lambda n, rate: averaged(n.margins.changes[0].sel(edit=f"MLP {rate:g}")),
            cells={f"a2_gain_{rate:g}": dict(rate=rate) for rate in bias.rates},
            **sets,
        ),
    )
