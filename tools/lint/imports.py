"""Imports go down: between the rooms of lsa_lab, and between the doors of experiments."""

from collections.abc import Iterator

from tools.lint.source import Fault, Tree

# Files and folders of lsa_lab by floor: each imports those of lower floors.
FLOORS = [
    {"prompts"},
    {"arguments", "variates"},
    {"store"},
    {"judging"},
    {"tasks", "estimators"},
    {"models", "theory"},
    {"training", "analyses", "selection", "interop", "lm"},
    {"card"},
    *({f"harness.{name}"} for name in ("refusal", "draw", "run", "report", "cli")),
    {"claims", "results"},  # the names of before, for one version: nothing imports them
    {"notebooks"},  # what lessons use, of all rooms
]
FLOOR = {room: i for i, rooms in enumerate(FLOORS) for room in rooms} | {"": -1}
# Folders whose files know nothing of each other: they meet through arguments.
APART = {"tasks", "analyses", "selection"}
DOORS = {"config", "compute", "claims", "figure"}
MOST_BESIDE = 3  # modules beside the doors of an experiment


def room_of(module: str) -> str:
    """The file or folder of FLOORS that a module is or lies in; "" for packages above."""
    parts = module.split(".")[1:]
    if parts[:1] == ["harness"]:
        return ".".join(parts[:2]) if len(parts) > 1 else ""
    return "".join(parts[:1])


def import_up(tree: Tree) -> Iterator[Fault]:
    """A room imports lower rooms, and never its neighbour where these are apart."""
    for source in tree.inside("lsa_lab"):
        room = room_of(source.module)
        if room not in FLOOR:
            yield source.fault(1, f"{source.module} is in no room of FLOORS")
            continue
        for target, line in tree.imports(source):
            other, apart = room_of(target), target.split(".")[:3] != list(source.parts[:3])
            if target.split(".")[0] in ("experiments", "tests", "tools"):
                yield source.fault(line, f"{target} is no part of the library")
            elif target.split(".")[0] != "lsa_lab" or target == source.module:
                continue
            elif room == other and room in APART and apart:
                yield source.fault(line, f"{target} is its neighbour")
            elif room != other and FLOOR.get(other, len(FLOORS)) >= FLOOR[room]:
                yield source.fault(line, f"{target} is not on a lower floor")


def circle(tree: Tree) -> Iterator[Fault]:
    """Modules that import each other in a ring; those for types and inside functions count too."""
    sources = {source.module: source for source in tree.inside("lsa_lab")}
    left = {
        name: {target for target, _ in tree.imports(source)} - {name}
        for name, source in sources.items()
    }
    while free := [name for name, used in left.items() if not used & left.keys()]:
        left = {name: used for name, used in left.items() if name not in free}
    for name in sorted(left):
        rest = ", ".join(sorted(left[name] & left.keys()))
        yield sources[name].fault(1, f"{name} is in a circle of imports with {rest}")


def wing(tree: Tree) -> Iterator[Fault]:
    """No theme imports another; figure, claims, config; nobody imports compute."""
    for source in tree.inside("experiments"):
        if len(parts := source.path.removesuffix(".py").split("/")[1:]) < 2:
            continue  # experiments/__init__.py and its like
        for module, line in tree.imports(source):
            target = module.split(".")[1:] if module.split(".")[0] == "experiments" else []
            if what := refusal(parts, target, module):
                yield source.fault(line, f"{module}: {what}")


def refusal(parts: list[str], target: list[str], module: str) -> str:
    """Why a file of the wing may not import a module; "" if it may."""
    shared = parts[0] == "models" or len(parts) == 2
    if target[:1] and target[0] not in (parts[0], "models"):
        return "of another theme"
    if len(target) > 2 and len(parts) > 2 and target[:2] != parts[:2]:
        return "of another experiment"
    if len(target) > 2 and len(parts) == 2:
        return "one experiment's"
    if target[2:3] == ["compute"]:
        return "only the harness does"
    if target[2:3] == ["figure"] and parts[-1] != "figure":
        return "nobody does"
    if target[2:3] == ["claims"] and parts[-1] in ("config", "compute"):
        return "above it"
    if module.startswith("lsa_lab.harness") and parts[-1] == "claims":
        return "claims judge, they do not draw"
    if target == ["models", "named"] and not shared and parts[-1] != "config":
        return "only a config says which models it is about"
    return ""


def four_doors(tree: Tree) -> Iterator[Fault]:
    """An experiment is four doors and at most three modules more."""
    for config in tree.inside("experiments"):
        if config.path.count("/") == 3 and config.path.endswith("/config.py"):
            files = (tree.root / config.path).parent.glob("*.py")
            names = {path.stem for path in files} - {"__init__"}
            if lacking := DOORS - names:
                yield config.fault(1, f"no {', '.join(sorted(lacking))} beside it")
            if len(names - DOORS) > MOST_BESIDE:
                yield config.fault(1, f"more than {MOST_BESIDE} modules beside the doors")


RULES = (import_up, circle, wing, four_doors)
