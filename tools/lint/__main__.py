"""``make lint``: what is wrong in the text of the repository, as ``file:line: rule: what``.

    python -m tools.lint                 every rule
    python -m tools.lint wing circle     these rules

A rule is a function of the Tree that yields Faults; its docstring says what it asks.
"""

import sys
from pathlib import Path

from tools.lint import imports, lab, pages, words
from tools.lint.source import Tree

RULES = {rule.__name__: rule for module in (words, imports, pages, lab) for rule in module.RULES}


def main(names: list[str]) -> int:
    """The exit status: 1 where something is wrong, 2 where a rule is unknown."""
    if unknown := set(names) - set(RULES):
        print(f"no rule {', '.join(unknown)}: there are {', '.join(RULES)}", file=sys.stderr)
        return 2
    tree, count = Tree(Path.cwd()), 0
    for name in names or RULES:
        for fault in RULES[name](tree):
            print(f"{fault.path}:{fault.line}: {name}: {fault.what}")
            count += 1
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
