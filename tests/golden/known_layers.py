"""Write known answers for kernels of linear recurrences, layers.npz, in float64 at T = 9 and 97.

    JAX_ENABLE_X64=1 python tests/golden/known_layers.py    writes the file again, in two minutes

`np.load("layers.npz")["97/keys"]` is an input, `"97/delta"` [T, 3] what the layer delta reads, and
`"97/delta/state"` [4, 3] its last state. One head; queries are not divided; the first state is 0:

    queries, keys [T, 4], values [T, 3]    |k| ≤ 1; of every seven tokens one has the key 0, and two
                                           the key of the token before
    step [T]                               β in (0, 2], of which every fifth is 2
    gate [T], gates [T, 4]                 of every four one is 1 and one 1e-4
    erase [T, 4], write [T, 3]             in (0, 1)
    more_keys [T, 4], more_values [T, 3], more_step [T]    of delta_product's second move

`LOOPS` has each layer's move of a state S [4, 3] in one line; k̂ is k/|k|, and 0 where k is 0. mesa
has the penalty .3, which gates leave alone, retention the gate .96, ssd exp(-step/2); ttt makes two
steps on a token.

`"risk/delta"` [] is the closed excess risk E |S - w|² of a layer after 32 demonstrations, the mean
of three tasks, and `"risk/delta/spread"` [] the standard deviation of one prompt: over N prompts
the risk of a right kernel has the standard error spread/√N. `draw_prompts` draws them, d = 4 and
σ² = .25; `SETTINGS` says which keys, values, steps and gates each layer is handed.
"""

from pathlib import Path

import numpy as np

from lsa_lab.theory import drift, learning_curves

FILE = Path(__file__).with_name("layers.npz")
LENGTHS, PENALTY, RETENTION = (9, 97), 0.3, 0.96


def inputs(count):
    rng, token = np.random.default_rng(count), np.arange(count)

    def keys():
        rows = rng.normal(size=(count, 4))
        return rows * (rng.uniform(0.3, 1, count) / np.linalg.norm(rows, axis=1))[:, None]

    one = dict(queries=rng.normal(size=(count, 4)), keys=keys(), values=rng.normal(size=(count, 3)))
    one["keys"][token % 7 == 3] = 0
    for place in token[(token % 7 == 5) | (token % 7 == 6)]:
        one["keys"][place] = one["keys"][place - 1]
    one["step"] = np.where(token % 5 == 4, 2.0, rng.uniform(0.1, 1.9, count))
    for name, shape in (("gate", (count,)), ("gates", (count, 4))):
        place = np.arange(np.prod(shape)).reshape(shape) % 4
        one[name] = np.select([place == 1, place == 3], [1.0, 1e-4], rng.uniform(0.7, 1, shape))
    one["erase"], one["write"] = rng.uniform(0.05, 0.95, (count, 4)), rng.uniform(0, 1, (count, 3))
    one |= dict(more_keys=keys(), more_values=rng.normal(size=(count, 3)))
    return one | dict(more_step=rng.uniform(0.1, 1.9, count))


def unit(key):
    length = np.linalg.norm(key)
    return key / length if length else key


def delta(S, k, v, step):
    return S + step * np.outer(k, v - k @ S)


def gdn2(S, t):
    S, k = t["gates"][:, None] * S, unit(t["keys"])
    return S - np.outer(k, (t["erase"] * k) @ S) + np.outer(k, t["write"] * t["values"])


def delta_product(S, t):
    S = delta(S, unit(t["keys"]), t["values"], t["step"])
    return delta(S, unit(t["more_keys"]), t["more_values"], t["more_step"])


def ttt(S, t):
    return LOOPS["lms"](LOOPS["lms"](S, t), t)


def rwkv7(S, t):
    k = unit(t["keys"])
    return t["gates"][:, None] * S + np.outer(t["erase"] * k, t["values"] - k @ S)


def longhorn(S, t):  # the S_t that is least in |S_t - S|² + β |S_tᵀk - v|²
    k = t["keys"]
    moment = np.eye(4) + t["step"] * np.outer(k, k)
    return np.linalg.solve(moment, S + t["step"] * np.outer(k, t["values"]))


LOOPS = {
    "additive": lambda S, t: S + np.outer(t["keys"], t["values"]),
    "retention": lambda S, t: t.get("retention", RETENTION) * S + np.outer(t["keys"], t["values"]),
    "gla": lambda S, t: t["gates"][:, None] * S + np.outer(t["keys"], t["values"]),
    "ssd": lambda S, t: np.exp(-t["step"] / 2) * S + t["step"] * np.outer(t["keys"], t["values"]),
    "lms": lambda S, t: delta(S, t["keys"], t["values"], t["step"]),
    "longhorn": longhorn,
    "delta": lambda S, t: delta(S, unit(t["keys"]), t["values"], t["step"]),
    "gated_delta": lambda S, t: delta(t["gate"] * S, unit(t["keys"]), t["values"], t["step"]),
    "gdn2": gdn2,
    "delta_product": delta_product,
    "ttt": ttt,
    "rwkv7": rwkv7,
}


def mesa(one):  # [T, 4, 3]
    moment, product, states = np.zeros((4, 4)), np.zeros((4, 3)), []
    for k, v, beta, g in zip(one["keys"], one["values"], one["step"], one["gate"], strict=True):
        moment = g * moment + beta * np.outer(k, k)
        product = g * product + beta * np.outer(k, v)
        states.append(np.linalg.solve(moment + PENALTY * np.eye(4), product))
    return np.stack(states)


