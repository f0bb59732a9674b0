"""Risks against heads and against demonstrations, among those of rules, and what is judged."""

import numpy as np

from experiments.heads.heads_beyond_d import claims
from experiments.heads.heads_beyond_d.config import FIRST, FULL, SINGLE, counts
from experiments.heads.rule_names import EQUIVARIANT, LASSO, RIDGE, RULES, SPARSE_BAYES
from lsa_lab.harness.draw import judged_panel, style
from lsa_lab.harness.draw.marks import end_labels
from lsa_lab.judging.claims import evidence
from lsa_lab.store import results

LINEAR, LEAST_SQUARES = style.METHOD["linear"], "least squares"
WHERE = {FIRST: ("white", "--", "in layer 1"), FULL: (LINEAR["color"], "-", "in every layer")}
# The judged rows, from the top, and what their panels show.
RATIOS = ("up_to_d_first", "beyond_d_first", "up_to_d_full", "beyond_d_full", "first_suffices")
RATIOS += ("first_ridge", "full_ridge", "longer", "first_lasso", "full_lasso", "full_bayes")
RATIOS += ("level",)
KINKS = ("kink_first", "kink_full")
OVER, SLOPES = (0.25, 4), (-2, 2)


def plot(dataset):
    figure, axes = style.stacked(6.75, (2.6, 3.0, 1.1), ((1, 1), (1,), (1,)))
    against_heads(axes[0], dataset)
    against_n(axes[1], dataset)
    plot_judged(*axes[2:], dataset)
    return figure


def ridge_risks(dataset):  # [shots]
    return dataset.rule_risk.sel(rule=RIDGE).values


def against_heads(ax, dataset):
    """Means of seeds at the judged n, by the number of heads."""
    config = results.config_of(dataset)
    place = list(config.shots).index(config.judged)
    risks, ends, ridge = claims.numbers(dataset), {}, ridge_risks(dataset)[place]
    for kind, (face, dashes, words) in WHERE.items():
        heads = sorted({h for where, h in risks.names if where in (kind, SINGLE)})
        runs = [risks.risks_with(kind, h)[:, place] / ridge for h in heads]
        means = [np.nanmean(own) for own in runs]
        ax.plot(heads, means, color=LINEAR["color"], mfc=face, marker="o", ls=dashes)
        for h, own in zip(heads, runs, strict=True):
            x = h * (0.93 if kind == FIRST else 1.07)
            ax.plot([x] * len(own), own, ".", color=LINEAR["color"], ms=2.5)
        ends[words] = means[-1], LINEAR["color"]
    for rule in (RIDGE, LASSO, SPARSE_BAYES):
        risk = float(dataset.rule_risk.sel(rule=rule)[place]) / ridge
        ends[rule] = risk, style.METHOD[rule]["color"]
        ax.axhline(risk, color=ends[rule][1], lw=0.8, ls=":", zorder=0)
    d = counts(config)[FULL][1]
    ax.axvline(d, color="grey", lw=0.8, zorder=0)
    style.log_axes(ax, x=True, ticks=sorted({h for _, h in risks.names}))
    ax.set(xlabel=f"heads; line: d = {d}", ylabel=f"risk / ridge's, n = {config.judged}")
    ax.set(ylim=(0, None), title="heads")
    name_ends(ax, ends)


def against_n(ax, dataset):
    """One head a layer, d in the first and d in all, and the rules."""
    models = claims.numbers(dataset)
    shots, ends, d = dataset.shots.values, {}, models.d
    for rule in (*RULES, LEAST_SQUARES):
        risks = dataset.rule_risk.sel(rule=rule).values / ridge_risks(dataset)
        look = style.METHOD[rule]["color"], "--" if rule == EQUIVARIANT else "-"
        style.line(ax, shots, risks, None, *look)
        ends[rule.replace("rotation-", "")] = risks[-1], look[0]
    places = {"1 head a layer": (FIRST, 1), f"{d} in layer 1": (FIRST, d), f"{d} in all": (FULL, d)}
    for name, (kind, heads) in places.items():
        means = np.nanmean(models.risks_with(kind, heads), axis=0) / ridge_risks(dataset)
        face, dashes = WHERE[kind][:2] if heads > 1 else ("white", ":")
        ax.plot(shots, means, color=LINEAR["color"], mfc=face, marker="o", ls=dashes)
        ends[name] = means[-1], LINEAR["color"]
    style.log_axes(ax, x=True, y=True, ticks=shots)
    ax.set(xlabel="demonstrations n", ylabel="risk / ridge's", title="every n")
    name_ends(ax, ends)


def name_ends(ax, ends: dict[str, tuple[float, str]]):
    """The names of lines at their ends {name: (height, colour)}."""
    heights = {name: height for name, (height, _) in ends.items()}
    end_labels(ax, heights, [color for _, color in ends.values()])


def plot_judged(ax, under, dataset):
    """Ratios of risks, and below them how much more a head saves below d than above."""
    statements, samples = evidence(claims, dataset)
    style.log_axes(ax, x=True, ticks=(0.25, 0.5, 1, 2, 4))
    judged_panel.rows(ax, statements, samples, OVER, RATIOS)
    ax.set(xlabel="risk / the risk that is named", title="what is judged")
    judged_panel.rows(under, statements, samples, SLOPES, KINKS)
    under.set(xlabel="log risk saved by a unit of log heads, below d less above")


def caption(dataset) -> str:
    config, (_, values) = results.config_of(dataset), evidence(claims, dataset)
    mean = {id: float(np.exp(np.log(values[id]).mean())) for id in values if "kink" not in id}
    fewer, d, more = counts(config)[FULL]
    task = config.models[0][1].task
    return (
        f"From {fewer} heads to d = {d} the risk falls to {mean['up_to_d_full']:.2f} of itself, "
        f"with {more} to {mean['beyond_d_full']:.2f} of that; in layer 1 alone to "
        f"{mean['up_to_d_first']:.2f} and {mean['beyond_d_first']:.2f}. Three layers of linear "
        f"attention on sparse regression, s = {task.sparsity}, noise {task.noise_std:g}, trained "
        f"at n = {', '.join(map(str, task.lengths))}; {config.test_prompts} common test prompts. "
        f"a: means of seeds, small points. b: the same, every n. c, d: {judged_panel.KEY}; "
        f"n = {config.judged} if not said."
    )
