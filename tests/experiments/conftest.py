"""Tests of every experiment run on one a theme, and on all with ``--every``, as in `make smoke`."""

from lsa_lab.harness.run.laboratory import experiments_of

SHARED = ("test_doors.py", "test_pictures.py")
# Of each theme one whose smoke tier takes seconds.
EXAMPLES = (
    *("finite_pretraining", "implicit_trajectories", "flow_factors", "truncation_norms"),
    *("many_shots", "layer_probes", "learning_curves", "lm_one_number"),
)


def pytest_collection_modifyitems(config, items):
    if config.option.every:
        return
    themes = {name: each.theme for name, each in experiments_of("experiments").items()}
    assert {themes[name] for name in EXAMPLES} == set(themes.values()), "one of every theme"
    names = {item: getattr(item, "callspec", None) for item in items if item.path.name in SHARED}
    names = {item: spec.params.get("name") for item, spec in names.items() if spec}
    others = {item for item, name in names.items() if name and name not in EXAMPLES}
    config.hook.pytest_deselected(items=list(others))
    items[:] = [item for item in items if item not in others]
