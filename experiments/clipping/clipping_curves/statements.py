"""What `clipping_curves` judges, by the criteria in its Config."""

from experiments.clipping.transformer_config import OWN_PROMPTS, PARTS, fresh
from lsa_lab.claims import Statement

FIGURE_1 = "A2 (2406.03768), figure 1, in our setting"
FIGURE_2 = "A2 (2406.03768), figure 2, our reading, in our setting"
FLAT = "in the logs of A2's public code accuracy changes by +.003"
CHOSEN = "leaving out the run that is judged, no edit is chosen by its own result"
# What keeps a mean from being decided, by the 36 runs of the paper tier.
STEEP = {"mlp": "; half of the runs lose 5 % or less, one of twenty a third and more"}
RARE = {"few": "; one run of three gains, up to half of its risk, and the others lose a little"}


def statements(config) -> tuple[Statement, ...]:
    places = ("attention", "MLPs")
    named = dict(zip(map(str.lower, PARTS), places, strict=True))
    listed = [each for name, place in named.items() for each in _about_ends(config, name, place)]
    return (*listed, *_about_gains(config), _about_models(config))


def _about_ends(config, name, place):
    few = min(config.shots)
    shallow, deep = f"the first {config.ends} layers", f"the last {config.ends} layers"
    high = f"averaged over rates >= {config.high:g}"
    less = f"less that at {config.n}, {shallow}, one at a time, {high},"
    return (
        Statement(
            f"{name}_deep_bears_more",
            FIGURE_1,
            f"In the {place} of our models shallow layers tolerate less clipping than deep ones",
            f"log10 of the risk with {shallow} clipped over that with {deep} clipped, one at a "
            f"time, {high},",
            at_least=0.0,
            revision=OWN_PROMPTS,
            redrawn=fresh(config),
        ),
        Statement(
            f"{name}_deep_is_flat",
            FIGURE_1,
            f"In the {place} of our models deep layers can be reduced drastically without much "
            f"degradation",
            f"the change of the risk, relative, of {deep}, one at a time, {high},",
            at_most=config.flat,
            note=FLAT + STEEP.get(name, ""),
            revision=OWN_PROMPTS,
            redrawn=fresh(config),
        ),
        Statement(
            f"{name}_shallow_collapses",
            FIGURE_1,
            f"Clipping the {place} of a shallow layer sharply leaves our models guessing",
            f"the risk with {shallow} clipped at {max(config.rates):g}, one at a time, over that "
            f"of predicting 0,",
            at_least=config.guess,
            revision="added",
            redrawn=fresh(config),
        ),
        Statement(
            f"{name}_few_shots_collapse_less",
            FIGURE_2,
            f"With fewer shots, clipping shallow {place} multiplies the risk by less",
            f"log10(risk clipped / unclipped) at {few} shots {less}",
            at_most=0.0,
            note="unclipped risks at few shots are nearer to the ceiling, that of predicting 0",
            revision=f"it was the rise of the risk; {OWN_PROMPTS}",
            redrawn=fresh(config),
        ),
        Statement(
            f"{name}_few_shots_rise_less",
            FIGURE_2,
            f"With fewer shots, clipping shallow {place} adds less to the risk",
            f"(risk clipped - unclipped) / risk of predicting 0 at {few} shots {less}",
            at_most=0.0,
            revision=f"the first reading, under a name of its own; {OWN_PROMPTS}",
            redrawn=fresh(config),
        ),
    )


def _about_gains(config):
    few, many = min(config.shots), max(config.shots)
    return [
        Statement(
            f"helps_{name}",
            "A2 (2406.03768), figures 1 and 2, in our setting",
            f"At {shots} shots clipping one part of one layer improves our models",
            "the change of the risk, relative, by the edit that is best for the other runs",
            at_most=-config.gain,
            note=CHOSEN + RARE.get(name, ""),
            revision=OWN_PROMPTS,
            redrawn=fresh(config),
        )
        for name, shots in {"few": few, "trained": config.n, "many": many}.items()
    ]


def _about_models(config):
    return Statement(
        "as_good_as_ridge",
        "A2 (2406.03768), figure 5(a), in our setting",
        f"At {config.n} shots our models predict about as well as ridge regression",
        "the risk over that of ridge regression on the same prompts",
        "ratio",
        at_most=config.as_good,
        note="ridge at its best penalty; A2 speaks of least squares",
        revision="added, to say how far from trained the models are",
        redrawn=fresh(config),
    )
