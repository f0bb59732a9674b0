"""Tests of every experiment run one of each theme, and all with ``--every``, as in `make smoke`."""

SHARED = ("test_doors.py", "test_pictures.py")
# One of each theme, whose smoke tier takes seconds.
EXAMPLES: tuple[str, ...] = ()


def pytest_collection_modifyitems(config, items):
    if config.option.every:
        return
    names = {item: getattr(item, "callspec", None) for item in items if item.path.name in SHARED}
    names = {item: spec.params.get("name") for item, spec in names.items() if spec}
    others = {item for item, name in names.items() if name and name not in EXAMPLES}
    config.hook.pytest_deselected(items=list(others))
    items[:] = [item for item in items if item not in others]
