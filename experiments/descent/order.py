"""Does the order of the demonstrations matter, and which places count most (A2, Remark 1)?

A2 recalls that models depend on the order of the demonstrations, and that they read both ends of a
prompt best. Our models have no positions, only a causal mask, by which a demonstration reads those
before it; without the mask no order can matter (docs/theory, "Moments suffice"). Trained causal
softmax attention answers the same demonstrations in many orders, beside other demonstrations of the
same task. Then a demonstration that has the query's covariates, and so the query's answer as its
label, moves through all places; the label is exact, or as noisy as the others.
"""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from experiments.models.model import Model
from experiments.models.named import choose_models
from experiments.models.tasks import distribution, draw
from lsa_lab import estimators, prompts
from lsa_lab.lab import Claim, geometric_mean, main, plotting
from lsa_lab.models import constructions, linear_attention, transformer
from lsa_lab.models.trace import predict
from lsa_lab.tasks.linear import sample, sample_weights

CAUSAL = "causal attention"
STACKS = ("trained", "random softmax", "random linear", "descent")  # all with a causal mask
ASKED = STACKS[::3]  # about places: the trained stacks and descent
READINGS = ("exact", "noisy", "influence")
ENDS = ("first", "last")


@dataclass(frozen=True)
class Config:
    small: bool = False  # models that train in seconds
    seeds: int = 16  # of the trained model, and random stacks of each kind
    tasks: int = 48  # of each run, where orders are compared
    orders: int = 24  # of each prompt, and as many other draws of its demonstrations
    random_depth: int = 2  # layers of random stacks and of descent
    prompts: int = 1500  # of each run, in which one demonstration moves
    seed: int = 1045

    @property
    def models(self):
        return choose_models((CAUSAL,), small=self.small)


TIERS = {
    "smoke": Config(small=True, seeds=2, tasks=2, orders=3, prompts=8, seed=1),
    "quick": Config(seeds=9, tasks=16, orders=12, prompts=200, seed=2),
    "full": Config(),
}


def build_stacks(config, runs):  # -> {stack: (predict of params and Prompt [B], params [R, ...])}
    """Return the trained seeds that did not diverge, and as many other stacks."""
    task, kept = runs.spec.task, np.flatnonzero(runs.finished[-1])[: config.seeds]
    trained = runs.models(seeds=kept).cast_float64().params
    stacks = {"trained": (lambda params, batch: Model(runs.spec, params).predict(batch), trained)}
    keys = jax.random.split(jax.random.key(config.seed + 1), len(kept))
    for kernel in ("softmax", "linear"):
        shape = transformer.Config(task.d + 1, config.random_depth, 2, task.d, kernel=kernel,
                                   keys="causal", init_scale=1.0)  # fmt: skip
        forward = partial(transformer.forward, config=shape)
        params = jax.vmap(partial(transformer.init, config=shape))(keys)
        stacks[f"random {kernel}"] = partial(answer, forward), params
    step = 1 / (1 + (1 + task.d + task.noise_std**2) / max(task.lengths))
    descent = constructions.gradient_descent(jnp.full(config.random_depth, step), task.d)
    repeated = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(kept)), descent)
    forward = partial(linear_attention.forward, keys="causal")
    return stacks | {"descent": (partial(answer, forward), repeated)}


def answer(forward, params, batch):  # -> [B]
    return jax.vmap(lambda prompt: predict(forward(params, prompts.tokens(prompt))))(batch)


def draw_orders(key, task, config):  # -> Prompt [O], Prompt [O]
    """Draw one prompt in many orders, and as many prompts of its task with its query."""
    keys = jax.random.split(key, 3)
    same = task.replace(prior_mean=sample_weights(keys[0], task), weight_std=0.0)
    fresh = jax.vmap(partial(sample, task=same))(jax.random.split(keys[1], config.orders))
    fresh = fresh.replace(x_query=jnp.broadcast_to(fresh.x_query[:1], fresh.x_query.shape))

    def shuffle(key):
        prompt = jax.tree.map(lambda leaf: leaf[0], fresh)
        order = jax.random.permutation(key, task.n)
        return prompt.replace(x=prompt.x[order], y=prompt.y[order])

    return jax.vmap(shuffle)(jax.random.split(keys[2], config.orders)), fresh


