"""Trained models of sparse regression: from committed weights, or trained here and now.

``python -m experiments.parts.sparse_training`` trains every family of the laptop tier, on as many
cores as there are, can be killed and taken up again, and writes ``experiments/weights``: the
weights, the log, and where they come from.
"""

import hashlib
import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.models.sparse_models import draw, errors, init, masks
from experiments.models.specs import FAMILIES, LOOKED_AT, Family
from lsa_lab import provenance
from lsa_lab.harness import process
from lsa_lab.prompts import Prompt
from lsa_lab.tasks import curricula
from lsa_lab.training import Files, Run, Training, fit

WEIGHTS = Path(__file__).resolve().parents[1] / "weights"
_BLOCKS = 60  # of a training: the median loss of each is kept


@dataclass(frozen=True)
class Trained:
    """A architectures, S seeds; heads that an architecture has not are zero.

    Only the last architecture is looked at on the way, and of committed weights only those of the
    families in LOOKED_AT: ``looks`` is None for the others.
    """

    family: Family
    params: Any  # leaves [A, S, ...], float64
    looks: Any  # leaves [S, looks, ...], after each equal part of the training
    loss: np.ndarray  # [A, S, blocks]  medians over the batches of a block
    taken: np.ndarray  # [A, S]  steps before it diverged, all of them if it did not

    @property
    def finished(self) -> np.ndarray:  # [A, S] bool
        """Which trainings did not diverge."""
        return self.taken == self.family.steps


def trained(tier: str, name: str, retrain: bool = False, progress=None) -> Trained:
    """A family of a tier: its committed weights, or if there are none, or none wanted, new ones."""
    family = FAMILIES[tier][name]
    file = _file(name)
    if tier != "laptop" or retrain or not file.exists():
        return _collect(family, train(family, f"sparse models: {name}", progress))
    with np.load(file) as kept:
        if str(kept["family"]) != repr(family):
            raise ValueError(
                f"{file.name} holds weights of {kept['family']}, not of {family!r}: train again "
                "with retrain=True, or renew them with python -m experiments.parts.sparse_training"
            )
        return _unpack(family, kept)


def train(family: Family, label: str, progress=None, log=None) -> Run:
    """Runs [A S] in float32: Adam on fresh prompts, warm-up then cosine, gradients cut short."""
    gates, steps, rate = masks(family), family.steps, family.learning_rate
    each = np.repeat(gates, family.seeds, axis=0).astype(np.float32)
    schedule = optax.warmup_cosine_decay_schedule(0.0, rate, steps // 20, steps, rate / 100)
    adam = optax.chain(optax.clip_by_global_norm(family.clip), optax.adam(schedule, b2=0.99))
    key_init, key_data = jax.random.split(jax.random.key(family.seed))
    count = len(each)
    identity = repr(family)
    name = hashlib.sha256(identity.encode()).hexdigest()[:16]
    checkpoint = process.cache() / "trained" / f"{name}.ckpt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    training = Training(
        loss=lambda params, batch, mask: errors(family, params, batch, mask).mean(),
        sample=lambda key, _: _batch(family, key),
        optimizer=lambda _: adam,
        steps=steps,
        label=label,
    )
    return fit(
        training,
        jax.jit(jax.vmap(partial(init, family)))(jax.random.split(key_init, count)),
        jax.random.split(key_data, count),
        per_run=each,
        watch=lambda params: params,
        files=Files(checkpoint, log, identity),
        chunk=steps // family.looks,
        progress=progress,
    )


def _batch(family: Family, key) -> Prompt:
    """Prompts of the family's lengths: a short one is a long one that repeats itself."""
    key_prompts, key_lengths = jax.random.split(key)
    batch = draw(family, key_prompts, max(family.lengths), family.batch, jnp.float32)
    lengths = jax.random.choice(key_lengths, jnp.asarray(family.lengths), (family.batch,))
    return jax.vmap(curricula.repeated)(batch, lengths)


def _collect(family: Family, run: Run) -> Trained:
    """[A S] as [A, S], in float64, and what the last architecture was on the way."""
    grid = (len(family.architectures), family.seeds)

    def split(leaf):
        return np.asarray(leaf, float).reshape(*grid, *np.shape(leaf)[1:])

    blocks = np.array_split(split(run.history["loss"]), min(_BLOCKS, family.steps), axis=-1)
    loss = np.stack([np.median(block, axis=-1) for block in blocks], axis=-1)
    looks = jax.tree.map(lambda leaf: split(leaf)[-1, :, 1:], run.history["watch"])
    taken = np.array([status.step for status in run.status]).reshape(grid)
    gates = masks(family)[:, None, :, :, None, None]
    params = jax.tree.map(lambda leaf: split(leaf) * gates, run.params)
    return Trained(family, params, looks, loss, taken)


def _file(name: str) -> Path:
    return WEIGHTS / f"{name.replace(' ', '_')}.npz"


def _kind(family: Family):
    like = jax.eval_shape(partial(init, family), jax.random.key(0))
    return jax.tree.structure(like)


def _pack(made: Trained, looks: bool) -> dict[str, np.ndarray]:
    arrays = {"family": np.array(repr(made.family)), "loss": made.loss.astype(np.float32)}
    arrays["taken"] = made.taken
    for what in ("params", "looks") if looks else ("params",):
        leaves = jax.tree.leaves(getattr(made, what))
        arrays |= {f"{what}.{i}": leaf.astype(np.float32) for i, leaf in enumerate(leaves)}
    return arrays


def _unpack(family: Family, kept) -> Trained:
    kind = _kind(family)

    def tree(what):
        leaves = [kept[f"{what}.{i}"].astype(float) for i in range(kind.num_leaves)]
        return jax.tree.unflatten(kind, leaves)

    looks = tree("looks") if "looks.0" in kept else None
    return Trained(family, tree("params"), looks, kept["loss"].astype(float), kept["taken"])


def main(names: list[str]) -> None:
    """Train the families named, all if none is, and write them down."""
    process.configure()
    WEIGHTS.mkdir(exist_ok=True)
    origin = provenance.facts()  # of the code that is loaded
    for name in names or FAMILIES["laptop"]:
        family, start, file = FAMILIES["laptop"][name], time.monotonic(), _file(name)
        run = train(family, name, log=WEIGHTS / "log.jsonl")
        np.savez_compressed(file, **_pack(_collect(family, run), name in LOOKED_AT))
        facts = {"family": repr(family), "seconds": round(time.monotonic() - start, 1)} | origin
        with (WEIGHTS / "provenance.jsonl").open("a") as out:
            out.write(json.dumps(facts, sort_keys=True) + "\n")
        print(name, f"{facts['seconds']} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
