"""The figure of `preprocess_then_optimise`, drawn from its result alone."""

from experiments.heads.preprocess_then_optimise import panels
from lsa_lab import results
from lsa_lab.harness import style


def plot(dataset):
    settings = results.config_of(dataset)
    drawn, axes = style.figure(10.5, 6.8, (2, 3))
    lost = panels.few_steps(axes[0], dataset)
    lost += panels.many_steps(axes[1], dataset.by_step, dataset.t)
    panels.levels(axes[1], dataset.of_rule, ("ridge", "Lasso", "sparse Bayes"), 0.01)
    axes[1].set(ylabel="excess risk")
    axes[1].set_title("many steps of one size")
    axes[1].legend()
    units = settings.wide_n / settings.wide_noise_var
    lost += panels.many_steps(axes[2], units * dataset.wide_by_step, dataset.t)
    for value, text in ((settings.wide_d, "d"), (settings.wide_sparsity, "s")):
        panels.level(axes[2], value, text)
    axes[2].set(ylabel="n · excess risk / σ²")
    axes[2].set_title(
        f"as b: d = {settings.wide_d}, s = {settings.wide_sparsity}, n = {settings.wide_n}"
    )
    lost += panels.by_heads(axes[3], dataset)
    lost += panels.learned(axes[4], dataset)
    lost += panels.reached(axes[5], dataset)
    style.caption(
        drawn,
        f"a, b, d: d = {settings.d}, s = {settings.sparsity}, n = {settings.n}, σ² = "
        f"{settings.noise_var:g}. With one step size for all prompts, a few steps on preprocessed "
        "covariates lose against plain descent, and only very many win; with R normalised in each "
        "prompt they win at once. Sizes are chosen on other prompts: in a one for each step (α I + "
        "β R² explodes on rare prompts), in b and c one for each number of steps; in d and e half "
        f"the largest that converges in the prompt. e, f: {settings.models[0][0]}, n = "
        f"{settings.trained_n}; the models do more than descend on what their first layer writes. "
        f"Median of {settings.runs} runs of {settings.prompts} prompts (c: {settings.wide_runs} of "
        f"{settings.wide_prompts}; e, f: {dataset.sizes['seed']} seeds, {int(dataset.diverged)} "
        f"left out as diverged) and the middle 80 %; {lost} numbers left out as not finite.",
    )
    return drawn
