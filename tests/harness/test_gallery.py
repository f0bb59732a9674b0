"""The page of figures: by theme, with what each rests on; papers and verdicts can be told apart."""

import dataclasses
from types import SimpleNamespace

from lsa_lab.harness.report import gallery
from lsa_lab.harness.run.laboratory import Experiment
from lsa_lab.judging.claims import Statement, judge

STATEMENT = Statement(
    id="row", source="A2 (2406.03768), figure 1", says="it is small", measured="it", at_most=1.0
)


def test_a_claim_belongs_to_the_paper_that_its_source_names_first():
    claim, other = judge(
        [STATEMENT, dataclasses.replace(STATEMENT, id="other", source="derived here")],
        {"row": [0.0, 0.1, 0.2], "other": [0.0, 0.1, 0.2]},
    )
    assert gallery.paper(claim) == "A2"
    assert gallery.paper(other) == ""


def test_results_are_grouped_by_theme_in_the_order_of_the_package():
    modules = (
        "experiments.flow.grads",
        "experiments.heads.layer_probes",
        "experiments.flow.flow_factors",
    )
    whole = [SimpleNamespace(experiment=Experiment(module)) for module in modules]
    themes = gallery.themes(whole)
    assert [theme.name for theme in themes] == ["flow", "heads"]
    assert themes[0].results == [whole[0], whole[2]]
    assert themes[0].title.startswith("Flow")


def test_an_experiment_rests_on_the_statements_that_say_they_are_judged_by_it(tmp_path):
    page = tmp_path / "flow.md"
    page.write_text(
        "# Flow\n\n### 4.1 The one-shot flow\n\n- **Test.** `tests/theorems/test_a.py`\n"
        "- **Judged by experiments.** `grads`, `order`\n\n### 4.2 Nobody asks\n\n"
        "- **Test.** `tests/theorems/test_b.py`\n",
        encoding="utf-8",
    )
    rests = gallery.theorems([page])
    assert set(rests) == {"grads", "order"}
    (theorem,) = rests["grads"]
    assert theorem.title == "The one-shot flow"
    assert theorem.page.endswith("flow.md#41-the-one-shot-flow")
    assert theorem.test == "tests/theorems/test_a.py"


def test_the_size_of_a_picture_is_read_from_its_header(tmp_path):
    from lsa_lab.harness.draw import pictures, style

    picture, _ = style.figure(3.25, 2.0)
    pictures.save(picture, tmp_path)
    assert gallery.pixels(tmp_path / "figure.png") == (650, 400)
