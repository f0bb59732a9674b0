"""What the statements of `grads` are judged by."""

from experiments.flow.grads.selecting import PROMPTS, RIVALS
from experiments.flow.grads.selection_cases import SETTINGS
from lsa_lab import results
from lsa_lab.claims import about_the_mean


def gain(over, of):  # [R] -> [R]
    """The relative gain of one error over another, run by run."""
    return 1 - of.values / over.values


def against_rivals(dataset, setting, shots):  # -> name, gains [R]
    """GradS over the rival that is strongest on other queries, those of the validation."""
    at = {"setting": setting, "pool": results.config_of(dataset).pool, "shots": shots}
    known = dataset.validation.sel(**at, rule=list(RIVALS)).mean("other")
    name = RIVALS[int(known.argmin("rule"))]
    errors = dataset.error.sel(**at)
    return name, gain(errors.sel(rule=name), errors.sel(rule="GradS"))


def last_layer(dataset, prompt):  # -> layer, gains [R]
    """The last layer's flow over that of the earlier layer which is best on other queries."""
    at = {"setting": "prior", "prompt": prompt, "shots": results.config_of(dataset).judged}
    known = dataset.layer_validation.sel(**at).mean("other")
    layer = int(known[:-1].argmin("layer"))
    errors = dataset.layer_error.sel(**at)
    return layer + 1, gain(errors.isel(layer=layer), errors.isel(layer=-1))


def claims(dataset):
    settings = results.config_of(dataset)
    k, m, own = settings.judged, settings.pool, "derived here"
    paper = "A1 (2508.00385)"
    carried, ablation = f"{paper}, carried over", f"{paper}, its ablation of layers"
    prior, duplicates, table = (dataset.error.sel(pool=m, shots=k, setting=s) for s in SETTINGS)
    none = dataset.end.sel(setting="table", pool=m, prompting="zero-shot")
    best, once = "that is best on other queries", "the same, computed once"
    rivals = {setting: against_rivals(dataset, setting, k) for setting in SETTINGS}
    rivals = {setting: (f"the rival {best}, {name}", g) for setting, (name, g) in rivals.items()}
    layers = [last_layer(dataset, prompt) for prompt in PROMPTS]
    alone, pooled = ((f"the earlier layer {best}, {number}", g) for number, g in layers)
    joined = once, gain(*dataset.joined.transpose("flow", "run"))
    taught = once, gain(*(duplicates.sel(rule=f"contribution{s}") for s in ("", ", recomputed")))

    def over(rule, by="GradS", errors=prior):
        return rule, gain(errors.sel(rule=rule), errors.sel(rule=by))

    nothing, product = ("none", gain(none, table.sel(rule="GradS"))), over("GradS", "flow × input")
    beats, chance = "GradS beats its strongest rival", "GradS beats a random choice"
    last = "The last layer's flow is the best to select by"
    again = "With duplicates in the pool it helps to recompute, after each pick,"
    bounds = {"headline": settings.headline, "later": settings.later}
    rows = {
        "prior": (paper, f"{beats} where weights know half", rivals["prior"]),
        "headline": (
            f"{paper}, version 1",
            f"{beats} by {bounds['headline']:.1%}",
            rivals["prior"],
        ),
        "later": (f"{paper}, on OpenReview", f"{beats} by {bounds['later']:.1%}", rivals["prior"]),
        "duplicates": (carried, f"{beats} with duplicates", rivals["duplicates"]),
        "table": (carried, f"{beats} on the diabetes table", rivals["table"]),
        "random": (paper, f"{chance} where weights know half", over("random")),
        "table_random": (carried, f"{chance} on the table", over("random", errors=table)),
        "table_none": (own, "On the table GradS is better than no demonstrations", nothing),
        "times_input": (own, "Flow × input selects better than the norm of the flow", product),
        "last_layer": (ablation, f"{last}, every demonstration alone", alone),
        "last_layer_pool": (ablation, f"{last}, all of the pool in the prompt", pooled),
        "recomputed_flow": (own, f"{again} the last layer's flow", joined),
        "recomputed_contribution": (own, f"{again} the contribution", taught),
    }
    return [
        about_the_mean(
            f"grads.{name}",
            source,
            statement,
            f"mean over runs of the relative gain in squared error, {k} shots of {m}, over {rival}"
            f" >= {bounds.get(name, settings.gain):g}",
            gains,
            at_least=bounds.get(name, settings.gain),
        )
        for name, (source, statement, (rival, gains)) in rows.items()
    ]
