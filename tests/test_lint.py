"""Each rule of ``make lint`` sees what is wrong, and nothing in this repository is."""

from types import SimpleNamespace

import pytest

from experiments import headlines, messages
from lsa_lab.harness.report.headlines import Headline, Message, Words
from lsa_lab.judging.statements import Statement
from tools.lint.__main__ import RULES, main
from tools.lint.source import Tree

THEOREM = '"""Sides: a; b."""\n\ndef test_it(): ...\n\ndef test_control_it(): ...\n'
PAGE = "# Models\n\n### 1.1 The map\n- **Test.** `tests/theorems/test_map.py`\n"
INDEX = "- [1.1 The map](models.md#11-the-map)\n"
NOTEBOOK = "# %% [markdown]\n# # A\n# ## Exercise\n" + "".join(
    f'# %% tags=["{tag}"]\n' for tag in ("setup", "exercise", "check")
)
DOORS = {f"experiments/a/b/{door}.py": "" for door in ("config", "compute", "claims", "figure")}
FLOORS = "is not on a lower floor"

# The rule, a file, what is wrong in it, and words of the fault.
WRONG = [
    ("hollow_name", "lsa_lab/a.py", "def f(found):\n    return found", "found says nothing"),
    ("hollow_name", "experiments/a.py", "x = [one for one in y]", "one says nothing"),
    ("bare_preposition", "lsa_lab/a.py", '"""Of a thing."""', "begins with Of"),
    ("machine_path", "docs/a.md", "cd /" + "home/me/lsa_lab", "a folder of one machine"),
    ("theorem_file", "tests/theorems/test_a.py", THEOREM.replace("Sides:", ""), "write Sides:"),
    ("theorem_file", "tests/theorems/test_a.py", THEOREM.replace("_control", ""), "no test_con"),
    ("theorem_file", "tests/theorems/test_a.py", THEOREM.replace("test_it", "it"), "no test ass"),
    ("theorem_file", "tests/theorems/a.py", THEOREM, "no name that pytest collects"),
    ("theorem_file", "tests/theorems/test_a.py", THEOREM + "\n" * 110, "longer than 110"),
    ("import_up", "lsa_lab/models/moments.py", "from lsa_lab.training import fit", FLOORS),
    ("import_up", "lsa_lab/models/moments.py", "import lsa_lab.theory.optimum", FLOORS),
    ("import_up", "lsa_lab/models/moments.py", "from ..theory import optimum", FLOORS),
    ("import_up", "lsa_lab/prompts.py", "def f():\n    from lsa_lab.store import results", FLOORS),
    ("import_up", "lsa_lab/store/results.py", "from lsa_lab.judging import claims", FLOORS),
    ("import_up", "lsa_lab/harness/draw/style.py", "from lsa_lab.harness.run import a", FLOORS),
    ("import_up", "lsa_lab/harness/cli/jobs.py", "from lsa_lab import claims", FLOORS),
    ("import_up", "lsa_lab/tasks/tables.py", "from lsa_lab.tasks import linear", "its neighbour"),
    ("import_up", "lsa_lab/analyses/a/b.py", "import lsa_lab.analyses.kernel", "its neighbour"),
    ("import_up", "lsa_lab/training/fit.py", "import experiments", "no part of the library"),
    ("import_up", "lsa_lab/utils.py", "import os", "in no room"),
    ("wing", "experiments/flow/b/compute.py", "import experiments.clipping.a", "another theme"),
    ("wing", "experiments/flow/b/config.py", "import experiments.flow.c.config", "another exper"),
    ("wing", "experiments/flow/pairs.py", "import experiments.flow.b.config", "one experiment's"),
    ("wing", "experiments/models/a.py", "import experiments.heads.b.config", "another theme"),
    ("wing", "experiments/a/b/figure.py", "from . import compute", "only the harness"),
    ("wing", "experiments/a/b/claims.py", "import experiments.a.b.figure", "nobody does"),
    ("wing", "experiments/a/b/compute.py", "from experiments.a.b.claims import x", "above it"),
    ("wing", "experiments/a/b/claims.py", "import lsa_lab.harness.draw", "they do not draw"),
    ("wing", "experiments/a/b/compute.py", "from experiments.models import named", "only a config"),
    ("four_doors", "experiments/a/b/figure.py", None, "no figure beside it"),
    ("formula", "docs/theory/a.md", "With `Σ_i x_i` and", "set Σ_i x_i as $...$"),
    ("formula", "docs/findings/a.md", "So\n\n    r = √2\n", "set r = √2 as $...$"),
    ("formula", "docs/theory/a.md", r"$\sum = (I + H)^{-1}$", "is damage"),
    ("formula", "docs/theory/a.md", r"$h/(\mathbb{E} - 1)$", "is damage"),
    ("formula", "docs/theory/a.md", r"| $\setminus \vert G$ |", "is damage"),
    ("formula", "docs/theory/a.md", "$S_{mA}$", "is damage"),
    ("statement_number", "docs/theory/models.md", PAGE.replace("1.1", "1.2"), "ought to be 1.1"),
    ("statement_number", "docs/theory/flow.md", "### 4.1 The map\n", "two statements"),
    ("statement_index", "docs/theory/README.md", "", "lacks the line - [1.1 The map]"),
    ("statement_index", "docs/theory/README.md", f"{INDEX}- [2.1 A](b.md)\n", "is no statement"),
    ("statement_mark", "docs/theory/models.md", "### 1.1 The map\n", "no test, no experiment"),
    ("statement_mark", "tests/theorems/test_map.py", None, "there is no tests/theorems/test_map"),
    ("statement_mark", "tests/theorems/test_it.py", "", "name it under"),
    ("reference", "docs/theory/models.md", f'{PAGE}By "A map".', "no statement 'A map'"),
    ("reference", "lsa_lab/a.py", '# docs/theory, "A\n# map"', "no statement 'A map'"),
    ("reference", "lsa_lab/a.py", "# docs/theory 1.1", "a reference reads"),
    ("reference", "lsa_lab/a.py", "# THEORY 1.1", "cite a statement"),
    ("front_page", "README.md", "a" * 12289, "more than 12288 bytes"),
    ("link", "README.md", "[a](nowhere.md)", "no file nowhere.md"),
    ("command", "README.md", "`make tests`", "no such target"),
    ("command", "docs/index.md", "```\nlsa-lab list\n```", "activate it first"),
    ("notebook", "notebooks/a.py", NOTEBOOK.replace("# # A", "A"), "lacks a title"),
    ("notebook", "notebooks/a.py", NOTEBOOK, "lacks a row in README.md"),
    ("notebook", "notebooks/a.py", NOTEBOOK, "lacks a test"),
    ("notebook", "notebooks/a.py", NOTEBOOK + "# ## More", "lacks an exercise and"),
    ("notebook", "notebooks/a.py", NOTEBOOK * 2, "lacks cells of the exercise"),
    ("so_what", "experiments/so_what.py", 'SO_WHAT = {"b": "Take 3."}', "and no number"),
    ("so_what", "experiments/so_what.py", 'SO_WHAT = {"c": "Take it."}', "experiments alone"),
    ("question", "figures/b/caption.txt", "Too short. More.", "has 9 letters"),
    ("committed_size", "figures/b/result.nc", "a" * (1 << 20), "1 MB or more"),
    ("claim_id", "figures/b/config.json", '{"verdicts": {"b.lost": "holds"}}', "id lost of a"),
    ("paper", "docs/papers/a1.md", "| Theorem 1 | It is | luck |\n", "nothing decides it"),
    ("paper", "docs/papers/a1.md", "| Theorem 1 | It is | `b.no` |\n", "no row or file b.no"),
    ("paper", "docs/papers/a1.md", "| Theorem 1 | It is | `b.mean` |\n", "run the report"),
]
WRONG += [
    ("unsafe_code", "lsa_lab/a.py", text, "may run what it reads")
    for text in (
        *("import pickle", "from pickle import loads", "import torch", "eval('1')", "exec(text)"),
        *("__import__(name)", "np.load(f, allow_pickle=flag)", "np.load(f)", "os.system('ls')"),
        *("subprocess.run(words, shell=True)", "socket.socket()", "import urllib.request"),
    )
]


