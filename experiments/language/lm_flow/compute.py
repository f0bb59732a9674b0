"""Flows to the demonstrations of a prompt, layer by layer, and prompts selected by them."""

from experiments.language import decoders, sentences
from experiments.language.lm_flow import measures
from experiments.language.lm_flow.config import READS, RULES, Config
from lsa_lab.store import parts
from lsa_lab.store.results import in_short

FLOW = ("demonstration", "query", "layer", "read")


def compute(config: Config, *, progress=None, checkpoints=None):
    model = decoders.decoder(config)

    def table(part, measure, axes):  # {name: variable} of the runs of a part
        runs = run_maker(model, config, part)
        folder = checkpoints and checkpoints / measure.__name__
        place = progress, folder, f"lm_flow: {measure.__name__}"
        return decoders.table(part, lambda *cell: measure(runs(*cell)), axes, *place)

    return parts.join(compare_flows(config, table), grads=select(config.grads, table))


def run_maker(model, whole: Config, part):
    """What gives run ``number`` on the task at a place its sentences."""
    texts = []
    for _, task in part.tasks:
        kept = sentences.read(task)
        kept = sentences.short(kept, model.tokenizer, whole.fewest_tokens, whole.most_tokens)
        writer = sentences.writer(model.tokenizer, sentences.template(task), kept)
        texts.append((task, kept, writer))

    def make(place: int, number: int) -> measures.Run:
        task, kept, writer = texts[place]
        sets = sentences.sets(kept, task, part, number, place, others=part.pool)
        return measures.Run(model, writer, sets, part, whole, number)

    return make


def compare_flows(config: Config, table):
    """Flows alone, in one prompt and of random weights, and what demonstrations are worth."""
    import xarray as xr

    single, prompts = ("single", "fresh"), ("rotation", *FLOW)
    axes = dict.fromkeys(("worth", "same_label", "relevance"), single)
    axes |= {"novelty": single[:1]}
    return xr.Dataset(
        table(config, measures.alone_flows, {"alone": FLOW})
        | table(config, measures.shared_flows, {"shared": prompts})
        | table(config, measures.untrained_flows, {"untrained": prompts})
        | table(config, measures.single_worths, axes),
        {
            "task": [name for name, _ in config.tasks],
            "layer": list(config.layers),
            "read": list(READS),
        },
    ).map(in_short)


def select(config, table):
    """Scores of single demonstrations by every rule, their worth, and the prompts selected."""
    import xarray as xr

    def score_and_select(run: measures.Run):
        scored = measures.score_pool(run)
        return scored | measures.selected_prompts(run, scored["score"])

    pair = FLOW[:2]
    axes = {"flow": FLOW, "score": ("rule", *pair), "worth": pair, "label": pair[1:]}
    axes |= {"prompt": ("rule", "query"), "random_prompt": ("draw", "query")}
    return xr.Dataset(
        table(config, score_and_select, axes),
        {
            "task": [name for name, _ in config.tasks],
            "rule": list(RULES),
            "layer": list(config.layers),
            "read": list(READS),
        },
    ).map(in_short)
