"""Do norms, or smaller updates, help softmax attention as A2 reads its theory (A2, Remark 4)?

Pairs of stacks of softmax attention are trained alike on prompts of linear regression, one with a
norm before each layer and one without, from the same seeds and on the same prompts. A2 says that
smaller updates |G_t| lower its bound, and that this could explain why normalisation helps. What a
norm is said to do is done here to models without norms as well: all that their layers write is
multiplied by a factor below 1. Where labels are noisier than in training, less should be better;
but so are smaller answers, without any smaller update. All risks are excess risks.
"""

from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.models.model import Model
from experiments.models.runs import refuse_divergence
from experiments.models.specs import dense_spec
from experiments.models.tasks import distribution, draw, ridge_risks
from lsa_lab.lab import Claim, geometric_mean, main, plotting

NORMS = ("without norms", "with norms")
SHRUNK = ("writes", "answers")


@dataclass(frozen=True)
class Config:
    d: int = 5  # covariates
    n: int = 15  # demonstrations of a prompt
    noise_std: float = 0.5  # of the labels, in training; w is N(0, I)
    noisier: float = 2.0  # times this noise in the test of smaller updates
    depth: int = 3  # layers
    heads: int = 2  # of a layer
    key_width: int = 8  # of a head; the stream is as wide as all heads together
    factors: tuple[float, ...] = (0.8, 0.85, 0.9, 0.95, 0.98)  # of what all layers write
    pairs: int = 16
    steps: int = 10_000  # of a training, in five parts after which risks are measured
    batch: int = 64
    learning_rate: float = 0.003
    test_prompts: int = 10_000  # of each pair, at each noise
    seed: int = 1042

    @property
    def models(self):
        """The trained models: a Spec without norms and the same with norms."""
        training = dict(steps=self.steps, batch=self.batch, learning_rate=self.learning_rate)
        training |= dict(seeds=self.pairs, seed=self.seed, checkpoints=5)
        wide = dict(heads=self.heads, key_width=self.key_width, width=self.heads * self.key_width)
        plain = dense_spec("softmax", self.d, self.n, self.depth, noise_std=self.noise_std,
                           init_scale=0.5, training=training, **wide)  # fmt: skip
        architecture = replace(plain.architecture, norm=True)
        specs = plain, replace(plain, architecture=architecture)
        return dict(zip(NORMS, specs, strict=True))


TIERS = {
    "smoke": Config(2, 4, depth=2, key_width=2, pairs=2, steps=10, batch=4, test_prompts=16,
                    seed=1),
    "quick": Config(3, 9, depth=2, factors=(0.8, 0.9, 0.95), pairs=9, steps=1500, batch=32,
                    test_prompts=2000, seed=2),
    "full": Config(),
}  # fmt: skip


def draw_prompts(key, task, noise_std, config):  # -> Prompt [R, B]
    task, keys = distribution(task, noise_std=noise_std), jax.random.split(key, config.pairs)
    return jax.lax.map(partial(draw, task=task, size=config.test_prompts), keys)


@partial(jax.jit, static_argnums=0)
def measure_path(spec, path, batch):  # leaves [R, P, ...], Prompt [R, B] -> [R, P]
    def risk(params, batch):
        return Model(spec, params).errors(batch).mean()

    return jax.lax.map(lambda row: jax.lax.map(partial(risk, batch=row[1]), row[0]), (path, batch))


@partial(jax.jit, static_argnums=0)
def measure_shrunk(spec, params, batch, factors):  # leaves [R, ...], Prompt [R, B] -> [R, 2, F]
    """Return risks with all writes, and with the answers alone, multiplied by each factor."""

    def measure_run(row):
        params, batch = row
        model = Model(spec, params)

        def shrink(factor):  # all that the layers write
            return Model(spec, params.replace(w_o=factor * params.w_o)).errors(batch).mean()

        answers = factors[:, None] * model.predict(batch)[None]
        writes = jax.lax.map(shrink, factors)
        return jnp.stack([writes, ((answers - batch.y_query[None]) ** 2).mean(1)])

    return jax.lax.map(measure_run, (params, batch))


def compute(config, models):
    refuse_divergence(models)
    task = models[NORMS[0]].spec.task
    keys = jax.random.split(jax.random.key(config.seed + 1))
    usual = draw_prompts(keys[0], task, config.noise_std, config)
    noisy = draw_prompts(keys[1], task, config.noisier * config.noise_std, config)
    factors = jnp.array([1.0, *config.factors])
    risk, shrunk = [], []
    for runs in models.values():
        path = jax.tree.map(lambda leaf: np.asarray(leaf, float), runs.path)
        last = jax.tree.map(lambda leaf: leaf[:, -1], path)
        risk.append(measure_path(runs.spec, path, usual))
        shrunk.append(measure_shrunk(runs.spec, last, noisy, factors))
    data = {
        "risk": (("norm", "run", "step"), np.stack(risk)),
        "shrunk": (("norm", "run", "shrunk_part", "factor"), np.stack(shrunk)),
        "ridge": (("run",), ridge_risks(usual, config.noise_std**2 / config.n)),
    }
    steps = models[NORMS[0]].path_steps
    coordinates = {"norm": list(NORMS), "step": steps, "shrunk_part": list(SHRUNK)}
    return xr.Dataset(data, coordinates | {"factor": factors})


