"""Does depth amplify the ratio of the flows of two demonstrations, and in which stacks?"""

from functools import partial

import jax
import numpy as np

from experiments import style
from experiments.configs.amplification import CLAIMS, TIERS, Config
from experiments.parts import pair_stacks, pairs, stacks
from lsa_lab import results
from lsa_lab.claims import about_the_median, median_interval

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

FREE_OR_FROZEN = ("masked: tied", "masked: frozen")  # demonstrations that move, or do not
LABELS = {"linear": "linear", "softmax": "softmax", "norm": "+ norm", "MLP": "+ norm + MLP"}
# Constructions: label, case, and what flows: gradient descent answers in the label slot.
CONSTRUCTED = (
    ("push: positive feedback", "linear: push", "token"),
    ("pull: negative feedback", "linear: pull", "token"),
    ("descent", "masked: descent", "prediction"),
    ("GD++", "masked: GD++", "prediction"),
    ("descent from a prior", "masked: prior", "prediction"),
)


def untrained(config):
    """Log ratios {case: [R, B, 2, 2, L]} and agreements with κ {rule: [R]}."""
    logs, agreed = {}, {}
    for case, forward, params, batch in pair_stacks.cases(config):
        found = pairs.measure(pairs.log_ratios, forward, params, batch)
        logs[case] = np.asarray(found)
        if case in (*(f"linear: tied, gain {g:g}" for g in config.gains), *FREE_OR_FROZEN):
            kappa = np.asarray(pairs.couplings(params, batch))
            agreed[f"flow, {case}"] = pairs.agreement(logs[case][:, :, 0, 0], kappa)
        if case in FREE_OR_FROZEN:
            added = pairs.measure(pairs.contribution_ratio, forward, params, batch)
            agreed[f"contribution, {case}"] = pairs.agreement(np.asarray(added), kappa)
    return logs, agreed


def trained(config, progress):
    """``pairs.before_and_after`` and how training ended, of each of the trained stacks [K, ...]."""
    many = pair_stacks.to_train(config)
    draw = partial(stacks.draw, law=stacks.task(many["linear"]), size=config.trained_pairs)
    key = jax.random.fold_in(jax.random.key(config.seed), 2**20)
    batch = jax.jit(jax.vmap(draw))(jax.random.split(key, config.trained_runs))
    batch = jax.tree.map(lambda leaf: leaf.astype(float), batch)
    found = []
    for kind, stack in many.items():
        label = f"amplification: {kind}"
        run = stacks.trained(stack, config.trained_runs, config.seed, label, progress)
        watched = jax.tree.map(lambda leaf: leaf.astype(float), run.history["watch"])
        seen = pairs.before_and_after(stacks.forward(stack), watched, batch)
        found.append((*seen, [str(one) for one in run.status]))
    return [np.stack(some) for some in zip(*found, strict=True)]


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    after, errors, status = trained(config, progress)
    logs, agreed = untrained(config)
    logs_of_pairs = np.moveaxis(np.stack([*logs.values()]), 2, -2)
    groups = {
        "": (("case", "run", "mode", "reading"), "layer", pairs.summed_up(logs_of_pairs)),
        "trained_": (("kind", "trained_run", "stage"), "trained_layer", pairs.summed_up(after)),
    }
    data = {
        f"{prefix}{name}": ((*axes, *[layer] * (np.ndim(values) > len(axes))), np.asarray(values))
        for prefix, (axes, layer, found) in groups.items()
        for name, values in found.items()
    }
    data["agreement"] = (("rule", "run"), np.stack([*agreed.values()]))
    data["error"] = (("kind", "trained_run", "stage"), errors)
    data["status"] = (("kind", "trained_run"), status)
    return xr.Dataset(
        data,
        {
            "case": list(logs),
            "rule": list(agreed),
            "mode": list(pairs.MODES),
            "reading": list(pairs.READINGS),
            "layer": np.arange(config.depth) + 1,
            "kind": list(config.trained_kinds),
            "stage": ["untrained", "trained"],
            "trained_layer": np.arange(config.trained_depth) + 1,
        },
    )


def measured(dataset, name, case, mode="alone", reading="token"):  # -> [R, ...]
    """Of a case, or of "trained: KIND" and "untrained: KIND" without the runs that diverged."""
    stage, _, kind = case.partition(": ")
    if stage not in dataset.stage.values:
        there = dataset[name].sel(case=case, mode=mode, reading=reading)
        return there.transpose("run", ...).values
    there = dataset[f"trained_{name}"].sel(kind=kind, stage=stage).transpose("trained_run", ...)
    went_well = ~dataset.status.sel(kind=kind).str.startswith("diverged")
    return there.values[went_well.values]


