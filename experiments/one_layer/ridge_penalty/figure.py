from lsa_lab.harness import style


def plot(dataset):
    figure, (ax,) = style.figure(3.25, 2.5)
    style.mean_points(ax, dataset.penalty, dataset.distance.values, "one layer", fmt="o")
    style.log_axes(ax, x=True, y=True)
    ax.set(xlabel="penalty", ylabel="distance to ridge")
    return figure


def caption(dataset):
    nearest = float(dataset.penalty[dataset.distance.mean("run").argmin()])
    return f"Nearest to penalty {nearest:g}. Mean of {dataset.sizes['run']} runs."