def norm_ratio(result):  # -> [R]
    """Return the risk at the end of training with norms over that without."""
    risk = result["risk"].isel(step=-1)
    return (risk.sel(norm="with norms") / risk.sel(norm="without norms")).values


def shrunk_ratios(result, part, norm="without norms"):  # -> [R, F]
    """Return risks on noisy labels with a part shrunk by each factor over those unshrunk."""
    risk = result["shrunk"].sel(shrunk_part=part, norm=norm).transpose("run", "factor").values
    return risk[:, 1:] / risk[:, :1]


def best_shrunk(result, part):  # -> [R]
    """Return each run's ratio at the factor with the least mean logarithm over the other runs."""
    logs = np.log(shrunk_ratios(result, part))
    others = logs.sum(0) - logs
    return np.exp(logs[np.arange(len(logs)), others.argmin(1)])


def writes_over_answers(result):  # -> [R]
    return best_shrunk(result, "writes") / best_shrunk(result, "answers")


FULL = TIERS["full"]
ratio = partial(Claim, source="A2, Remark 4", statistic="ratio")
NOISY = f"on labels with {FULL.noisier:g} times the noise of training"
CHOSEN = "by the factor that is best for the other trainings"
CLAIMS = (
    ratio("norms", statement="We read: a norm before each layer lowers the risk of softmax "
          "attention that is trained alike", quantity="the risk with norms over that without, of "
          "one seed on the same prompts", sample=norm_ratio, at_most=1.0,
          null="none: the ratio is paired, and 1 without a difference"),
    ratio("smaller_updates", statement=f"We read: {NOISY} smaller updates lower the risk of "
          "softmax attention without norms",
          quantity=f"the risk with all writes shrunk, {CHOSEN}, over that unshrunk",
          sample=partial(best_shrunk, part="writes"), at_most=1.0, null="beside_answers"),
    ratio("beside_answers", statement=f"We read: {NOISY} shrinking what the layers write lowers "
          "the risk more than shrinking the answers alone", quantity="the risk with all writes "
          f"shrunk over that with the answers shrunk, each {CHOSEN}", sample=writes_over_answers,
          at_most=1.0, null="none: the ratio is paired, and 1 without a difference"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.6, (1, 2))
    for norm, look in LOOKS.items():
        ratios = (result["risk"] / result["ridge"]).sel(norm=norm).isel(step=slice(1, None))
        face = look["color"] if norm == NORMS[0] else "white"
        look = {**look, "label": norm, "mfc": face, "capsize": 2}
        thousands, runs = ratios["step"] / 1000, ratios.transpose("run", "step")
        plotting.mean_points(left, thousands, runs, statistic="ratio", lw=0.8, **look)
    plotting.line(
        left, [0, float(result["step"][-1]) / 1000], [1, 1], "ridge regression", style=":"
    )
    plotting.log_axes(left, y=True)
    highest = float((result["risk"] / result["ridge"]).isel(step=1).max())
    ticks = [tick for tick in (1, 1.5, 2, 3, 5, 10, 20) if tick < highest]
    left.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    left.set(xlabel="thousands of steps", ylabel="risk / ridge's", title="Risk in training")
    left.legend()
    names = {"all writes": "writes", "the answers alone": "answers"}
    runs = {name: shrunk_ratios(result, part) for name, part in names.items()}
    looks = plotting.looks(names, "s^", (plotting.VERMILION, plotting.GREY))
    plotting.series(right, result["factor"][1:], runs, looks, "ratio", capsize=2, lw=0.8)
    right.axhline(1, color="grey", lw=0.8, ls=":")
    right.set(xlabel="factor of what is shrunk", ylabel="risk / that unshrunk")
    right.set_xticks(result["factor"].values[1:])
    right.set_title("Shrinking, on noisy labels")
    right.legend()
    norms = geometric_mean(norm_ratio(result))
    writes, answers = (geometric_mean(best_shrunk(result, part)) for part in SHRUNK)
    ridge = np.exp(np.log(result["risk"].isel(step=-1) / result["ridge"]).mean("run"))
    ends = " and ".join(f"{float(ridge.sel(norm=norm)):.3g} {norm}" for norm in NORMS)
    return figure, (
        f"Norms multiply the risk by {norms:.3g}. On labels with {config.noisier:g} times the "
        f"noise of training, shrinking all writes of models without norms multiplies it by "
        f"{writes:.2f}, and shrinking the answers alone by {answers:.2f}. Risks end at {ends} "
        "times that of ridge regression. Points are geometric means of seeds."
    )


LOOKS = {NORMS[0]: plotting.METHOD["softmax"], NORMS[1]: plotting.METHOD["softmax, norm"]}


if __name__ == "__main__":
    main(__file__)