def experiment(**changes):
    """An experiment with one judged row, in which nothing is wrong."""
    mean = Statement("mean", "A1 (2508.00385), as stated", "It is", "the mean", at_least=0)
    doors = {"claims": SimpleNamespace(statements=lambda config: (changes.get("mean", mean),))}
    doors["config"] = SimpleNamespace(**changes.get("config", {}))
    kind = SimpleNamespace(name="b", module="experiments.a.b", theme="a", question="Is it?")
    kind.tiers = dict.fromkeys(("smoke", "laptop"))
    vars(kind).update(changes, door=doors.__getitem__)
    return kind


def tree_of(root, path="", text="", **changes):
    """A small repository without a fault, but for one file."""
    files = {"docs/theory/models.md": PAGE, "docs/theory/README.md": INDEX, **DOORS}
    files |= {"tests/theorems/test_map.py": THEOREM, "Makefile": "test:\n"}
    files |= {"figures/b/caption.txt": "The mean is larger than nothing. More."}
    files |= {"figures/b/config.json": '{"verdicts": {"b.mean": "holds"}}'}
    files |= {"experiments/a/b/claims.py": '"mean"', "lsa_lab/tasks/linear.py": ""}
    files |= {"lsa_lab/claims.py": "", "experiments/models/named.py": ""}
    files |= {"docs/papers/a1.md": "| Theorem 1 | It is | `b.mean` **holds** |\n"}
    for name, content in (files | {path: text} if path else files).items():
        if content is not None:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(content, "utf-8")
    tree = Tree(root)
    tree.lab = {"b": experiment(**changes)}
    return tree


