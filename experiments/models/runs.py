"""What a training of a Spec leaves, in memory and on disk."""

import io
import json
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.models.model import Model, gates_of, init
from experiments.models.specs import Spec
from lsa_lab.files import write_file
from lsa_lab.store import checkpoints, provenance, results
from lsa_lab.training import Run
from lsa_lab.training.status import Status

_MOST_BESIDE = 1 << 22  # bytes of the Spec and of headers, beside the weights
_BLOCKS = 60  # of a training: the median loss of each is kept
# What zipfile and numpy raise where an archive is damaged: RuntimeError where it seems encrypted or
# packed by a method that they do not have.
_DAMAGED = (OSError, EOFError, ValueError, RuntimeError, struct.error, zipfile.BadZipFile)
_DAMAGED += (MemoryError, TypeError, SyntaxError, RecursionError, tokenize.TokenError)
_OF_HEADS = ("w_kq", "w_pv", "w_q", "w_k", "w_v", "w_o")


@dataclass(frozen=True)
class Runs:
    """The A S runs of a Spec, in float32.

    What was kept on the way is that of the last variant, after some of the training's equal parts.
    A file holds no ``initial`` (``trained`` draws it again), and says of a run only whether it
    diverged.
    """

    spec: Spec
    params: Any  # leaves [A, S, ...]; heads that a variant lacks are zero
    checkpoints: Any | None  # leaves [S, C, ...]
    loss: np.ndarray  # [A, S, blocks]  medians over the batches of a block
    taken: np.ndarray  # [A, S]  steps before a run diverged, all of them if it did not
    parts: tuple[int, ...] = ()  # C: the number of parts that lie before each checkpoint
    initial: Any | None = None  # leaves [S, ...], before the first step
    status: tuple[Status, ...] = ()  # [A S]

    @property
    def digest(self) -> str:
        """sha256 of all that a result can rest on: weights, those on the way, losses, and how far
        each run came."""
        groups = {"params": self.params, "checkpoints": self.checkpoints}
        loss = self.loss.astype(np.float32)
        return checkpoints.digest(groups | {"loss": loss, "taken": self.taken})

    @property
    def finished(self) -> np.ndarray:  # [A, S] bool
        """Which runs did not diverge."""
        return self.taken == self.spec.training.steps

    @property
    def path(self) -> Any:  # leaves [S, P, ...]
        """The params of the last variant before the first step, at every checkpoint, and after the
        last step."""
        pieces = [jax.tree.map(lambda leaf: leaf[:, None], self.initial)]
        if self.checkpoints is not None:
            pieces.append(self.checkpoints)
        if self.parts[-1:] != (self.spec.training.checkpoints,):
            pieces.append(jax.tree.map(lambda leaf: leaf[-1][:, None], self.params))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *pieces)

    @property
    def path_steps(self) -> np.ndarray:  # [P]
        """The steps that lie before each place of the path."""
        training = self.spec.training
        of_part = training.steps // max(training.checkpoints, 1)
        return np.unique([0, *(part * of_part for part in self.parts), training.steps])

    @property
    def every(self) -> Model:  # leaves [A, S, ...]
        gates = gates_of(self.spec.architecture)
        if gates is not None:
            gates = np.repeat(gates[:, None], self.spec.training.seeds, axis=1)
        return Model(self.spec, self.params, gates)

    def models(self, variant: int = -1, seeds=slice(None)) -> Model:  # leaves [S', ...]
        """Some seeds of a variant, by default all of the last one."""
        return jax.tree.map(lambda leaf: leaf[variant][seeds], self.every)


def collect(spec: Spec, run: Run) -> Runs:
    """The R = A S runs that ``training.train`` has made of a Spec."""
    grid = (len(spec.architecture.rows), spec.training.seeds)

    def split(leaf):
        return np.asarray(leaf).reshape(*grid, *np.shape(leaf)[1:])

    def part(which):  # of what was kept of the last row
        return jax.tree.map(lambda leaf: split(leaf)[-1, :, which], run.history.get("watch"))

    params, gates = jax.tree.map(split, run.params), gates_of(spec.architecture)
    if gates is not None:  # heads that a variant lacks are zero
        gates = gates.astype(np.float32)[:, None, :, :, None, None]
        heads = {name: getattr(params, name, None) for name in _OF_HEADS}
        params = params.replace(
            **{k: gates * leaf for k, leaf in heads.items() if leaf is not None}
        )
    blocks = min(_BLOCKS, spec.training.steps)
    losses = np.array_split(split(run.history["loss"]), blocks, axis=-1)
    way = {"initial": part(0), "checkpoints": part(slice(1, None))}
    way["parts"] = tuple(range(1, spec.training.checkpoints + 1))
    return Runs(
        spec,
        params,
        loss=np.stack([np.median(block, axis=-1) for block in losses], axis=-1),
        taken=np.array([status.step for status in run.status]).reshape(grid),
        status=run.status,
        **way,
    )


