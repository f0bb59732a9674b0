"""Files that are made to do harm: run code, open others, fill the memory, or end in a raw error.

Each is right as far as a stranger can make it: checksums fit, archives open.
"""

import hashlib
import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

HUGE = 10**12
DEEP = "[" * 100_000 + "]" * 100_000


class Payload:
    """What an unpickler would do."""

    def __reduce__(self):
        return os.system, ("touch executed",)


def signed(body: bytes) -> bytes:
    """As ``results.save`` ends a file."""
    return body + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode()


def netcdf(fill: Callable[[h5py.File], object], attributes=None) -> Callable[[Path], None]:
    """A result with a right checksum, to which ``fill`` adds."""

    def make(path: Path) -> None:
        buffer = io.BytesIO()
        with h5py.File(buffer, "w") as file:
            facts = {"config": "{}", "contents_sha256": "0" * 64} if attributes is None else {}
            file.attrs.update(facts | (attributes or {}))
            fill(file)
        path.write_bytes(signed(buffer.getvalue()))

    return make


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("secrets/secret.h5", "x", (4,))
    file.create_virtual_dataset("x", layout)


def chunked(file: h5py.File) -> None:
    file.create_dataset("x", (2**27,), "u1", chunks=(2**24,), compression="gzip", data=None)
    file["x"][: 2**24] = 0


def copies(file: h5py.File) -> None:
    """Many references to one long text."""
    row = file.create_dataset("x", (20_000,), h5py.string_dtype())
    row[0] = "x" * 100_000


def groups(file: h5py.File) -> None:
    group = file
    for _ in range(500):
        group = group.create_group("a")
    group["loop"] = file


def attributes(file: h5py.File) -> None:
    for i in range(3000):
        file.attrs[f"a{i}"] = i


RESULTS = {
    "a pickle": lambda path: path.write_bytes(signed(pickle.dumps(Payload()))),
    "an external link": netcdf(
        lambda file: file.update({"x": h5py.ExternalLink("secrets/secret.h5", "x")})
    ),
    "external storage": netcdf(
        lambda file: file.create_dataset("x", (4,), "f8", external=[("secrets/secret", 0, 32)])
    ),
    "a virtual array": netcdf(virtual),
    "a packed bomb": netcdf(chunked),
    "an array that is nowhere": netcdf(lambda file: file.create_dataset("x", (HUGE,), "f8")),
    "copies of one text": netcdf(copies),
    "groups in groups": netcdf(groups),
    "thousands of attributes": netcdf(attributes),
    "a config too deep": netcdf(
        lambda file: None, {"config": DEEP[:30_000] + DEEP[-30_000:], "contents_sha256": ""}
    ),
    "a config that is none": netcdf(lambda file: None, {"config": "7", "contents_sha256": ""}),
}


def checkpoint(header: object, rest: bytes = b"", length: int | None = None):
    """A checkpoint with a right checksum."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length

    def make(path: Path) -> None:
        body = size.to_bytes(8, "little") + text + rest
        path.write_bytes(hashlib.sha256(body).digest() + body)

    return make


def layout(*entry) -> Callable[[Path], None]:
    return checkpoint({"facts": {}, "layout": {"['x']": entry}}, bytes(64))


CHECKPOINTS = {
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Payload())),
    "a header of objects": layout("object", [1]),
    "a shape beyond the file": layout("float64", [HUGE]),
    "a shape that overflows": layout("float64", [HUGE, HUGE]),
    "a negative shape": layout("float64", [-3]),
    "an expression for a type": layout("__import__('os').system('touch executed')", [1]),
    "a header too deep": checkpoint(DEEP.encode()),
    "a header longer than the file": checkpoint({}, length=2**63),
}


def npy(header: str, rest: bytes = bytes(64)) -> bytes:
    """An array with a header of a stranger's making."""
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + rest


def archive(**entries: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, content in entries.items():
                file.writestr(name, content)

    return make


def array(value) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, value, allow_pickle=True)
    return buffer.getvalue()


PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }"
WEIGHTS = {
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Payload())),
    "objects": archive(**{"spec.npy": array(np.array([Payload()], object))}),
    "a pickle in an archive": archive(**{"spec.npy": pickle.dumps(Payload())}),
    "a shape beyond the file": archive(**{"spec.npy": npy(PLAIN % f"({HUGE},)")}),
    "a shape that overflows": archive(**{"spec.npy": npy(PLAIN % f"({HUGE}, {HUGE})")}),
    "an expression for a shape": archive(
        **{"spec.npy": npy(PLAIN % "__import__('os').system('touch executed')")}
    ),
    "a header too deep": archive(**{"spec.npy": npy("(" * 9000)}),
    "a bomb": archive(**{"spec.npy": bytes(2**26)}),
    "a name above": archive(**{"../../spec.npy": array(np.array("{}"))}),
    "a Spec that is none": archive(**{"spec.npy": array(np.array("7"))}),
}

