"""Which heads matter: heat maps, what their count depends on, and a row for every model."""

from experiments.heads.head_importance import panels
from experiments.heads.head_importance.claims import diverged, of_one_model, one_model
from experiments.heads.head_importance.config import subjects
from lsa_lab import results
from lsa_lab.harness import style

MAPS = {  # the panel of a model, as many heads in every layer or in the first alone
    "a": ("depth 3", "full"),
    "b": ("depth 5", "full"),
    "c": ("depth 5", "first"),
    "d": ("long training", "full"),
    "e": ("dense", "full"),
    "f": ("two of four", "full"),
    "g": ("polynomial", "full"),
    "h": ("softmax", "full"),
}
LAYOUT = ("abcdmn", "efghmn", "ijklmn")


def plot(dataset):
    from matplotlib.figure import Figure

    config = results.config_of(dataset)
    with style.context():
        figure = Figure(figsize=(14.0, 7.8), layout="constrained")
        widths = (1, 1, 1, 1, 1.05, 1.05)
        axes = figure.subplot_mosaic([list(row) for row in LAYOUT], width_ratios=widths)
        for letter, ax in axes.items():
            ax.set_title(letter, loc="left", fontweight="bold")
    for letter, subject in MAPS.items():
        model = one_model(dataset, *subject)
        if model is None:
            axes[letter].set_axis_off()
        else:
            panels.heat_map(axes[letter], model, config)
    panels.training(axes["i"], dataset, config)
    panels.ablations(axes["j"], dataset)
    panels.representatives(axes["k"], dataset, config)
    panels.likeness(axes["l"], dataset)
    panels.first_layers(axes["m"], dataset, config)
    panels.later_layers(axes["n"], dataset, config)
    return figure


def caption(dataset) -> str:
    config = results.config_of(dataset)
    return (
        f"{answer(dataset, config)} a-h: shares of a layer's importance (rise of the risk without "
        "the head), its heads sorted, mean over seeds; then N_l = exp(entropy) and the sum of the "
        f"rises (grey: below {config.dead:g} of the first layer's). i: filled N_1, hollow the mean "
        "of later N_l. j: mean ablation is zero ablation, for x and -x are as likely. k: other "
        "weights of the same functions; filled as trained. l: hollow random weights of the same "
        "size. m, n: hollow as grey; crosses: rises of the median prompt's error, which does not "
        "see prompts that explode; dashed and shaded: the criteria. Points: mean and 95 % interval "
        f"over seeds; {diverged(dataset)} diverged runs left out. n = {config.n}, "
        f"{config.prompts} prompts."
    )


def answer(dataset, config) -> str:
    """What the models with as many heads in every layer do, those that know of sparsity."""
    names = [name for name, form, _ in subjects(config) if form == "full"]
    models = [one_model(dataset, name, "full") for name in names]
    able = [model for model in models if float(model.risk.mean() / model.ridge) < 1]
    if not able:
        return "None of the models with h heads in every layer beats ridge."
    rows = [of_one_model(model, config, "full") for model in able]
    first, typical, later = (
        [row[kind].mean() for row in rows] for kind in ("first", "first_of_median", "later")
    )
    yes = min(first) >= config.all_matter and max(later) <= config.one_later
    return (
        f"{'Yes' if yes else 'No'}: models with h heads in every layer that beat ridge use "
        f"{min(first):.2f} h to {max(first):.2f} h effective heads in the first layer, and "
        f"{min(later):.1f} to {max(later):.1f} in the later layer that has most. For the median "
        f"prompt the first layer uses {min(typical):.2f} h to {max(typical):.2f} h."
    )
