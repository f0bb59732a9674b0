"""Names hold something, docstrings are sentences, and no code runs what it reads."""

import ast
import re
from collections.abc import Iterator

from tools.lint.source import Fault, Tree

# A name says what it holds: risks, errors, rows, statements, mask. These hold nothing.
HOLLOW = {"found", "made", "some", "one", "there", "drawn", "known", "shown", "told", "asked"}
HOLLOW |= {"settings"}  # parameters, config, grid or per_run, according to what it is
BARE = re.compile(r"(Of|By|At|To|From|With|On) ")
READABLE = ("experiments", "explorer", "lsa_lab", "notebooks", "tests/theorems", "tools")

MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
MODULES |= {"torch", "yaml", "code", "urllib.request", "http.client", "requests", "ftplib", "ssl"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "os.execv"}
CALLS |= {"tempfile.mktemp", "socket.socket", "socket.create_connection", "np.fromregex"}
CALLS |= {"subprocess.getoutput", "pd.read_pickle"}

MACHINE = re.compile(r"(?<![\w.~:/])/(home|Users|root|work)/\w")
MOST_LINES = 110  # of a theorem's file


def hollow_name(tree: Tree) -> Iterator[Fault]:
    """Every name of HOLLOW that is bound; fields of a class are those of committed results."""
    for source in tree.inside(*READABLE):
        classes = [node for node in source.nodes if isinstance(node, ast.ClassDef)]
        bodies = [node for each in classes for node in each.body]
        fields = {id(node.target) for node in bodies if isinstance(node, ast.AnnAssign)}
        for node in source.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                name = "" if id(node) in fields else node.id
            elif isinstance(node, ast.arg):
                name = node.arg
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                name = node.name
            else:
                continue
            if name in HOLLOW:
                yield source.fault(node, f"{name} says nothing of what it holds")


def bare_preposition(tree: Tree) -> Iterator[Fault]:
    """A docstring is a sentence, a noun phrase or a question."""
    for source in tree.inside(*READABLE):
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = ast.get_docstring(node) or ""
                if BARE.match(text) and not text.endswith("?"):
                    line = getattr(node, "lineno", 1)
                    yield source.fault(line, f"a docstring begins with {text.split()[0]}")


def unsafe_code(tree: Tree) -> Iterator[Fault]:
    """Nothing unpickles, evaluates or asks a shell or a network."""
    for source in tree.inside("lsa_lab", "experiments"):
        for node in source.nodes:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names if alias.name in MODULES]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module] if node.module in MODULES else []
            elif isinstance(node, ast.Call):
                name = dotted_name(node.func)
                names = [name] if name in CALLS else []
                names += [f"{word.arg} of {name}" for word in node.keywords if is_unsafe(word)]
                says_no = any(word.arg == "allow_pickle" for word in node.keywords)
                names += [name] if name in ("np.load", "numpy.load") and not says_no else []
            yield from (source.fault(node, f"{name} may run what it reads") for name in names)


def dotted_name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return f"{dotted_name(function.value)}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""


def is_unsafe(keyword: ast.keyword) -> bool:
    is_safe = isinstance(keyword.value, ast.Constant) and keyword.value.value is False
    return keyword.arg in ("shell", "allow_pickle") and not is_safe


def machine_path(tree: Tree) -> Iterator[Fault]:
    """No file names a folder of the machine that it was written on."""
    pages = [(page.relative_to(tree.root).as_posix(), page) for page in tree.root.rglob("*.md")]
    pages = [pair for pair in pages if not pair[0].startswith((".", "out/", "docs/api"))]
    texts = [(name, page.read_text("utf-8")) for name, page in pages]
    for path, text in [*texts, *((source.path, source.text) for source in tree.files)]:
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE.search(line):
                yield Fault(path, number, "a folder of one machine")


def theorem_file(tree: Tree) -> Iterator[Fault]:
    """One theorem a file: what it says, its two sides, that it holds, and where it does not."""
    for source in tree.inside("tests/theorems"):
        tests = [getattr(node, "name", "") for node in source.tree.body]
        tests = [name for name in tests if name.startswith("test_")]
        controls = [name.startswith("test_control_") for name in tests]
        if not source.parts[-1].startswith("test_"):
            yield source.fault(1, "no name that pytest collects: test_ and the theorem")
        if "Sides:" not in (ast.get_docstring(source.tree) or ""):
            yield source.fault(1, "write Sides: the network's; the mathematics' in its docstring")
        if not any(controls):
            yield source.fault(1, "no test_control_ breaks a hypothesis")
        if all(controls):
            yield source.fault(1, "no test asserts the theorem")
        if source.text.count("\n") > MOST_LINES:
            yield source.fault(MOST_LINES, f"longer than {MOST_LINES} lines")


RULES = (hollow_name, bare_preposition, unsafe_code, machine_path, theorem_file)