@pytest.mark.parametrize(("rule", "path", "text", "words"), WRONG)
def test_what_is_wrong_is_seen_with_its_file(tmp_path, rule, path, text, words):
    faults = list(RULES[rule](tree_of(tmp_path, path, text)))
    assert [fault for fault in faults if words in fault.what], faults


def test_a_circle_is_seen_and_who_rests_on_it(tmp_path):
    for name, other in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "e"), ("e", "")):
        (tmp_path / "lsa_lab").mkdir(exist_ok=True)
        text = f"def f():\n    import lsa_lab.{other}" if other else ""
        (tmp_path / "lsa_lab" / f"{name}.py").write_text(text)
    faults = RULES["circle"](Tree(tmp_path))
    assert [fault.path for fault in faults] == [f"lsa_lab/{name}.py" for name in "abc"]


FEW = Statement("mean", "A1, Theorem 1", "It is", "it", at_least=0)
MANY = Statement(
    *("mean", "ours", "It is {other_name}", "it"),
    at_least=0,
    cells={f"{i}": {"n": i} for i in range(5)},
    words=lambda n: {"other_name": "{other_name}"},
)


@pytest.mark.parametrize(
    ("rule", "changes", "words"),
    [
        ("question", {"tiers": {"laptop": None}}, "TIERS ought to be"),
        ("question", {"question": "It is."}, "question mark"),
        ("needs", {"config": {"NEEDS": ("smollm2",)}}, "NEEDS is said"),
        ("needs", {"theme": "language"}, "NEEDS is said"),
        ("reading", {"mean": FEW}, "is no A1 (2508.00385)"),
        ("family", {"mean": MANY}, "say it in one message"),
        ("family", {"mean": MANY}, "mean reads It is {other_name}"),
        ("claim_id", {"mean": SimpleNamespace(id="mean", cells=("mean",))}, "two statements have"),
        ("paper", {"name": "c"}, "lacks the row c.mean"),
    ],
)
def test_what_is_wrong_in_an_experiment_is_seen(tmp_path, rule, changes, words):
    faults = list(RULES[rule](tree_of(tmp_path, **changes)))
    assert [fault for fault in faults if words in fault.what], faults


def test_a_headline_of_no_page_and_a_sentence_whose_cells_have_moved_are_seen(
    tmp_path, monkeypatch
):
    tree, null = tree_of(tmp_path), Words("none needed, because it is a test")
    row = Headline("A1, Theorem 2", "It is", null, trained=Words("{0:i}", "b.lost"))
    strange = Headline("A2, Theorem 1", "It is", null, trained=Words("{0:i}", "b.mean"))
    moved = Message("It is {0}", "b.mean", null.text, stands="undecided")
    monkeypatch.setattr(headlines, "FIRST", ("A1, lost",))
    monkeypatch.setattr(headlines, "HEADLINES", (row, row, strange))
    monkeypatch.setattr(messages, "MESSAGES", {"b": (moved,)})
    said = " ".join(fault.what for fault in RULES["headline"](tree))
    for words in ("stands twice", "no committed row b.lost", "A1, lost is the place of no line"):
        assert words in said
    assert "A2, Theorem 1: its paper's page lacks b.mean" in said
    assert "b.mean has moved" in said


def test_nothing_is_wrong_where_nothing_is(tmp_path):
    tree = tree_of(tmp_path)
    quiet = [name for name in RULES if name not in ("key_meaning", "headline")]
    assert [fault for name in quiet for fault in RULES[name](tree)] == []


def test_the_program_names_file_line_and_rule_and_ends_with_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["hollow_name"]) == 0
    tree_of(tmp_path, "lsa_lab/a.py", "\nfound = 1")
    assert main(["hollow_name"]) == 1
    words = "lsa_lab/a.py:2: hollow_name: found says nothing of what it holds\n"
    assert capsys.readouterr().out == words
    assert main(["hollow"]) == 2
