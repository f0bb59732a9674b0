"""``train``: the one training of all models here, and the program that writes weights.

``python -m experiments.models.train [NAME...]`` trains the named models of the laptop tier, all
if none is named, on as many cores as there are; it can be killed and resumed. It writes
``experiments/weights``: the weights, the log, and where they come from. With ``--tier paper`` it
trains those of the paper, which are too large to be committed, and writes the same into the cache,
in a folder for this code: copied to another machine's, they are read there.
"""

import argparse
import functools
import hashlib
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax

import lsa_lab
import lsa_lab.training
from experiments.models.model import Model, gates_of, init
from experiments.models.named import MODELS
from experiments.models.runs import collect, read, write
from experiments.models.specs import Recipe, Spec
from experiments.models.tasks import training_batch
from lsa_lab.files import cache_folder
from lsa_lab.harness.run import process
from lsa_lab.harness.run.checks import nearest
from lsa_lab.store import provenance, results
from lsa_lab.training import Files, Run, fit

WEIGHTS = Path(__file__).resolve().parents[1] / "weights"
TIERS = ("laptop", "paper")  # whose weights this program writes
# The parts of a training after which checkpoints are committed too.
ON_THE_WAY = dict.fromkeys(("depth 3", "depth 5", "long training"), (1, 2, 3, 4, 5))
ON_THE_WAY["transformer"] = (1,)  # the size of all would be that of everything else


def train(
    spec: Spec, label: str, *, key=None, noise_std=None, files: Files | None = None, progress=None
) -> Run:
    """The A S runs of a Spec in float32: least squared errors against targets without noise.

    ``key`` stands in for that of the training's seed; ``noise_std``, a number for each seed, for
    the task's, where there are no variants. The params are kept at every checkpoint.
    """
    training, per_run = spec.training, _run_leaves(spec, noise_std)
    count = len(jax.tree.leaves(per_run)[0])
    key_init, key_data = _keys(training, key)

    def loss(params, batch, own):
        return Model(spec, params, own.get("gates")).errors(batch).mean()

    def sample(key, own):
        return training_batch(key, spec.task, training.batch, own.get("noise_std"))

    parts, keep = training.checkpoints, lambda params: params
    return fit(
        lsa_lab.training.Training(loss, sample, _optimizer(training), training.steps, label=label),
        _drawn(spec, jax.random.split(key_init, count)),
        jax.random.split(key_data, count),
        per_run=per_run,
        files=files,
        progress=progress,
        **{"watch": keep, "chunk": training.steps // parts} if parts else {},
    )


def initial(spec: Spec) -> Any:  # leaves [S, ...]
    """The params of the last variant before its first step, heads that it lacks among them."""
    training = spec.training
    count = len(spec.architecture.rows) * training.seeds
    keys = jax.random.split(_keys(training)[0], count)[-training.seeds :]
    return jax.tree.map(np.asarray, _drawn(spec, keys))


def _keys(training: Recipe, key=None):  # the parents of those that draw params, and prompts
    return jax.random.split(jax.random.key(training.seed) if key is None else key)


def _drawn(spec: Spec, keys) -> Any:  # [R] -> leaves [R, ...]
    return jax.jit(jax.vmap(partial(init, spec)))(keys)


def _run_leaves(spec: Spec, noise_std) -> dict[str, np.ndarray]:  # [R, ...]
    """The gates, or without variants the noise: arguments of the program, as whose constants they
    would lead to other last bits."""
    gates, seeds = gates_of(spec.architecture), spec.training.seeds
    if gates is not None:
        if noise_std is not None:
            raise ValueError("noise_std differs from seed to seed only where there are no variants")
        return {"gates": np.repeat(gates, seeds, axis=0).astype(np.float32)}
    noise_std = spec.task.noise_std if noise_std is None else noise_std
    return {"noise_std": np.full(seeds, noise_std, np.float32)}


def _optimizer(training: Recipe):
    """Adam with a linear rise and a cosine fall of the step size, and gradients cut short."""
    rate, steps = training.learning_rate, training.steps
    schedule = optax.warmup_cosine_decay_schedule(
        0.0, rate, steps // training.rise, steps, rate / training.fall
    )
    adam = optax.adam(schedule, b2=training.beta_2)
    chain = optax.chain(optax.clip_by_global_norm(training.clip), adam)
    return lambda own: chain


def cached(spec: Spec, log: Path | None = None) -> Files:
    """Where the training of a Spec is kept, finished or not: by this code, on this kind of device,
    by these versions of jax. Another one trains for itself."""
    rests_on = {"code": _code()} | provenance.arithmetic()
    identity = " ".join(json.dumps(x, sort_keys=True) for x in (results.plain(spec), rests_on))
    name = hashlib.sha256(identity.encode()).hexdigest()[:16]
    checkpoint = cache_folder() / "trained" / f"{name}.ckpt"
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    return Files(checkpoint, log, identity)


@functools.cache
def _code() -> str:
    """A digest of the code that draws, runs and trains: weights of other code are not ours."""
    library, here = Path(lsa_lab.__file__).parent, Path(__file__).parent
    of_fit = ("recipe", "loop", "plan", "runs", "host_runs", "mesh_runs", "snapshots")
    files = [library / "prompts.py"]
    files += [library / "training" / f"{name}.py" for name in of_fit]
    files += [here / name for name in ("model.py", "tasks.py", "train.py")]
    files += [*sorted(library.glob("tasks/*.py")), *sorted(library.glob("models/*.py"))]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


def folder_of(tier: str) -> Path:
    """Where the weights of a tier lie: committed, or in the cache, apart for each code."""
    return WEIGHTS if tier == "laptop" else cache_folder() / "weights" / tier / _code()


def file_of(name: str, tier: str = "laptop") -> Path:
    return folder_of(tier) / f"{name.replace(' ', '_')}.npz"


def main(words: list[str]) -> int:
    """Train the models of these names, all if there is none, and write them down."""
    parser = argparse.ArgumentParser(prog="python -m experiments.models.train")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--tier", choices=TIERS, default="laptop")
    parsed = parser.parse_args(words)
    names, models, folder = parsed.names, MODELS[parsed.tier], folder_of(parsed.tier)
    for name in names:
        if name not in models:
            best, listed = nearest(name, list(models)), ", ".join(models)
            text = f"error: no model {name!r}: nearest {best!r}; there are {listed}"
            print(text, file=sys.stderr)
            return 2
    process.configure()
    folder.mkdir(parents=True, exist_ok=True)
    origin = provenance.facts()  # of the code that is loaded
    for name in names or models:
        spec, start = models[name], time.monotonic()
        run = train(spec, name, files=cached(spec, folder / "log.jsonl"))
        write(file_of(name, parsed.tier), collect(spec, run), parts=ON_THE_WAY.get(name, ()))
        written = read(file_of(name, parsed.tier), spec)
        facts = {"name": name, "spec": results.plain(spec), "digest": written.digest}
        facts |= {"seconds": round(time.monotonic() - start, 1)} | origin
        with (folder / "provenance.jsonl").open("a") as out:
            out.write(json.dumps(facts, sort_keys=True) + "\n")
        print(name, f"{facts['seconds']} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