def changes(dataset, case, **which):  # -> [R, L]
    """Of the median log ratio, from the first layer to each."""
    median = measured(dataset, "median", case, **which)
    return median - median[:, :1]


def panels(settings):
    """{title: [(label, case, what to look at, colour, marker)]}"""
    kinds, (dot, square) = settings.kinds, style.MARKERS[:2]
    colour = dict(zip((*LABELS, *settings.gains), style.COLOURS * 3, strict=False))
    linear = [
        (f"{tied}gain {gain:g}", f"linear: {tied}gain {gain:g}", {}, colour[gain], mark)
        for tied, mark in (("", dot), ("tied, ", square))
        for gain in settings.gains
    ]
    return {
        "linear, random, each alone": linear,
        "linear, random, both in one prompt": [
            (label, case, {"mode": "together"}, *look) for label, case, _, *look in linear
        ],
        "softmax, random, each alone": [
            (f"{LABELS[kind]}, gain {gain:g}", f"{kind}: gain {gain:g}", {}, colour[kind], mark)
            for gain, mark in ((settings.gain, dot), (settings.gains[-1], square))
            for kind in kinds[1:]
        ],
        "linear, constructed, each alone": [
            (label, case, {"reading": reading}, color, dot)
            for (label, case, reading), color in zip(CONSTRUCTED, style.COLOURS, strict=False)
        ],
        f"trained, two of {settings.shots} in a prompt": [
            (f"{LABELS[kind]}{after}", f"{stage}: {kind}", {}, colour[kind], mark)
            for stage, after, mark in (("trained", "", dot), ("untrained", ", before", square))
            for kind in settings.trained_kinds
        ],
    }


def shares(settings):
    """The rows of the last panel, [(label, case, what to look at)]."""
    gain = f"gain {settings.gain:g}"
    skipping = [kind for kind in ("linear", "softmax") if kind in settings.kinds]
    return [
        *[(f"linear, gain {g:g}", f"linear: gain {g:g}", {}) for g in settings.gains],
        (f"linear, {gain}, in one prompt", f"linear: {gain}", {"mode": "together"}),
        *[(f"linear, {gain}, d = {d}", f"linear: d = {d}", {}) for d in settings.widths],
        *[(f"{LABELS[kind]}, {gain}", f"{kind}: {gain}", {}) for kind in settings.kinds[1:]],
        *[
            (f"{kind}, residual × {weight:g}", f"{kind}: skip {weight:g}", {})
            for kind in skipping
            for weight in settings.skips
        ],
        *[(label, case, {"reading": reading}) for label, case, reading in CONSTRUCTED],
        *[(f"trained {LABELS[kind]}", f"trained: {kind}", {}) for kind in settings.trained_kinds],
    ]