def measure_share(stack, task, config, key):  # -> [R]
    """Return the spread of answers over orders over that over demonstrations, median of tasks."""
    answer_batch, params = stack

    def measure_run(row):
        params, keys = row
        pairs = jax.vmap(partial(draw_orders, task=task, config=config))(keys)
        by_order, by_draw = (
            jax.vmap(partial(answer_batch, params))(batch).std(1, ddof=1) for batch in pairs
        )
        return jnp.median(by_order / by_draw)

    keys = jax.random.split(key, (len(jax.tree.leaves(params)[0]), config.tasks))
    return jax.jit(partial(jax.lax.map, measure_run))((params, keys))


def move(prompt, place, noise):  # Prompt, [], [] -> Prompt
    """Replace the first demonstration by the query and its answer with noise, at this place."""
    x = prompt.x.at[0].set(prompt.x_query)
    y = prompt.y.at[0].set(prompt.y_query + noise)
    order = jnp.arange(len(prompt.y))
    order = jnp.where(order < place, order + 1, jnp.where(order == place, 0, order))
    return prompt.replace(x=x[order], y=y[order])


def measure_places(answer_batch, batch, noise):  # Prompt [B], [B] -> [readings, n]
    """Return errors by the place of the query's own demonstration, its label exact and noisy, and
    the root mean square of ∂ŷ/∂y_i of the prompts as they are."""

    def move_to(place):
        moved = (jax.vmap(move, (0, None, 0))(batch, place, c * noise) for c in (0.0, 1.0))
        return jnp.stack([jnp.mean((answer_batch(b) - batch.y_query) ** 2) for b in moved])

    errors = jax.lax.map(move_to, jnp.arange(batch.y.shape[-1]))  # [n, 2]
    slopes = jax.grad(lambda y: answer_batch(batch.replace(y=y)).sum())(batch.y)  # [B, n]
    return jnp.concatenate([errors.T, jnp.sqrt((slopes**2).mean(0))[None]])


def measure_worth(stack, task, config, key):  # -> [R, readings, n], [R], [R]
    answer_batch, params = stack
    penalty = (task.noise_std / task.weight_std) ** 2 / task.n

    def measure_run(row):
        params, key = row
        key_prompts, key_noise = jax.random.split(key)
        batch = draw(key_prompts, task, config.prompts)
        noise = task.noise_std * jax.random.normal(key_noise, batch.y_query.shape)
        measured = measure_places(partial(answer_batch, params), batch, noise)
        ridge = jax.vmap(lambda prompt: estimators.ridge(prompt, penalty) @ prompt.x_query)
        answers = answer_batch(params, batch), ridge(batch)
        return measured, *(jnp.mean((answer - batch.y_query) ** 2) for answer in answers)

    keys = jax.random.split(key, len(jax.tree.leaves(params)[0]))
    return jax.jit(partial(jax.lax.map, measure_run))((params, keys))


def compute(config, models):
    runs, keys = models[CAUSAL], jax.random.split(jax.random.key(config.seed))
    task, stacks = distribution(runs.spec.task), build_stacks(config, runs)
    share = [measure_share(stack, task, config, keys[0]) for stack in stacks.values()]
    places = {name: measure_worth(stacks[name], task, config, keys[1]) for name in ASKED}
    measured, risk, ridge = (np.stack(rows) for rows in zip(*places.values(), strict=True))
    data = {
        "share": (("stack", "run"), np.stack(share)),
        "by_place": (("asked", "run", "reading", "place"), measured),
        "risk": (("asked", "run"), risk),
        "ridge": (("run",), ridge[0]),
    }
    coordinates = {"stack": list(STACKS), "asked": list(ASKED), "reading": list(READINGS)}
    return xr.Dataset(data, coordinates | {"place": np.arange(task.n) + 1})


def share(result, stack):  # -> [R]
    return result["share"].sel(stack=stack).values


