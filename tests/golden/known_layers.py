"""Write known answers for kernels of linear recurrences, layers.npz, in float64 at T = 9 and 97.

    python tests/golden/known_layers.py    writes the file again

`np.load("layers.npz")["97/keys"]` is an input, `"97/delta"` [T, 3] what the layer delta reads, and
`"97/delta/state"` [4, 3] its last state. One head; queries are not divided; the first state is 0:

    queries, keys [T, 4], values [T, 3]    |k| ≤ 1; of every seven tokens one has the key 0, and two
                                           the key of the token before
    step [T]                               β in (0, 2], of which every fifth is 2
    gate [T], gates [T, 4]                 of every four one is 1 and one 1e-4
    erase [T, 4]                           in (0, 1)
    more_keys [T, 4], more_values [T, 3], more_step [T]    of delta_product's second move

`LOOPS` has each layer's move of a state S [4, 3] in one line; k̂ is k/|k|, and 0 where k is 0. mesa
has the penalty .3, which gates leave alone, retention the gate .96, ssd exp(-step/2); ttt makes two
steps on a token.
"""

from pathlib import Path

import numpy as np

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
    one["erase"] = rng.uniform(0.05, 0.95, (count, 4))
    one |= dict(more_keys=keys(), more_values=rng.normal(size=(count, 3)))
    return one | dict(more_step=rng.uniform(0.1, 1.9, count))


def unit(key):
    length = np.linalg.norm(key)
    return key / length if length else key


def delta(S, k, v, step):
    return S + step * np.outer(k, v - k @ S)


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
    "retention": lambda S, t: RETENTION * S + np.outer(t["keys"], t["values"]),
    "gla": lambda S, t: t["gates"][:, None] * S + np.outer(t["keys"], t["values"]),
    "ssd": lambda S, t: np.exp(-t["step"] / 2) * S + t["step"] * np.outer(t["keys"], t["values"]),
    "lms": lambda S, t: delta(S, t["keys"], t["values"], t["step"]),
    "longhorn": longhorn,
    "delta": lambda S, t: delta(S, unit(t["keys"]), t["values"], t["step"]),
    "gated_delta": lambda S, t: delta(t["gate"] * S, unit(t["keys"]), t["values"], t["step"]),
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


def tables():
    table = {}
    for count in LENGTHS:
        one = inputs(count)
        table |= {f"{count}/{name}": rows for name, rows in one.items()}
        for kind in (*LOOPS, "mesa"):
            every = states(kind, one)
            table[f"{count}/{kind}"] = np.einsum("tk,tkv->tv", one["queries"], every)
            table[f"{count}/{kind}/state"] = every[-1]
    return table


if __name__ == "__main__":
    np.savez_compressed(FILE, **tables())
