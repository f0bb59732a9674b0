"""The figure of `head_importance`, drawn from its result alone."""

from experiments.heads.head_importance import numbers, panels
from experiments.heads.head_importance.claims import about
from experiments.heads.head_importance.config import SUBJECTS
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn = panels.draw(dataset)
    lost = int(sum(numbers.lost(dataset.isel(model=i)) for i in range(dataset.sizes["model"])))
    style.caption(
        drawn,
        f"{message(dataset, settings)} "
        f"a-h: shares of a layer's importance (rise of the risk without the head), its heads "
        f"sorted, mean over seeds; then N_l = exp(entropy) and the sum of the rises (grey: below "
        f"{settings.dead:g} of the first layer's). i: filled N_1, hollow the mean of later N_l. "
        f"j: mean ablation is zero ablation, for x and -x are as likely. k: other weights of the "
        f"same functions; filled as trained. l: hollow random weights of the same size. m, n: "
        f"hollow as grey; crosses: rises of the median prompt's error, which does not see prompts "
        f"that explode; dashed and shaded: the criteria. Points: mean and 95 % interval over "
        f"seeds; {lost} diverged runs left out. n = {settings.n}, {settings.prompts} prompts.",
    )
    return drawn


def message(dataset, settings) -> str:
    models = [numbers.one_model(dataset, name, "full") for name, form in SUBJECTS if form == "full"]
    able = [m for m in models if m is not None and float(m.risk.mean() / m.ridge) < 1]
    if not able:
        return "None of the models with h heads in every layer beats ridge."
    found = [about(model, settings, "full") for model in able]
    first, typical, later = (
        [one[name].mean() for one in found] for name in ("first", "first_of_median", "later")
    )
    return (
        f"Models with h heads in every layer that beat ridge (sparse tasks) use {min(first):.2f} "
        f"h to {max(first):.2f} h effective heads in the first layer ({min(typical):.2f} h to "
        f"{max(typical):.2f} h for the median prompt), and {min(later):.1f} to {max(later):.1f} in "
        f"the later layer that has most."
    )
