"""The runs of a trained Spec, in memory and in a safetensors file."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.models import specs
from experiments.models.model import Model, head_gates, init
from experiments.models.specs import Spec
from lsa_lab.interop.weights import read_arrays, write_arrays
from lsa_lab.training import Run

_BLOCKS = 60  # of a training: the median loss of each is kept
_HEADS = ("w_kq", "w_pv", "w_q", "w_k", "w_v", "w_o")  # leaves [L, H, ...]


@dataclass(frozen=True)
class Runs:
    """The A S runs of a Spec, in float32. Checkpoints are those of the last variant."""

    spec: Spec
    params: Any  # leaves [A, S, ...]; heads that a variant lacks are zero
    loss: np.ndarray  # [A, S, blocks]  medians over the batches of a block
    steps_completed: np.ndarray  # [A, S]  fewer than all where a run diverged
    checkpoints: Any | None = None  # leaves [S, C, ...]
    parts: tuple[int, ...] = ()  # C: the number of equal parts before each checkpoint
    facts: Mapping[str, str] = field(default_factory=dict)  # commit, versions, seconds ...

    @cached_property
    def digest(self) -> str:
        total = hashlib.sha256()
        for name, array in sorted(self.arrays().items()):
            total.update(f"{name} {array.dtype.name} {array.shape} ".encode() + array.tobytes())
        return total.hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return what a result says of these weights: Spec, digest and origin."""
        return {"spec": specs.plain(self.spec), "digest": self.digest, **self.facts}

    @property
    def finished(self) -> np.ndarray:  # [A, S] bool
        """Return which runs did not diverge."""
        return self.steps_completed == self.spec.training.steps

    @cached_property
    def initial(self) -> Any:  # leaves [S, ...]
        """Return the params of the last variant before its first step, gated heads included."""
        from experiments.models.train import initial

        return initial(self.spec)

    @property
    def path(self) -> Any:  # leaves [S, P, ...]
        """Return the params of the last variant at ``path_steps``."""
        pieces = [jax.tree.map(lambda leaf: leaf[:, None], self.initial)]
        if self.checkpoints is not None:
            pieces.append(self.checkpoints)
        if self.parts[-1:] != (self.spec.training.checkpoints,):
            pieces.append(jax.tree.map(lambda leaf: leaf[-1][:, None], self.params))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=1), *pieces)

    @property
    def path_steps(self) -> np.ndarray:  # [P]
        """Return the steps before each place of the path: 0, each checkpoint, all."""
        training = self.spec.training
        length = training.steps // max(training.checkpoints, 1)
        return np.unique([0, *(part * length for part in self.parts), training.steps])

    def models(self, variant: int = -1, seeds=slice(None)) -> Model:  # leaves [S', ...]
        """Return some seeds of a variant, by default all of the last one."""
        gates = head_gates(self.spec.architecture)
        if gates is not None:
            gates = np.repeat(gates[:, None], self.spec.training.seeds, axis=1)
        every = Model(self.spec, self.params, gates)
        return jax.tree.map(lambda leaf: leaf[variant][seeds], every)

    def arrays(self) -> dict[str, np.ndarray]:
        trees = {"params": self.params, "checkpoints": self.checkpoints}
        arrays = {"loss": self.loss.astype(np.float32), "steps_completed": self.steps_completed}
        for group, tree in trees.items():
            for path, leaf in jax.tree.leaves_with_path(tree):
                arrays[group + jax.tree_util.keystr(path)] = np.ascontiguousarray(leaf)
        return arrays


def refuse_divergence(models: Mapping[str, Runs]) -> None:
    """Raise ArithmeticError if a training of a model diverged."""
    for name, runs in models.items():
        if not runs.finished.all():
            raise ArithmeticError(f"{int((~runs.finished).sum())} trainings {name} diverged")


def collect(spec: Spec, run: Run, facts: Mapping[str, str] | None = None) -> Runs:
    """Return the R = A S runs that ``train.train`` computed for a Spec."""
    grid = (len(spec.architecture.rows), spec.training.seeds)

    def split(leaf):
        return np.asarray(leaf).reshape(*grid, *np.shape(leaf)[1:])

    params, gates = jax.tree.map(split, run.params), head_gates(spec.architecture)
    if gates is not None:
        gates = gates.astype(np.float32)[:, None, :, :, None, None]
        heads = {name: getattr(params, name, None) for name in _HEADS}
        heads = {name: gates * leaf for name, leaf in heads.items() if leaf is not None}
        params = params.replace(**heads)
    blocks = np.array_split(split(run.history["loss"]), min(_BLOCKS, spec.training.steps), axis=-1)
    watched = run.history.get("watch")  # before the first step and after each part
    return Runs(
        spec,
        params,
        loss=np.stack([np.median(block, axis=-1) for block in blocks], axis=-1),
        steps_completed=np.array([status.step for status in run.status]).reshape(grid),
        checkpoints=jax.tree.map(lambda leaf: split(leaf)[-1, :, 1:], watched),
        parts=tuple(range(1, spec.training.checkpoints + 1)),
        facts=facts or {},
    )


def save(file: Path, runs: Runs, *, parts: Sequence[int] = ()) -> Runs:
    """Write a safetensors file with the checkpoints after these parts; return what it holds."""
    kept = [runs.parts.index(part) for part in parts]
    checkpoints = jax.tree.map(lambda leaf: leaf[:, kept], runs.checkpoints) if kept else None
    fields = {"parts": tuple(parts), "checkpoints": checkpoints, "facts": runs.facts}
    runs = Runs(runs.spec, runs.params, runs.loss, runs.steps_completed, **fields)
    facts = {"spec": json.dumps(specs.plain(runs.spec)), "parts": json.dumps(parts)}
    metadata = {**runs.facts, **facts, "digest": runs.digest}
    write_arrays(runs.arrays(), file, metadata)
    return runs


def read(file: Path, spec: Spec) -> Runs:
    """Return the runs of a file; raise ValueError if it is damaged or of another Spec."""
    try:
        arrays, facts = read_arrays(file)
        saved, parts, digest = (facts.pop(key) for key in ("spec", "parts", "digest"))
        saved, parts = json.loads(saved), tuple(json.loads(parts))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file.name} is damaged: {error!r}") from None
    if saved != specs.plain(spec):
        raise ValueError(f"{file.name} holds the weights of another Spec: {saved}")
    runs = _assemble(spec, arrays, parts, facts)
    if runs is None or runs.digest != digest:
        raise ValueError(f"{file.name} is damaged: its arrays are not those that were written")
    return runs


def _assemble(spec: Spec, arrays, parts: tuple[int, ...], facts) -> Runs | None:
    """Return the Runs of named arrays, None if one is missing."""
    like = jax.eval_shape(partial(init, spec), jax.random.key(0))

    def tree(group):
        def find(path, _):
            return arrays[group + jax.tree_util.keystr(path)]

        return jax.tree_util.tree_map_with_path(find, like)

    try:
        checkpoints = tree("checkpoints") if parts else None
        loss, steps = arrays["loss"].astype(float), arrays["steps_completed"]
        return Runs(spec, tree("params"), loss, steps, checkpoints, parts, facts)
    except KeyError:
        return None
