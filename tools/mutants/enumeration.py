"""The mutants of the library's modules that compute: cosmic-ray's operators, and what is left out.

A change that cannot be seen in a number or a refusal says nothing about tests. Left out are
annotations, texts (f-strings, what is raised, messages), ``__all__``, decorators that compile or
remember, ``unroll``, and of a group of operators those that no test could tell from one that is in.
"""

import ast
import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.ast.ast_query import ASTQuery
from cosmic_ray.plugins import get_operator
from cosmic_ray.work_item import MutationSpec, WorkItem

ROOT = Path(__file__).resolve().parents[2]
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


def modules(root: Path = ROOT) -> list[Path]:
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
