"""``make mutants``: small changes of the library's source, each of which some test must notice.

``python -m tools.mutants.sample --sample 300`` tries so many, at random in every module, and goes
on where it was ended; without, all. The session is cosmic-ray's, for its ``cr-html`` as well.
``--again`` tries once more those that survived and match, ``--show`` prints them.

A change that cannot be seen in a number or a refusal says nothing about tests. Left out are
annotations, texts (f-strings, what is raised, messages), ``__all__``, decorators that compile or
remember, ``unroll``, and of a group of operators those that no test could tell from one that is in.
"""

import argparse
import ast
import hashlib
import importlib
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import conftest  # noqa: F401  the environment of the tests, before jax is imported

# Once for all mutants, what the library and its tests import.
SLOW = ("chex", "diffrax", "flax.linen", "optax", "scipy.stats", "sklearn.linear_model", "xarray")
for name in SLOW:
    importlib.import_module(name)

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome, WorkItem, WorkResult
from scipy.stats import binomtest

from tools.mutants import trials

SESSION = trials.ROOT / ".cache" / "mutants" / "sample.sqlite"
ROOMS = ("theory", "models", "analyses", "selection", "estimators", "tasks")

BINARY = """Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul
    BitAnd_BitOr BitOr_BitAnd BitXor_BitAnd LShift_RShift RShift_LShift"""
COMPARISONS = """Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt
    Is_IsNot IsNot_Is"""
OPERATORS = (
    *(f"core/ReplaceBinaryOperator_{pair}" for pair in BINARY.split()),
    *(f"core/ReplaceComparisonOperator_{pair}" for pair in COMPARISONS.split()),
    *(f"core/ReplaceUnaryOperator_Delete_{sign}" for sign in ("USub", "Not", "Invert")),
    *(f"core/Replace{change}" for change in ("TrueWithFalse", "FalseWithTrue", "AndWithOr")),
    *(f"core/Replace{change}" for change in ("OrWithAnd", "BreakWithContinue")),
    *("core/ReplaceContinueWithBreak", "core/AddNot", "core/ExceptionReplacer"),
    *("core/NumberReplacer", "core/RemoveDecorator", "core/ZeroIterationForLoop"),
)
# Where + * ** and | join two numbers; elsewhere they are marks in a signature.
BETWEEN = {"arith_expr", "term", "power", "expr", "and_expr", "xor_expr", "shift_expr"}


def modules(root: Path = trials.ROOT) -> list[Path]:
    """The modules whose mutants are counted."""
    rooms = [path for room in ROOMS for path in (root / "lsa_lab" / room).rglob("*.py")]
    saved = root / "lsa_lab" / "store" / "results.py"
    return [path.relative_to(root) for path in sorted([*rooms, saved])]


def skipped_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The pieces of a module in which no mutant is made."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(returns=annotation) | ast.arg(annotation=annotation):
                yield annotation
            case ast.AnnAssign(annotation=annotation):
                yield annotation
            case ast.Raise() | ast.JoinedStr():
                yield node
            case ast.Assert(msg=message):
                yield message
            case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.keyword(arg="unroll"):
                yield node
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node
        for decorator in getattr(node, "decorator_list", ()):
            if any(word in ast.unparse(decorator) for word in ("jit", "cache")):
                yield decorator


def mutants(path: Path, source: str) -> Iterator[WorkItem]:
    """The mutants of one module; an identifier holds the digest of what was mutated."""
    spans = [
        ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        for node in skipped_nodes(ast.parse(source))
        if node is not None
    ]
    digest = hashlib.sha256(source.encode()).hexdigest()[:8]
    nodes = list(ast_nodes(get_ast(source)))
    for name in OPERATORS:
        operator = get_operator(name)()
        places = ((node, at) for node in nodes for at in operator.mutation_positions(node))
        for occurrence, (node, (start, end)) in enumerate(places):
            marks = "Binary" in name and node.parent.type not in BETWEEN
            decorator = name.endswith("Decorator")  # it starts with its @, before the span
            at = (start[0], start[1] + decorator)
            if marks or any(first <= at < last for first, last in spans):
                continue
            spec = MutationSpec(
                module_path=str(path),
                operator_name=name,
                occurrence=occurrence,
                start_pos=start,
                end_pos=end,
                definition_name=ASTQuery(node).get_definition_name(),
            )
            kind = name.removeprefix("core/").removeprefix("Replace")
            yield WorkItem.single(
                f"{path}@{digest}:{start[0]}:{start[1]}:{kind}:{occurrence}", spec
            )