CONFIGS = {
    "too deep": lambda path: path.write_text(DEEP),
    "NaN": lambda path: path.write_text('{"tier": NaN}'),
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Payload())),
}


def safetensors(header: object, length: int | None = None, rest: int = 0) -> Callable[[Path], None]:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    return lambda path: path.write_bytes(struct.pack("<Q", size) + text + bytes(rest))


def tensor(shape: list, end: int) -> dict:
    return {"w_kq": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}


tensor_pv = {"w_pv": {"dtype": "F32", "shape": [1, 1, 2, 2], "data_offsets": [16, 32]}}
SAFETENSORS = {
    "a pickle": lambda path: path.write_bytes(pickle.dumps(Payload())),
    "a header longer than the file": safetensors({}, 2**62),
    "a shape beyond the file": safetensors(tensor([HUGE], 4 * HUGE)),
    "a shape that overflows": safetensors(tensor([HUGE, HUGE], 64)),
    "a header too deep": safetensors(DEEP.encode()),
    "a config that is none": safetensors(
        {"__metadata__": {"lsa_lab.config": "[]"}, **tensor([1, 1, 2, 2], 16), **tensor_pv}, rest=32
    ),
}


def decoder(config: str, index: str | None = None) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        path.mkdir()
        (path / "config.json").write_text(config)
        if index is not None:
            (path / "model.safetensors.index.json").write_text(index)

    return make


def shard(name: object, **fields) -> Callable[[Path], None]:
    gpt2 = {"model_type": "gpt2", "n_layer": 1, "n_head": 1, "n_embd": 4, "n_positions": 4}
    gpt2 |= {"activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "vocab_size": 4}
    return decoder(json.dumps(gpt2 | fields), json.dumps({"weight_map": {"x": name}}))


def endless(path: Path) -> None:
    shard("x", n_layer=HUGE)(path)
    safetensors({})(path / "x")


DECODERS = {
    "a config too deep": decoder(DEEP),
    "layers that are a word": shard("x", n_layer="many"),
    "layers without end": endless,
    "a shard above": shard("../secrets/secret"),
    "a shard at the root": shard(os.path.abspath("/etc/hostname")),
    "a GGUF of absurd counts": lambda path: path.write_bytes(
        b"GGUF" + struct.pack("<IQQ", 3, 2**60, 2**60) + bytes(64)
    ),
    "a GGUF of a long name": lambda path: path.write_bytes(
        b"GGUF" + struct.pack("<IQQQ", 3, 1, 1, 2**60) + bytes(64)
    ),
}

CONTROLS = ("objects.npy", "external.h5", "bomb.npz")  # for a loader that is unsafe
KINDS = {
    "result": RESULTS,
    "checkpoint": CHECKPOINTS,
    "weights": WEIGHTS,
    "config": CONFIGS,
    "safetensors": SAFETENSORS,
    "decoder": DECODERS,
}
# How a file is made, by its loader of ``reader`` and its name.
CASES = {(loader, name): make for loader, files in KINDS.items() for name, make in files.items()}


def place(root: Path, loader: str, name: str) -> Path:
    """Where a file lies: alone in its folder, under the name that its loader expects."""
    suffix = {"result": "result.nc", "config": "config.json", "weights": "tiny.npz"}
    usual = suffix.get(loader, name if loader == "unsafe" else "file")
    return root / loader / name.replace(" ", "_") / usual


def lay_out(root: Path) -> None:
    """All of them, and secrets that none may read."""
    (root / "secrets").mkdir(parents=True)
    (root / "secrets" / "secret").write_bytes(bytes(64))
    with h5py.File(root / "secrets" / "secret.h5", "w") as file:
        file["x"] = np.zeros(4)
    for (loader, name), make in CASES.items():
        path = place(root, loader, name)
        path.parent.mkdir(parents=True)
        make(path)
    for name in CONTROLS:
        place(root, "unsafe", name).parent.mkdir(parents=True)
    place(root, "unsafe", "objects.npy").write_bytes(array(np.array([Payload()], object)))
    archive(**{"x.npy": npy(PLAIN % f"({10 * 2**20},)", bytes(80 * 2**20))})(
        place(root, "unsafe", "bomb.npz")
    )
    with h5py.File(place(root, "unsafe", "external.h5"), "w") as file:
        file["x"] = h5py.ExternalLink(str(root / "secrets" / "secret.h5"), "x")
