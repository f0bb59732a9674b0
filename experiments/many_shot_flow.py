"""Does depth amplify disparity among many demonstrations, and what do duplicates take away?"""

import jax
import numpy as np

from experiments import style
from experiments.configs.many_shot_flow import TIERS, Config
from experiments.parts import duplicates
from experiments.parts.duplicates import KINDS, LEARNERS
from lsa_lab import results
from lsa_lab.claims import about_the_median

__all__ = ["TIERS", "Config", "claims", "compute", "plot"]

ADDED = {"short steps": " (this stack was added after a first run)"}


def compute(config: Config, *, progress=None, checkpoints=None):
    import xarray as xr

    drawn, many = duplicates.draw(config), duplicates.models(config, progress)

    def seen(measure, count, pairs):  # -> {name: [K, C, R, B, ...]}
        batch = duplicates.prompts_of(config, drawn, count, pairs)
        each = ((forward, params(count)) for forward, params in many.values())
        parts = [duplicates.look(measure, *one, batch) for one in each]
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

    def ratios(logs):  # [K, C, R, B, L, n] -> {name: [K, C, R, B, L]}
        rows = [[duplicates.turned(one) for one in of_kind] for of_kind in logs]
        return {name: np.array([[one[name] for one in row] for row in rows]) for name in rows[0][0]}

    everything = [seen(duplicates.sizes, count, count // 2) for count in config.counts]
    everything = [values | ratios(values.pop("logs")) for values in everything]
    lost = sum(int((~np.isfinite(values["spread"])).sum()) for values in everything)
    axes = ("kind", "correlation", "run")
    data = {}
    for name in everything[0]:
        values = np.stack([_medians(values[name]) for values in everything])
        data[name] = (("count", *axes, "layer"), values)
    paired = everything[config.counts.index(config.count)]["size"]
    single = seen(duplicates.sizes, config.count, 1)["logs"][..., 0]
    for name, values in (("redundancy", paired), ("away", single)):  # each prompt less itself
        data[name] = ((*axes, "layer"), _medians(values - values[:, :1]))
    for name, values in seen(duplicates.joint, config.count, config.count // 2).items():
        data[name] = (axes, _medians(values))
    data["lost"] = ((), lost)
    return xr.Dataset(
        data,
        {
            "count": list(config.counts),
            "kind": list(KINDS),
            "correlation": list(config.correlations),
            "layer": np.arange(config.depth) + 1,
        },
    )


def _medians(values):  # [K, C, R, B, ...] -> [K, C, R, ...]
    """Over the prompts that are finite."""
    return np.nanmedian(np.where(np.isfinite(values), values, np.nan), axis=3)


def plot(dataset):
    settings = results.settings(dataset)
    drawn, axes = style.figure(9.0, 6.4, (2, 3))
    looks = dict(zip(KINDS, zip(style.COLOURS, style.MARKERS, strict=True), strict=True))
    layers, counts, c = (dataset[name].values for name in ("layer", "count", "correlation"))
    alone, end = dataset.sel(correlation=0), dataset.isel(layer=-1)
    most, last = alone.isel(count=-1), alone.isel(layer=-1)
    change = most.spread / most.spread.isel(layer=0)
    for i, kind in enumerate(KINDS):
        shift = 0.07 * (i - 2.5)
        _draw(axes[0], layers + shift, change.sel(kind=kind), looks[kind], kind)
        for ax, name in ((axes[2], "top_share"), (axes[3], "spread")):
            _draw(ax, counts * np.exp(shift), last[name].sel(kind=kind), looks[kind], kind)
    names = {"spread": "without a sign", "from_first": "turned by layer 1"}
    names |= {"from_last": "turned by the last layer"}
    for i, (name, label) in enumerate(names.items()):
        look = style.BLACK if i == 0 else "grey", style.MARKERS[i]
        _draw(axes[1], layers, most[name].sel(kind="descent"), look, label)
    for i, kind in enumerate(LEARNERS):
        x, there = c + 0.02 * (i - 1.5), end.sel(kind=kind)
        _draw(axes[4], x[1:], there.away[1:], looks[kind], kind)
        _draw(axes[4], x[1:], there.redundancy[1:], looks[kind], None, face="white")
        _draw(axes[5], x, there.duplicates, looks[kind], kind)
        _draw(axes[5], x, there.others, looks[kind], None, face="white")
    for ax, level in zip(axes, (1, None, None, None, 0, 0), strict=True):
        if level is not None:
            ax.axhline(level, color="grey", lw=0.8)
    axes[0].axhline(settings.growth, color="grey", lw=0.8, ls="--")
    size = "|log ratio| of two flows"
    axes[0].set(title=f"depth, {counts[-1]} demonstrations", ylabel=f"{size}, over layer 1")
    axes[1].set(title="descent, pairs turned", ylabel=f"{size}", ylim=(0, None))
    axes[2].set(title="the strongest", ylabel="largest share of the flow")
    axes[3].set(title="two among n, last layer", ylabel=size, ylim=(0, None))
    axes[4].set(title="flow beside duplicates", ylabel="change of its logarithm")
    axes[5].set(title="two together", ylabel="interaction / effect of one")
    axes[2].plot(counts, 1 / counts, ":", color=style.BLACK, label="1/n")
    for ax in axes[:2]:
        ax.set(xlabel="layers", xticks=layers)
    for ax in axes[2:4]:
        style.log_axes(ax, x=True, y=ax is axes[2], ticks=counts)
        ax.set(xlabel="demonstrations n")
    axes[2].set_yticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
    for ax in axes[4:]:
        ax.set(xlabel="correlation c of a duplicate", xticks=c)
    axes[0].set_ylim(top=1.35 * float(change.max()))
    axes[0].legend(ncols=2, loc="upper left")
    for ax in (axes[1], axes[4]):
        ax.legend(loc="lower left")
    axes[2].legend([axes[2].lines[-1]], ["1/n"])
    grown = {kind: float(change.sel(kind=kind).isel(layer=-1).median()) for kind in KINDS}
    style.caption(
        drawn,
        f"Depth changes the disparity of many demonstrations little, and either way: over "
        f"{layers[-1]} layers by {_percent(grown['linear'])} (trained linear), "
        f"{_percent(grown['softmax'])} (trained softmax), {_percent(grown['descent'])} (descent "
        f"with the step that is best for one layer, which overshoots in four), "
        f"{_percent(grown['short steps'])} (with {settings.short:g} of it). (b) A ratio whose sign "
        f"one layer decides is largest there: it falls or rises by regression to the mean. (e) "
        f"Filled: one demonstration of {settings.count} has a near-duplicate, in place of another; "
        f"open: all do, mean flow. (f) Filled: duplicates; open: other pairs. Below 0, two do less "
        f"together than apart. Median of {settings.runs} runs, each of {settings.prompts} prompts, "
        f"and the middle 80 % of them; {int(dataset.lost)} numbers left out as not finite. "
        f"d = {settings.d}, trained with {settings.n} shots.",
    )
    return drawn


def _draw(ax, x, samples, look, label, face=None):
    """Points with bars, joined by a thin line."""
    color, marker = look
    samples = samples.transpose("run", ...).values
    style.band(ax, x, samples, label, color, marker)
    ax.lines[-1 if face is None else -3].set_markerfacecolor(face or color)
    ax.plot(x, np.median(samples, axis=0), color=color, lw=0.6)


def _percent(ratio):
    return f"{ratio - 1:+.0%}".replace("-", "\u2212")


def claims(dataset):
    settings = results.settings(dataset)
    some, worst_of = dataset.isel(layer=-1), lambda rows: max(rows, key=np.median)
    alone, duplicated = dataset.sel(correlation=0), some.isel(correlation=-1)
    most = alone.isel(count=-1)
    n, c, growth = int(most["count"]), float(duplicated.correlation), settings.growth
    change = {
        name: most[name].isel(layer=-1) / most[name].isel(layer=0)
        for name in ("spread", "from_first", "from_last")
    }
    paper, own = "A1 (2508.00385)", "derived here"
    extended = f"{paper}, its Theorem 1 carried over to many demonstrations"
    third = f"{paper}, its open question on many demonstrations"
    spread = "|log ratio| of two flows, over pairs and prompts,"
    table = [  # name, source, statement, criterion, samples, bounds
        (
            f"depth_{kind.replace(', ', '_').replace(' ', '_')}",
            extended,
            f"Depth amplifies the disparity of many demonstrations: {kind}",
            f"median over runs of the median {spread} at the last layer over that at the first, "
            f"n = {n}, >= {growth}{ADDED.get(kind, '')}",
            change["spread"].sel(kind=kind).values,
            {"at_least": growth},
        )
        for kind in KINDS
    ]
    table.append(
        (
            "turned",
            own,
            "Which layer turns the pairs decides whether their ratio falls or rises with depth",
            f"median over runs of the change over the layers of descent's log ratios, the larger "
            f"flow at the first layer above, over the change with that at the last layer above, "
            f"n = {n}, <= 1/{growth}",
            (change["from_first"] / change["from_last"]).sel(kind="descent").values,
            {"at_most": 1 / growth},
        )
    )
    shares = alone.top_share.isel(layer=-1).transpose("kind", "run", "count").values
    table.append(
        (
            "top_share",
            third,
            "The share of the strongest demonstration falls with every further demonstration",
            "median over runs of the largest ratio of neighbouring n at the worst stack <= 1",
            worst_of((shares[..., 1:] / shares[..., :-1]).max(-1)),
            {"at_most": 1},
        )
    )
    few = alone.spread.isel(layer=-1).sel(count=settings.counts[1])
    for kind in LEARNERS[2:]:
        table.append(
            (
                f"same_ratio_{kind}",
                third,
                f"Two demonstrations of {n} are as unequal as two of {settings.counts[1]}: {kind}",
                f"median over runs of the median {spread} over that among the fewer, within a "
                f"factor {growth}",
                (most.spread.isel(layer=-1) / few).sel(kind=kind).values,
                {"at_least": 1 / growth, "at_most": growth},
            )
        )
    at = f"at c = {c:g}, n = {settings.count}"
    for kind in LEARNERS:
        there, name = duplicated.sel(kind=kind), kind.replace(" ", "_")
        bound = f"{at}, <= 0{ADDED.get(kind, '')}"
        table += [
            (
                f"redundancy_{name}",
                third,
                f"Where all have near-duplicates, flow per demonstration is lower: {kind}",
                f"median over runs and prompts of the log ratio to the mean flow without, {bound}",
                there.redundancy.values,
                {"at_most": 0},
            ),
            (
                f"explained_away_{name}",
                own,
                f"The flow of a demonstration is lower beside its near-duplicate: {kind}",
                "median over runs and prompts of the log ratio to the flow beside an unrelated "
                f"one, {bound}",
                there.away.values,
                {"at_most": 0},
            ),
            (
                f"interactions_{name}",
                own,
                f"Two near-duplicates do less together than apart: {kind}",
                f"median over runs and prompts of their interaction, {bound}",
                there.duplicates.values,
                {"at_most": 0},
            ),
        ]
    apart = (duplicated.duplicates - duplicated.others).sel(kind=list(LEARNERS))
    table.append(
        (
            "interactions_below_others",
            own,
            "Near-duplicates interact more negatively than other pairs of the same prompts",
            "median over runs of the difference of medians at the worst of the stacks that learn, "
            f"{at}, <= 0",
            worst_of(apart.transpose("kind", "run").values),
            {"at_most": 0},
        )
    )
    return [
        about_the_median(f"many_shot_flow.{name}", *texts, samples, **bounds)
        for name, *texts, samples, bounds in table
    ]