def states(kind, one):  # [T, 4, 3]
    if kind == "mesa":
        return mesa(one)
    state, every = np.zeros((4, 3)), []
    for place in range(len(one["keys"])):
        state = LOOPS[kind](state, {name: rows[place] for name, rows in one.items()})
        every.append(state)
    return np.stack(every)


# Prompts: x ~ N(0, I), y = w·x + ε, E |w|² = 1, ε of variance NOISE; where the task drifts,
# w ← RHO w + √((1 - RHO²)/d) z after every demonstration, and the risk is that of the next task.
D, DEMONSTRATIONS, NOISE, RHO = 4, 32, 0.25, 0.9
ADDITIVE, GATED = drift.additive(D, NOISE, RHO), drift.gated_delta(D, NOISE, RHO)
STEP = 0.3
FALLING = learning_curves.implicit(DEMONSTRATIONS, D, NOISE)
# Not y/|x|: at d = 4 the squared error of such a layer has no variance.
UNIT = dict(keys="unit", step=STEP, scale=1 / drift.mean_length(D))
DRIFTING = dict(drift=True, keys="unit", scale=float(GATED.scale), step=float(GATED.step))
WEIGHED = dict(drift=True, scale=float(ADDITIVE.scale), gate=float(ADDITIVE.gate))


def delta_risk(count, step):
    curve = learning_curves.gated_delta(count, D, NOISE, step, 1.0, scale=UNIT["scale"])
    return curve[-1]


# layer: its inputs, and its closed risk. `scale` c makes the values cy, keys are x or x/|x|.
SETTINGS = {
    "additive": (
        dict(scale=1 / (DEMONSTRATIONS + D + 1 + D * NOISE)),
        learning_curves.additive(DEMONSTRATIONS, D, NOISE)[-1],
    ),
    "retention": (WEIGHED, ADDITIVE.risk),
    "gla": (WEIGHED, ADDITIVE.risk),
    "ssd": (WEIGHED | dict(step=float(-2 * np.log(ADDITIVE.gate))), ADDITIVE.risk),
    "lms": (dict(step=0.1), learning_curves.lms(DEMONSTRATIONS, D, NOISE, 0.1)[-1]),
    "longhorn": (dict(step=FALLING[:-1] / (D * NOISE)), FALLING[-1]),
    "delta": (UNIT, delta_risk(DEMONSTRATIONS, STEP)),
    "gated_delta": (DRIFTING | dict(gate=RHO), GATED.risk),
    "gdn2": (DRIFTING | dict(gate=RHO), GATED.risk),
    "delta_product": (
        UNIT | dict(pairs=True),  # two demonstrations a token
        delta_risk(2 * DEMONSTRATIONS, STEP),
    ),
    "ttt": (UNIT, delta_risk(DEMONSTRATIONS, 1 - (1 - STEP) ** 2)),
    "rwkv7": (UNIT, delta_risk(DEMONSTRATIONS, STEP)),  # erases with it
    "mesa": (dict(), learning_curves.ridge(DEMONSTRATIONS, D, NOISE, PENALTY)[-1]),
}  # fmt: skip


def draw_prompt(rng, kind):
    """Return what a layer is handed for one prompt, and the three tasks [4, 3] after its end."""
    setting, _ = SETTINGS[kind]
    count = DEMONSTRATIONS * (2 if setting.get("pairs") else 1)
    x, w = rng.normal(size=(count, D)), rng.normal(size=(D, 3)) / D**0.5
    y = NOISE**0.5 * rng.normal(size=(count, 3))
    for t in range(count):
        y[t] += x[t] @ w
        if setting.get("drift"):
            w = RHO * w + ((1 - RHO**2) / D) ** 0.5 * rng.normal(size=(D, 3))
    if setting.get("keys") == "unit":
        x = x / np.linalg.norm(x, axis=1, keepdims=True)
    rows = {"keys": x, "values": setting.get("scale", 1.0) * y}
    step, gate = (np.broadcast_to(setting.get(name, 1.0), count) for name in ("step", "gate"))
    if kind == "ssd":  # it writes step times v
        rows["values"] = rows["values"] / step[:, None]
    rows |= {"step": step, "gate": gate, "retention": gate}
    rows |= {"gates": np.repeat(gate[:, None], D, 1), "erase": np.repeat(step[:, None], D, 1)}
    rows |= {"write": np.repeat(step[:, None], 3, 1)}
    if setting.get("pairs"):
        names = {"keys": "more_keys", "values": "more_values", "step": "more_step"}
        rows |= {names[name]: rows[name][1::2] for name in names}
        rows |= {name: rows[name][::2] for name in names}
    return rows, w


def simulate_risks(kind, prompts, seed):  # -> [N]
    """Return the mean squared error |S - w|² of the loops over the three tasks of each prompt."""
    rng = np.random.default_rng([seed, list(SETTINGS).index(kind)])
    errors = []
    for _ in range(prompts):
        rows, w = draw_prompt(rng, kind)
        errors.append(np.sum((states(kind, rows)[-1] - w) ** 2) / 3)
    return np.array(errors)


def tables():
    table = {}
    for count in LENGTHS:
        one = inputs(count)
        table |= {f"{count}/{name}": rows for name, rows in one.items()}
        for kind in (*LOOPS, "mesa"):
            every = states(kind, one)
            table[f"{count}/{kind}"] = np.einsum("tk,tkv->tv", one["queries"], every)
            table[f"{count}/{kind}/state"] = every[-1]
    return table | {f"risk/{kind}": np.asarray(risk) for kind, (_, risk) in SETTINGS.items()}


if __name__ == "__main__":
    spreads = {f"risk/{kind}/spread": simulate_risks(kind, 20_000, 1).std() for kind in SETTINGS}
    np.savez_compressed(FILE, **tables(), **spreads)