def worth_at(result, reading, end, asked="trained"):  # -> [R]
    """Return the worth of the first or last place less that of the middle half of the places.

    It is a share of the mean error over places with its sign turned, or of the mean influence.
    """
    values = result["by_place"].sel(asked=asked, reading=reading).transpose("run", "place")
    worth = (values / values.mean("place")).values * (1 if reading == "influence" else -1)
    quarter = max(1, worth.shape[1] // 4)
    return worth[:, 0 if end == "first" else -1] - worth[:, quarter:-quarter].mean(1)


remark = partial(Claim, source="A2, Remark 1")
SHARE = "the spread of answers over orders over that over other demonstrations, median over tasks"
NO_MASK = "none: without the mask it is 0, since no order matters"
CLAIMS = (
    remark("share", statement="In trained causal attention the order of the demonstrations moves "
           "the answer by a tenth or more of what other demonstrations do",
           quantity=SHARE, sample=partial(share, stack="trained"), at_least=0.1, null=NO_MASK),
    remark("share_untrained", statement="In causal stacks of two layers ({stack}) the order moves "
           "the answer by a tenth or more of what other demonstrations do", quantity=SHARE,
           sample=share, over={"stack": STACKS[1:]}, at_least=0.1, null=NO_MASK),
    remark("worth_at_the_ends", statement="We read: a demonstration in the {end} place counts "
           "more to trained causal attention than in the middle ({reading})",
           quantity="the worth of a demonstration in this place less that in the middle half of "
           "the places, as a share of the mean error, or influence, over places",
           sample=worth_at, over={"reading": READINGS, "end": ENDS}, at_least=0.05, null=NO_MASK,
           note="exact, noisy: the error with the query's own demonstration in this place, its "
           "label exact or as noisy as the others; influence: the root mean square of ∂ŷ/∂y_i"),
)  # fmt: skip


def plot(result, config):  # -> Figure, caption
    figure, (left, right) = plotting.figure(6.75, 2.5, (1, 2), width_ratios=(1, 1.6))
    looks = ("softmax, causal", "softmax, causal", "linear, causal", "descent")
    for i, (stack, name) in enumerate(zip(STACKS, looks, strict=True)):
        runs, look = 100 * share(result, stack), dict(ls="", mfc="none", ms=3, mew=0.6)
        left.plot(i + 0.2 * np.linspace(-1, 1, len(runs)), runs, **look, **plotting.METHOD[name])
        left.plot(i, runs.mean(), "_", color="black", ms=16)
    left.set_xticks(range(len(STACKS)), [stack.replace(" ", "\n") for stack in STACKS])
    left.set(ylabel="% of the spread over demonstrations", ylim=(0, None))
    left.set_title("Spread over orders")
    places, color = result["place"].values, plotting.METHOD["softmax, causal"]["color"]
    curves = (
        ("trained, exact label", "trained", "exact", color, "-"),
        ("trained, noisy label", "trained", "noisy", color, "--"),
        ("descent, exact label", "descent", "exact", plotting.METHOD["descent"]["color"], ":"),
    )
    for label, asked, reading, shade, style in curves:
        values = result["by_place"].sel(asked=asked, reading=reading)
        look = dict(color=shade, ls=style, lw=1, marker="o", ms=2)
        plotting.mean_points(right, places, values / values.mean("place"), label, **look)
    right.axhline(1, color="grey", lw=0.6)
    right.set(
        xlabel="place of the query's own demonstration", ylabel="error / its mean over places"
    )
    right.set_title("Error by place")
    right.legend()
    moved = 100 * float(share(result, "trained").mean())
    first, last = (-100 * worth_at(result, "exact", end).mean() for end in ENDS)
    noisy = -100 * worth_at(result, "noisy", "last").mean()
    ratio = geometric_mean(result["risk"].sel(asked="trained") / result["ridge"])
    return figure, (
        f"In trained causal attention a new order changes the answer by {moved:.2g} % of the "
        "change by new demonstrations. A demonstration with the query's covariates changes the "
        f"error by {first:+.2g} % at the first place and by {last:+.2g} % at the last, compared "
        f"with a place in the middle; if its label is noisy, by {noisy:+.2g} % at the last. The "
        f"models have {ratio:.3g} times the risk of ridge regression."
    )


if __name__ == "__main__":
    main(__file__)
