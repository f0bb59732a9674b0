"""Tests of every experiment run on one a theme, and on all with ``--every``, as in `make smoke`."""

from lsa_lab.harness.run.laboratory import experiments_of

SHARED = ("test_doors.py", "test_pictures.py")


def pytest_collection_modifyitems(config, items):
    if config.option.every or config.option.touched:
        return
    few = {each.theme: name for name, each in reversed(experiments_of("experiments").items())}
    names = {item: getattr(item, "callspec", None) for item in items if item.path.name in SHARED}
    names = {item: spec.params.get("name") for item, spec in names.items() if spec}
    others = {item for item, name in names.items() if name and name not in few.values()}
    config.hook.pytest_deselected(items=list(others))
    items[:] = [item for item in items if item not in others]
