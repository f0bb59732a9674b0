"""What `make docs` refuses, and what pages show: their code runs, their commands are parsed."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from lsa_lab import lm
from lsa_lab.lab import command
from lsa_lab.lm import decoder, sources, tokens, weights

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "docs" / "_ext")]

from check import check, without_notation  # noqa: E402


def test_the_first_theorem_of_the_start_page_is_true():
    text = (ROOT / "docs" / "index.md").read_text("utf-8")
    (example,) = re.findall(r"```pycon\n(.*?)```", text, re.DOTALL)
    parsed = doctest.DocTestParser().get_doctest(example, {}, "index.md", None, 0)
    assert doctest.DocTestRunner().run(parsed).failed == 0


@pytest.mark.slow
def test_the_page_on_language_models_runs(tmp_path, monkeypatch):
    """Its blocks one after the other, on a tiny decoder in the place of the one that is fetched."""
    page = (ROOT / "docs" / "language_model.md").read_text("utf-8")
    code = "".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    words = {"Review:", "Sentiment:", *re.findall(r"[a-z]+", code)}
    sizes = dict(num_layers=2, num_heads=2, num_groups=1, key_width=4, width=8, mlp_width=16)
    config = decoder.Config(**sizes, vocabulary=1 + len(words), context=256, rotary_width=4)
    params = weights.init(jax.random.key(0), config, "float32")
    tiny = lm.Decoder(config, params, tokens.make_word_tokenizer(sorted(words)))
    monkeypatch.setattr(lm, "load", lambda path: tiny)
    monkeypatch.setattr(sources, "find", lambda name: sources.SOURCES[name].places[0])
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "language_model.md", "exec"), {})
    named = re.findall(r"^\| `([\w-]+)` \|.*\| (\d+) MB \|", page, re.MULTILINE)
    assert named == [(name, f"{s.size / 1e6:.0f}") for name, s in sources.SOURCES.items()]


@pytest.mark.slow
def test_control_a_broken_link_fails(tmp_path):
    """A file, an anchor, a statement and a paper that are not there."""
    (tmp_path / "docs").mkdir()
    page = '# A page\n\n[a](nowhere.md)\n\n[b](#place)\n\n"Linear attention"\n\n2301.99999'
    (tmp_path / "docs" / "index.md").write_text(page, "utf-8")
    options = f"-n -W --keep-going -D html_theme=basic -D autoapi_dirs={ROOT / 'docs' / '_ext'}"
    words = [sys.executable, *f"-m sphinx -q -b html {options} -c docs".split()]
    done = subprocess.run([*words, tmp_path, tmp_path / "out"], cwd=ROOT, capture_output=True)
    assert done.returncode == 1
    targets = (b"'nowhere.md'", b"'place'", b"'docs/theory/models'", b"'docs/bibliography'")
    assert [target for target in targets if target not in done.stderr] == []


WRONG = {
    '<a href="nowhere.html">': "no file nowhere.html",
    '<a href="page.html#nowhere">': "no place page.html#nowhere",
    '<script src="https://cdn.example.org/a.js">': "fetches https://cdn.example.org/a.js",
    '<img src="//example.org/a.png">': "fetches //example.org/a.png",
    '<link rel="stylesheet" href="https://example.org/font.css">': "fetches https://example",
    "<style>@import 'https://example.org/a.css';</style>": "fetches https://example",
}


@pytest.mark.parametrize(("html", "wrong"), WRONG.items())
def test_control_a_wrong_page_is_seen(tmp_path, html, wrong):
    (tmp_path / "page.html").write_text(f'<p id="place"><a href="#place">{html}', "utf-8")
    (line,) = check(tmp_path)[0]
    assert wrong in line


def test_control_a_letter_that_leads_to_no_notation_is_seen(tmp_path):
    page = tmp_path / "docs" / "theory" / "flow.html"
    page.parent.mkdir(parents=True)
    formula = '<span class="math notranslate">\\(\\Lambda\\,\\text{and} &lt; x\\)</span>'
    page.write_text(f'<a href="README.html#letter-x">x</a> {formula}', "utf-8")
    assert without_notation(tmp_path) == ["docs/theory/flow.html: no notation of \\Lambda"]


SHOWN = re.compile(
    r"^(?:\.venv/bin/)?lsa-lab ([^#\n]+)|`(?:\.venv/bin/)?lsa-lab ([a-z][^`]+)`", re.M
)


PAGES = {
    "CONTRIBUTING.md": 4, "README.md": 5, "docs/index.md": 1, "docs/change_a_figure.md": 5,
    "docs/add_an_experiment.md": 6, "docs/language_model.md": 2,
}  # fmt: skip


@pytest.mark.parametrize(("page", "least"), PAGES.items())
def test_every_command_that_is_shown_is_parsed(page, least):
    lines = [" ".join(groups) for groups in SHOWN.findall((ROOT / page).read_text("utf-8"))]
    assert len(lines) >= least
    for line in lines:
        command.parse(shlex.split(line))
