"""The figure of `head_pruning`, drawn from its result alone."""

from experiments.heads.head_pruning import panels
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    deep = [name for name in settings.deep if name in dataset.case.values]
    drawn, axes = style.figure(11.0, 6.8, (2, 3))
    for ax, case in zip(axes, (deep[0], deep[-1]), strict=False):
        panels.over_lengths(ax, dataset, case)
        ax.set_ylim(None, 60 * ax.get_ylim()[1])  # room for the legend
    axes[0].legend(ncols=2, loc="upper right")
    panels.of_all_cases(axes[2], dataset)
    for case, color in zip(deep, style.COLOURS, strict=False):
        panels.greedy(axes[3], dataset, case, color)
        panels.left(axes[4], dataset, case, color)
        panels.layers(axes[5], dataset, case, color)
    for ax in (axes[3], axes[5]):
        ax.axhline(settings.unchanged, color="grey", lw=0.8, ls="--")
        style.log_axes(ax, y=True)
        ax.set(ylabel="risk / that of the full model")
    for ax in axes[3:5]:
        ax.invert_xaxis()
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="heads left in the network")
    axes[4].set(ylabel="heads left in a layer")
    axes[5].set(xlabel="heads kept in one layer, the others whole")
    for ax, title in zip(
        axes[3:],
        ("greedy pruning", "where greed leaves heads", "the best subset of one layer"),
        strict=True,
    ):
        ax.set_title(title)
        ax.legend()
    worst = [f"{panels.middle(panels.ratios(dataset, case, 'pruned')):.2g}" for case in deep]
    style.caption(
        drawn,
        f"With all heads of layer 1 and the most important one of each later layer (pruned) the "
        f"risk is {' and '.join(worst)} times that of the full model ({', '.join(deep)}; "
        f"n = {settings.n}). Dashed: {settings.unchanged:g}, what counts as unchanged. d: hollow, "
        f"as many heads chosen by that rule (squares) or trained so (triangles). Heads are chosen "
        f"on other prompts than those judged on; importance and Shapley's value name the same top "
        f"head in {panels.agreement(dataset, deep):.0%} of later layers. Heads of linear attention "
        f"as wide as a token can be mixed without changing their layer, narrow and softmax ones "
        f"cannot. Medians of seeds and the middle 80 % of them; trainings that have not finished "
        f"are left out: {int(dataset.lost.sum())}. Our setting, modelled on Chen et al. "
        f"2408.04532.",
    )
    return drawn