def shuffle(items: list[WorkItem], seed: int) -> list[WorkItem]:
    """All mutants in an order whose every beginning holds of each module its share, at random."""
    strata = defaultdict(list)
    for item in items:
        strata[item.mutations[0].module_path].append(item)
    order = []
    for path, stratum in strata.items():
        generator = random.Random(f"{seed} {path}")  # another module may change
        generator.shuffle(stratum)
        start = generator.random()
        order += [((rank + start) / len(stratum), item) for rank, item in enumerate(stratum)]
    return [item for _, item in sorted(order, key=lambda pair: pair[0])]


def try_mutant(item: WorkItem, tests: trials.Tests, files: int, seconds: float) -> WorkResult:
    """A mutant's verdict, what gave it, and the line that is changed."""
    spec = item.mutations[0]
    source = (trials.ROOT / spec.module_path).read_text("utf-8")
    change = mutate_code(source, get_operator(spec.operator_name)(), spec.occurrence)
    near = tests.nearest(spec.module_path, spec.definition_name)[:files]
    killed, words = trials.try_near(spec.module_path, change, spec.definition_name, near, seconds)
    rows = enumerate(zip(source.splitlines(), change.splitlines(), strict=False), 1)
    lines = [f"{n}\n- {old.strip()}\n+ {new.strip()}" for n, (old, new) in rows if old != new]
    verdict = TestOutcome.KILLED if killed else TestOutcome.SURVIVED
    return WorkResult(WorkerOutcome.NORMAL, words, verdict, lines[0] if lines else "")


def run(session: WorkDB, sample: list[WorkItem], options: argparse.Namespace) -> None:
    """Try the mutants of the sample that have no verdict, and survivors that are to be again."""
    stored = {item.job_id for item in session.work_items}
    session.add_work_items([item for item in sample if item.job_id not in stored])
    results, tests = dict(session.results), trials.Tests()
    trials.forget_the_library()
    for number, item in enumerate(sample, 1):
        result, again = results.get(item.job_id), fnmatch(item.job_id, options.again)
        if result and not (again and result.test_outcome == TestOutcome.SURVIVED):
            continue
        began = time.monotonic()
        result = try_mutant(item, tests, options.files, options.seconds)
        session.set_result(item.job_id, result)
        words = f"{item.job_id} {time.monotonic() - began:.0f} s: {result.output[:120]}"
        print(f"{number}/{len(sample)} {result.test_outcome.value} {words}", flush=True)


def run_controls(results: Iterable[WorkResult]) -> int:
    """Run the tests that failed without any mutant: a test that fails anyway kills none."""
    failed = [r.output for r in results if r.output.startswith("FAILED ")]
    names = {words.removeprefix("FAILED ").partition(" - ")[0] for words in failed}
    return pytest.main([*trials.WORDS, "-W", trials.IMPORTED, *sorted(names)])


def report(session: WorkDB, items: list[WorkItem], show: str) -> None:
    """Print the share of what was tried that was killed, by module, with Wilson's interval."""
    results, counts = dict(session.results), defaultdict(Counter)
    for item in items:
        if not (result := results.get(item.job_id)):
            continue
        verdict = "timeout" if result.output == "timeout" else result.test_outcome.value
        counts[str(item.mutations[0].module_path)][verdict] += 1
        if verdict == "survived" and fnmatch(item.job_id, show):
            print(f"{item.job_id}\n{result.diff}\n{result.output}\n")
    for path, count in sorted(counts.items()):
        print(f"{count.total() - count['survived']:5} of {count.total():4} {path}")
    count = sum(counts.values(), Counter())
    tried, killed = count.total(), count.total() - count["survived"]
    low, high = binomtest(killed, tried).proportion_ci(method="wilson")
    print(
        f"{len(items)} mutants, {tried} tried: {killed} killed, {count['timeout']} by the clock, "
        f"{count['survived']} survived; {killed / tried:.1%}, 95 % in {low:.1%} to {high:.1%}"
    )


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="mutants; all, if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=12, help="of tests for one mutant, at most")
    parser.add_argument("--seconds", type=float, default=15.0, help="after which no test begins")
    parser.add_argument("--session", type=Path, default=SESSION)
    parser.add_argument("--again", default="", metavar="PATTERN", help="survivors, '*' for all")
    parser.add_argument("--show", default="", metavar="PATTERN", help="survivors; nothing is run")
    options = parser.parse_args(words)
    os.chdir(trials.ROOT)
    options.session.parent.mkdir(parents=True, exist_ok=True)
    sources = {path: path.read_text("utf-8") for path in modules()}
    items = [item for path in sources for item in mutants(path, sources[path])]
    sample = shuffle(items, options.seed)[: options.sample]
    with use_db(options.session) as session:
        if not options.show:
            run(session, sample, options)
        report(session, items, options.show)
        return 0 if options.show else run_controls(dict(session.results).values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
