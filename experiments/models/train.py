"""Training of Specs: by an experiment that names them, or by this program for the committed ones.

``python -m experiments.models.train [NAME...]`` trains named models, all if none is named, and
writes ``experiments/weights``; it can be killed and resumed.
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

import lsa_lab.training
from experiments.models import runs
from experiments.models.model import Model, head_gates, init
from experiments.models.named import MODELS
from experiments.models.runs import Runs
from experiments.models.specs import Spec, plain
from experiments.models.tasks import training_batch
from experiments.training import build_adam
from lsa_lab.files import cache_folder, lock_file
from lsa_lab.lab import settings
from lsa_lab.lab.catalogue import UsageError, check_known
from lsa_lab.lab.progress import format_seconds
from lsa_lab.lab.sources import digest_files
from lsa_lab.provenance import collect_facts
from lsa_lab.training import Files, Run, fit
from lsa_lab.training.status import refuse_divergence

WEIGHTS = Path(__file__).resolve().parents[1] / "weights"
# The parts of a training after which checkpoints are committed too.
CHECKPOINTS = {"transformer": (1,)}


def load(spec: Spec, label: str, progress=None) -> Runs:
    """Return the runs of a Spec: committed for a named model, else cached, else trained now."""
    for name, named in MODELS.items():
        if spec == named and weights_file(name).exists():
            return runs.read(weights_file(name), spec)
    file = cache_folder() / "models" / f"{_identity(spec)}.safetensors"
    if file.exists():
        return runs.read(file, spec)
    with lock_file(file, wait=True):  # another experiment may be training the same
        if file.exists():
            return runs.read(file, spec)
        return _train_and_save(spec, label, file, progress=progress)


def _train_and_save(spec: Spec, label: str, file: Path, *, parts=None, progress=None) -> Runs:
    checkpoint, start = cache_folder() / "models" / f"{_identity(spec)}.ckpt", time.monotonic()
    if not checkpoint.exists():
        print(f"  {label}: {describe_training(spec)}", file=sys.stderr, flush=True)
    facts = {name: str(value) for name, value in collect_facts(Path(__file__).parent).items()}
    run = train(spec, label, files=Files(checkpoint), progress=progress)
    refuse_divergence(run.status, label, checkpoint)
    facts |= {"seconds": f"{time.monotonic() - start:.1f}"}
    collected = runs.collect(spec, run, facts)
    saved = runs.save(file, collected, parts=collected.parts if parts is None else parts)
    checkpoint.unlink(missing_ok=True)
    return saved


def describe_training(spec: Spec) -> str:
    """Return what is about to be trained, and how long that takes, from a committed training."""
    count = len(spec.architecture.rows) * spec.training.seeds
    text = f"training {count} runs of {spec.training.steps} steps"
    alike = [
        (name, other)
        for name, other in MODELS.items()
        if other.architecture.kernel == spec.architecture.kernel and weights_file(name).exists()
    ]
    if not alike:
        return text
    name, nearest = min(alike, key=lambda pair: abs(np.log(_work(pair[1]) / _work(spec))))
    facts = runs.read(weights_file(name), nearest).facts
    seconds = float(facts["seconds"]) * _work(spec) / _work(nearest)
    return f"{text}, about {format_seconds(max(seconds, 5.0))}"


def _work(spec: Spec) -> float:
    shape, recipe = spec.architecture, spec.training
    width = shape.width or spec.token_width
    tokens = 1 if shape.merged else max(spec.task.lengths)
    per_token = shape.heads * (shape.key_width or width) + (shape.mlp_width or 0)
    work = recipe.steps * recipe.batch * len(shape.rows) * recipe.seeds * shape.depth
    return float(work * tokens * width * per_token)


def train(spec: Spec, label: str, *, files: Files | None = None, progress=None) -> Run:
    """Train the A S runs of a Spec in float32 on squared errors against targets without noise."""
    training, gates = spec.training, head_gates(spec.architecture)
    count = len(spec.architecture.rows) * training.seeds
    key_init, key_data = jax.random.split(jax.random.key(training.seed))
    if gates is not None:
        gates = np.repeat(gates, training.seeds, axis=0).astype(np.float32)

    def loss(params, batch, *gates):
        return Model(spec, params, *gates).errors(batch).mean()

    def sample(key, *gates):
        return training_batch(key, spec.task, training.batch)

    rate, parts = training.learning_rate, training.checkpoints
    decay = dict(end=rate / 100, clip=training.clip, b2=training.beta_2)
    optimizer = build_adam(rate, training.steps, **decay)
    optimize = optimizer if gates is None else lambda gates: optimizer
    recipe = lsa_lab.training.Training(loss, sample, optimize, training.steps, label=label)
    start = _draw_params(spec, jax.random.split(key_init, count))
    keys, watch = jax.random.split(key_data, count), {}
    if parts:
        watch = {"watch": lambda params: params, "chunk": training.steps // parts}
    return fit(recipe, start, keys, per_run=gates, files=files, progress=progress, **watch)


def initial(spec: Spec) -> Any:  # leaves [S, ...]
    """Return the params of the last variant before its first step, gated heads included."""
    training = spec.training
    count = len(spec.architecture.rows) * training.seeds
    key, _ = jax.random.split(jax.random.key(training.seed))
    keys = jax.random.split(key, count)[-training.seeds :]
    return jax.tree.map(np.asarray, _draw_params(spec, keys))


def _draw_params(spec: Spec, keys) -> Any:  # [R] -> leaves [R, ...]
    return jax.jit(jax.vmap(partial(init, spec)))(keys)


def _identity(spec: Spec) -> str:
    """Return a name for the cache: weights of another Spec, code, device or version differ."""
    facts = [plain(spec), _code(), jax.devices()[0].device_kind, jax.__version__]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


@functools.cache
def _code() -> str:
    library, here = Path(lsa_lab.__file__).parent, Path(__file__).parent
    folders = [library / name for name in ("tasks", "models", "training")]
    files = [path for folder in folders for path in folder.glob("*.py")]
    files += [here / name for name in ("model.py", "tasks.py", "train.py")]
    return digest_files([library / "prompts.py", here.parent / "training.py", *files])


def weights_file(name: str) -> Path:
    return WEIGHTS / f"{name.replace(' ', '_')}.safetensors"


def main(words: list[str]) -> int:
    """Train the models of these names, all if there is none, and write their weights."""
    parser = argparse.ArgumentParser(prog="python -m experiments.models.train")
    parser.add_argument("names", nargs="*", metavar="NAME")
    names = parser.parse_args(words).names or list(MODELS)
    try:
        for name in names:
            check_known("model", name, MODELS)
    except UsageError as error:
        parser.error(str(error))
    settings.configure()
    for name in names:
        file = weights_file(name)
        saved = _train_and_save(MODELS[name], name, file, parts=CHECKPOINTS.get(name, ()))
        print(name, f"{saved.facts['seconds']} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
