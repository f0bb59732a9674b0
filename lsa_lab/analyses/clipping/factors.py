"""Singular value decompositions of a large model: each made once, when it is first asked for.

``by_singular_value`` decomposes the matrices of all layers and holds the factors beside the
weights. An edit of a large model touches a layer or two, and a next run asks again: here a matrix
is decomposed on the host when a layer needs it, and its factors stay in a folder.
"""

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from lsa_lab.analyses.clipping.splits import Terms
from lsa_lab.files import write_file
from lsa_lab.models import leaves


class Factors(Mapping[str, "LazyTerms"]):
    """The pieces of some modules by singular value; ``partial(Factors, folder)`` is a ``split``.

    Computed in float64 and kept in float32, in float64 where the weights are. A file is called by
    the sum of its matrix, so that models may share a folder, and is whole or refused.
    """

    def __init__(
        self,
        folder: str | Path,
        params: Any,
        modules: str | Iterable[str],
        *,
        per_head: bool = False,
    ):
        def matrices(params: Any) -> dict[str, jax.Array]:
            return leaves.matrices(params, modules, per_head=per_head)

        self.folder, self.params, self.per_head = Path(folder), params, per_head
        self._matrices = jax.eval_shape(matrices, params)  # shapes and dtypes
        self._digests: dict[tuple[str, int], str] = {}

    def __getitem__(self, name: str) -> "LazyTerms":
        return LazyTerms(self, name, self._matrices[name].shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self._matrices)

    def __len__(self) -> int:
        return len(self._matrices)

    def terms(self, name: str, layer: int) -> Terms:
        """U, s and Vᵀ of one layer's matrix, in NumPy: from the folder, or else made now."""
        digest = self._digests.get((name, layer))
        if digest is None:
            matrix = self._matrix(name, layer)
            text = f"{matrix.dtype} {matrix.shape} ".encode()
            digest = hashlib.sha256(text + matrix.tobytes()).hexdigest()
            self._digests[name, layer] = digest
        path = self.folder / f"{digest[:32]}.npz"
        if not path.exists():
            content = io.BytesIO()
            np.savez(content, **vars(self._decomposed(name, layer)))
            write_file(path, content.getvalue())
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as archive:
                return Terms(archive["left"], archive["values"], archive["right"])
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path} is damaged ({error}): delete it") from None

    def _matrix(self, name: str, layer: int) -> np.ndarray:  # [p, q] or [H, p, q]
        whole = leaves.matrix(self.params, name, layer, per_head=self.per_head)
        return np.asarray(whole).astype(self._dtype(name))

    def _decomposed(self, name: str, layer: int) -> Terms:
        matrix = self._matrix(name, layer)
        if not np.isfinite(matrix).all():
            raise ValueError(f"{name} of layer {layer} holds NaN or infinity: no singular values")
        parts = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
        left, values, right = (part.astype(self._dtype(name)) for part in parts)
        return Terms(left, values, right)

    def _dtype(self, name: str) -> np.dtype:
        wide = self._matrices[name].dtype == np.float64
        return np.dtype(np.float64 if wide else np.float32)


@dataclass(frozen=True)
class LazyTerms:
    """The ``Terms`` of one matrix in every layer, none of them computed before it is needed."""

    factors: Factors
    name: str
    shape: tuple[int, ...]  # [L, p, q] or [L, H, p, q]

    def at(self, layer: int) -> Terms:
        """Those of one layer, without the axis L."""
        return self.factors.terms(self.name, layer)

    @property
    def places(self) -> tuple[int, ...]:
        return (*self.shape[:-2], min(self.shape[-2:]))

    @property
    def values(self) -> np.ndarray:  # [L, r] or [L, H, r]
        """The spectra of all layers, for which each is decomposed."""
        return np.stack([self.at(layer).values for layer in range(self.shape[0])])
