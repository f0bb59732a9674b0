"""A checkpoint comes back as it was or not at all, and belongs to one call of fit."""

import functools
import json
import os
import pickle
import signal

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_fit import KEYS, OPTIMIZERS, STARTS, descend, draw, hash_run, quartic

from lsa_lab.training import Files, checkpoints, loop

FACTS = {"identity": "a", "steps": 3}
TREE = {
    "count": np.array(7),
    "flags": np.array([True, False]),
    "nested": (np.arange(6.0).reshape(2, 3), {"low": np.asarray(jnp.ones(3, jnp.bfloat16))}),
    "empty": np.zeros((0, 2), np.float32),
}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "a new folder ü" / "fit.ckpt"
    checkpoints.save(file, TREE, FACTS)
    return file


def test_a_checkpoint_comes_back_bit_for_bit(path):
    loaded = checkpoints.load(path, TREE, FACTS)
    assert checkpoints.hash_arrays(loaded) == checkpoints.hash_arrays(TREE)
    assert loaded["nested"][1]["low"].dtype == jnp.bfloat16
    assert loaded["count"].shape == ()


@pytest.mark.parametrize(
    ("tree", "facts", "message"),
    [
        ({}, {"steps": 4}, "has steps = 3, and this call has 4"),
        ({}, {"width": 2}, "has width = nothing, and this call has 2"),
        ({"flags": np.array([True])}, {}, r"bool \[2\], and this call has bool \[1\]"),
        ({"flags": np.zeros(2, np.int8)}, {}, r"bool \[2\], and this call has int8 \[2\]"),
        ({"flags": {}}, {}, r"bool \[2\], and this call has nothing"),
    ],
)
def test_another_fact_or_array_is_refused_by_name(path, tree, facts, message):
    with pytest.raises(ValueError, match=message):
        checkpoints.load(path, TREE | tree, FACTS | facts)


class Payload:
    """An object whose unpickling makes a folder."""

    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def test_a_damaged_or_foreign_file_is_refused_and_nothing_is_unpickled(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    np.savez(path.with_suffix(".npz"), x=np.array([Payload()], object))
    pickled = path.with_suffix(".npz").read_bytes()
    for content in (b"", whole[:-30], bytes(flipped), pickle.dumps(Payload()), pickled):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged"):
            checkpoints.load(path, TREE, FACTS)
    assert not (path.parent / "unpickled").exists()


def test_the_hash_knows_names_shapes_and_types_and_no_byte_order():
    ones = np.ones(4)
    arrays = ones, np.zeros(4), np.ones((2, 2)), ones.astype("f4")
    trees = [{"b": ones}, *({"a": array} for array in arrays)]
    assert len({checkpoints.hash_arrays(tree) for tree in trees}) == len(trees)
    assert checkpoints.hash_arrays({"b": ones.astype(">f8")}) == checkpoints.hash_arrays(trees[0])


class Bar:
    """A progress bar that presses Ctrl-C at a step."""

    def __init__(self, step):
        self.step, self.steps = step, []

    def add_task(self, *_, **__):
        return 0

    def update(self, _, completed, **__):
        self.steps.append(completed)
        if completed == self.step:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A checkpoint and a log; Ctrl-C as in a terminal, for a script's background ignores it."""
    monkeypatch.setattr(loop, "_SAVE_EVERY", 0.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield Files(tmp_path / "fit.ckpt", tmp_path / "log.jsonl")
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", ["Adam", "line search", "noise of a key of another kind"])
def test_an_interrupted_training_resumes_to_the_same_bits(files, name):
    train, bar = functools.partial(descend, chunk=10, optimizer=OPTIMIZERS[name]), Bar(0)
    with pytest.raises(KeyboardInterrupt):
        train(progress=Bar(20), files=files)
    run = train(progress=bar, files=files)
    assert bar.steps == [30, 37]
    assert hash_run(run) == hash_run(train())
    lines = [json.loads(line) for line in files.log.read_text().splitlines()]
    assert [line["step"] for line in lines] == [10, 20, 30, 37]
    assert lines[0]["loss"] == pytest.approx(run.history["loss"][:10].mean())


def test_many_watched_runs_resume_to_the_same_bits_and_a_finished_training_returns(files):
    arguments = dict(params=STARTS, key=KEYS, chunk=10, watch=lambda params: params["w"])
    with pytest.raises(KeyboardInterrupt):
        descend(files=files, progress=Bar(5 * 20), **arguments)
    runs = [descend(files=files, **arguments) for _ in range(2)]
    assert {hash_run(run) for run in runs} == {hash_run(descend(**arguments))}
    assert len(files.log.read_text().splitlines()) == 4


def table_loss(entry):
    """Return a loss with a long constant and a product of matrices."""
    table = jnp.arange(2000.0).at[1000].set(entry)
    return lambda p, batch: quartic(p, batch) + jnp.cumsum(table * (p["w"] @ p["w"]))[-1]


OTHERS = [
    ({"steps": 38}, "steps = 37, and this call has 38"),
    ({"key": KEYS[1]}, "keys = "),
    ({"params": {"w": STARTS["w"][1]}}, "initial params = "),
    ({"optimizer": optax.sgd(0.02)}, "program = "),
    ({"loss": table_loss(8)}, "program = "),
    ({"sample": lambda key: 2 * draw(key)}, "program = "),
]


def test_a_checkpoint_of_another_fit_or_other_arithmetic_is_refused_by_name(files, monkeypatch):
    train = functools.partial(descend, loss=table_loss(7), files=files)
    train()
    train(loss=table_loss(7))  # functions that were written anew
    for change, message in OTHERS:
        with pytest.raises(ValueError, match=f"has {message}"):
            train(**change)
    with jax.default_matmul_precision("bfloat16"), pytest.raises(ValueError, match="has program "):
        train()
    flags = os.environ["XLA_FLAGS"]
    monkeypatch.setenv("XLA_FLAGS", f"{flags} --xla_force_host_platform_device_count=7")
    train()  # changes no bit
    monkeypatch.setenv("XLA_FLAGS", f"{flags} --xla_cpu_enable_fast_math=true")
    with pytest.raises(ValueError, match=r"XLA_FLAGS = .*fast_math=true"):
        train()