def write(file: Path, runs: Runs, *, parts: Sequence[int] = ()) -> None:
    """An npz file with the Spec in JSON, and the checkpoints after these parts of the training; a
    kill leaves the old file or the new one."""
    arrays = {"spec": np.array(json.dumps(results.plain(runs.spec)))}
    arrays |= {"loss": runs.loss.astype(np.float32), "taken": runs.taken}
    groups = {"params": runs.params}
    if parts:
        kept = [runs.parts.index(part) for part in parts]
        groups["checkpoints"] = jax.tree.map(lambda leaf: leaf[:, kept], runs.checkpoints)
        arrays["parts"] = np.array(parts)
    for group, tree in groups.items():
        leaves = jax.tree.leaves_with_path(tree)
        arrays |= {f"{group}{jax.tree_util.keystr(path)}": leaf for path, leaf in leaves}
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_file(file, content.getvalue())


def read(file: Path, spec: Spec) -> Runs:
    """The runs of ``spec`` in a file that ``write`` has left; any other file is refused."""
    _check_size(file, spec)
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        schema = arrays.pop("schema", np.array(0 if "family" in arrays else 1)).item()
        if schema == provenance.SCHEMA:
            saved = json.loads(str(arrays.pop("spec")))
    except (*_DAMAGED, KeyError, zlib.error) as error:
        raise ValueError(f"{file.name} is damaged: {error!r}") from None
    if schema != provenance.SCHEMA:  # 0 is that of lsa_lab 0.1.0, which had families for Specs
        raise provenance.another_schema(schema, file.name)
    changes = results.differences(saved, results.plain(spec))
    if changes:
        raise ValueError(f"{file.name} holds the weights of another Spec: {changes}")
    parts = _parts(spec, arrays)
    like, layout = _layout(spec, len(parts))
    for name in sorted(layout.keys() | arrays.keys()):
        array, expected = arrays.get(name), layout.get(name)
        if array is None or expected != (str(array.dtype), array.shape):
            ought = "not there" if expected is None else "{} {}".format(*expected)
            raise ValueError(f"{file.name} is damaged: {name} ought to be {ought}")
        if name[:4] in ("para", "chec") and not np.isfinite(array).all():
            raise ValueError(f"{file.name} is damaged: {name} is not finite")

    def tree(group):
        return jax.tree.unflatten(like, [arrays[name] for name in layout if group in name])

    checkpoints, taken = tree("checkpoints") if parts else None, arrays["taken"]
    status = tuple(
        Status("finished", int(step))
        if step == spec.training.steps
        else Status("diverged", int(step), "a leaf that its file does not name")
        for step in taken.ravel()
    )
    loss = arrays["loss"].astype(float)
    return Runs(spec, tree("params"), checkpoints, loss, taken, parts, status=status)


def _parts(spec: Spec, arrays: dict[str, np.ndarray]) -> tuple[int, ...]:
    """The parts after which a file has checkpoints: all of them, if it does not say which."""
    if not any(name.startswith("checkpoints") for name in arrays):
        return ()
    every = range(1, spec.training.checkpoints + 1)
    return tuple(part for part in arrays.pop("parts", np.array(every)).tolist() if part in every)


def _check_size(file: Path, spec: Spec) -> None:
    """Raise if a file would unpack to much more than the weights of the Spec need."""
    try:
        unpacked = sum(entry.file_size for entry in zipfile.ZipFile(file).infolist())
    except _DAMAGED as error:
        raise ValueError(f"{file.name} is damaged: {error!r}") from None
    _, layout = _layout(spec, spec.training.checkpoints)
    expected = sum(np.dtype(kind).itemsize * math.prod(shape) for kind, shape in layout.values())
    if unpacked > expected + _MOST_BESIDE:
        raise ValueError(
            f"{file.name} is damaged: it would unpack to {unpacked >> 20} MiB, and the weights of "
            f"this Spec take {expected >> 20} MiB"
        )


def _layout(spec: Spec, kept: int) -> tuple[Any, dict[str, tuple[str, tuple[int, ...]]]]:
    """The structure of params, and dtype and shape of the arrays of a file, with so many
    checkpoints, by name."""
    like = jax.eval_shape(partial(init, spec), jax.random.key(0))
    training, rows = spec.training, len(spec.architecture.rows)
    groups = {"params": (rows, training.seeds)}
    if kept:
        groups["checkpoints"] = (training.seeds, kept)
    layout = {
        f"{group}{jax.tree_util.keystr(path)}": ("float32", (*axes, *leaf.shape))
        for group, axes in groups.items()
        for path, leaf in jax.tree.leaves_with_path(like)
    }
    layout["loss"] = "float32", (*groups["params"], min(_BLOCKS, training.steps))
    layout["taken"] = "int64", groups["params"]
    return jax.tree.structure(like), layout