def direction(samples, clear):
    low, high = median_interval(samples)
    return "rises" if low >= clear else "falls" if high <= -clear else "neither"


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(11.0, 7.4, (2, 3))
    lost, found = 0, {"rises": [], "falls": [], "neither": []}
    for ax, letter, (title, curves) in zip(axes, "abcde", panels(settings).items(), strict=False):
        ends = {"rises": [], "falls": [], "neither": []}
        for i, (label, case, which, color, marker) in enumerate(curves):
            change = changes(dataset, case, **which)
            layers = np.arange(change.shape[1]) + 1
            x = layers + 0.09 * (i - (len(curves) - 1) / 2)
            lost += style.band(ax, x, change, label, color, marker)
            ax.plot(x, np.nanmedian(change, axis=0), color=color, lw=0.8, alpha=0.5)
            end = direction(change[:, -1], settings.clear)
            ends[end].append(label.replace(", ", " "))
        for end, labels in ends.items():
            found[end] += [f"{letter} ({', '.join(labels)})"] * bool(labels)
        ax.axhspan(-settings.clear, settings.clear, color="grey", alpha=0.2, lw=0)
        ax.set_yscale("symlog", linthresh=0.3)
        ax.set(ylim=(-4, 2e3), yticks=[-1, -0.1, 0.1, 1, 10, 100])
        ax.set_yticklabels(["−1", "−0.1", "0.1", "1", "10", "100"])
        ax.set(title=title, xlabel="layers", xticks=layers, ylabel="change of median log ratio")
        columns = 2 if len(curves) > 5 else 1
        ax.legend(loc="upper left", ncols=columns, columnspacing=0.5, handletextpad=0.2)
    ax, rows = axes[-1], shares(settings)
    for name, label, color, marker in (
        ("growth", "grows in every layer", style.COLOURS[0], "o"),
        ("flips", "order reversed", style.COLOURS[1], "s"),
    ):
        values = [np.median(measured(dataset, name, case, **which)) for _, case, which in rows]
        ax.plot(values, -np.arange(len(rows)), marker, color=color, label=label)
    ax.axvline(settings.generic, color="grey", lw=0.8, ls="--")
    ax.set_yticks(-np.arange(len(rows)), [label for label, *_ in rows], fontsize=6)
    ax.set(title="share of the pairs", xlim=(-0.03, 1.03))
    ax.legend(loc="center right", bbox_to_anchor=(0.94, 0.12))
    dropped = int(dataset.dropped.sel(mode="alone", reading="token").sum())
    total = settings.runs * settings.pairs * dataset.sizes["case"]
    left = dataset.error.sel(stage="trained").median("trained_run").values
    errors = ", ".join(f"{error:.1%}" for error in left)
    diverged = int(dataset.status.str.startswith("diverged").sum())
    style.caption(
        drawn,
        "Depth amplifies the ratio of two flows where a curve rises above the grey band: "
        f"{'; '.join(found['rises']) or 'nowhere'}. It equalises where one falls below: "
        f"{'; '.join(found['falls']) or 'nowhere'}. The others are not clear of the band. So "
        "random stacks need weights that blow tokens up, and demonstrations alone with them: in "
        "one prompt both grow together (b). A median falls, too, where layers only turn the order "
        f"(f; dashed: Theorem 1). Median of {settings.runs} runs, in e {settings.trained_runs}, "
        f"and the middle 80 % of them; left out: {dropped} of {total} pairs in a, c and d, which "
        f"overflow, {diverged} diverged trained runs, {lost} medians. d = {settings.d}. Flows to "
        "the query's token; in d, of descent, and in e to the prediction, whose median error "
        f"training brings to {errors} of that of 0.",
    )
    return drawn


def claims(dataset):
    settings = results.settings(dataset)
    clear, gain = settings.clear, f"gain {settings.gain:g}"
    bounds = {
        "up": {"at_least": clear},
        "down": {"at_most": -clear},
        "flat": {"at_least": -clear, "at_most": clear},
        "positive": {"at_least": 0.0},
        "generic": {"at_least": settings.generic},
        "rare": {"at_most": 1 - settings.generic},
        "exact": {"at_least": settings.exact},
        "predicts": {"at_least": settings.predicts},
    }

    def change(case, **which):
        return changes(dataset, case, **which)[:, -1]

    def ways(name):  # tied and not
        return f"linear: {name}", f"linear: tied, {name}"

    every = [case for g in settings.gains for case in ways(f"gain {g:g}")]
    small, large = ([change(case) for case in cases] for cases in (every[:2], every[-2:]))
    weight, rules = settings.skips[0], dataset.agreement.transpose("rule", "run")
    samples = {
        "theorem_1": max((measured(dataset, "growth", c) for c in every), key=np.median),
        "order": min((measured(dataset, "flips", c) for c in every), key=np.median),
        "large": min(large, key=np.median),
        "small": max(small, key=lambda some: abs(np.median(some))),
        "shared_prompt": change(f"linear: {gain}", mode="together"),
        **{f"{kind}_random": change(f"{kind}: {gain}") for kind in settings.kinds[1:]},
        **{f"{kind}_trained": change(f"trained: {kind}") for kind in settings.trained_kinds},
        **{c.split(": ")[1]: change(c, reading=reading) for _, c, reading in CONSTRUCTED},
        **{
            f"{kind}_residual": change(f"{kind}: skip {weight:g}") - change(f"{kind}: {gain}")
            for kind in ("linear", "softmax")
            if kind in settings.kinds
        },
        "kappa_contribution": rules.sel(rule="contribution, masked: frozen").values,
        "kappa_frozen": rules.sel(rule="flow, masked: frozen").values,
        "kappa": rules.sel(rule=f"flow, linear: tied, {gain}").values,
    }
    made = []
    for name, values in samples.items():
        source, statement, what, which = CLAIMS[name]
        words = {"at_least": ">=", "at_most": "<="}
        kept = " and ".join(f"{words[k]} {bound:g}" for k, bound in bounds[which].items())
        criterion = f"median over runs of {what} {kept}"
        row = (f"amplification.{name}", source, statement, criterion, values)
        made.append(about_the_median(*row, **bounds[which]))
    return made
