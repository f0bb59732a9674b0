"""Experiments, what they judge and the pages on papers agree."""

import ast
import fnmatch
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from lsa_lab.harness.run.outcomes import together
from tools.lint.source import Fault, Tree, line_of, spans

PAPERS = {"A1": "2508.00385", "A2": "2406.03768", "A3": "2506.04579", "A4": "2408.04532"}
READINGS = ("as stated", "in our setting", "modelled on", "open question")
OPEN = ("*nothing yet*", "*cannot be decided here*")
HEADLINES, MESSAGES = "experiments/headlines.py", "experiments/messages.py"
SO_WHAT_FILE, MOST_WORDS = "experiments/so_what.py", 60
MOST_MEGABYTES = {"laptop": 1, "paper": 2}  # of one committed file


def place(experiment, door: str = "__init__") -> str:
    """The file of a door."""
    return f"{experiment.module.replace('.', '/')}/{door}.py"


def folder_of(tree: Tree, experiment, tier: str) -> Path:
    folder = tree.root / "figures" / experiment.name
    return folder if tier == "laptop" else folder / tier


def judging_tiers(tree: Tree, experiment) -> Iterator[str]:
    """The laptop tier, and larger ones that have a committed result."""
    for tier in list(experiment.tiers)[1:]:
        if tier == "laptop" or (folder_of(tree, experiment, tier) / "result.nc").exists():
            yield tier


def statements(experiment, tier: str) -> tuple:
    return tuple(experiment.door("claims").statements(experiment.tiers[tier]))


def question(tree: Tree) -> Iterator[Fault]:
    """An experiment has a question, smoke and laptop tiers, and an answer that fits a line."""
    for name, experiment in tree.lab.items():
        if list(experiment.tiers)[:3] not in (["smoke", "laptop"], ["smoke", "laptop", "paper"]):
            yield Fault(place(experiment, "config"), 1, "TIERS ought to be smoke, laptop, paper")
        if not experiment.question.endswith("?"):
            yield Fault(place(experiment), 1, "a question ends with a question mark")
        caption = f"figures/{name}/caption.txt"
        answer = " ".join(tree.page(caption).split()).partition(". ")[0]
        if not 20 < len(answer) <= 200:
            yield Fault(caption, 1, f"the answer has {len(answer)} letters: 21 to 200")


def so_what(tree: Tree) -> Iterator[Fault]:
    """What follows from an answer is said of every experiment, in few words and no number."""
    text = tree.page(SO_WHAT_FILE)
    if not text:
        return
    sentences = ast.literal_eval(text.partition("SO_WHAT = ")[2])
    answered = {name for name in tree.lab if tree.page(f"figures/{name}/caption.txt")}
    for name in (answered - sentences.keys()) | (sentences.keys() - tree.lab.keys()):
        yield Fault(SO_WHAT_FILE, 1, f"{name} stands there or among the experiments alone")
    for name, words in sentences.items():
        if len(words.split()) > MOST_WORDS or re.search(r"\d", re.sub(r"\bA\d\b", "", words)):
            line = line_of(text, f'"{name}"')
            yield Fault(SO_WHAT_FILE, line, f"{name}: {MOST_WORDS} words at most, and no number")


def key_meaning(tree: Tree) -> Iterator[Fault]:
    """Every key of a Config has a comment that says what it is."""
    from lsa_lab.harness.cli import keys

    for experiment in tree.lab.values():
        for key in keys.keys_of(type(experiment.tiers["laptop"])):
            if len(key.meaning) < 5 or key.meaning.startswith("Criteria"):
                path = place(experiment, "config")
                line = line_of(tree.page(path), f"    {key.name}: ")
                yield Fault(path, line, f"{key.name} has no comment that says what it is")


def needs(tree: Tree) -> Iterator[Fault]:
    """The theme language is those that read a language model: make language runs it whole."""
    for experiment in tree.lab.values():
        reads = hasattr(experiment.door("config"), "NEEDS")
        if reads != (experiment.theme == "language"):
            yield Fault(place(experiment, "config"), 1, "NEEDS is said in the theme language alone")


def committed_size(tree: Tree) -> Iterator[Fault]:
    """A committed file is small."""
    for experiment in tree.lab.values():
        for tier, most in MOST_MEGABYTES.items():
            for file in folder_of(tree, experiment, tier).glob("*"):
                if file.is_file() and file.stat().st_size >= most << 20:
                    path = file.relative_to(tree.root).as_posix()
                    yield Fault(path, 1, f"{most} MB or more")


def committed_verdicts(tree: Tree, *patterns: str) -> dict[str, str]:
    """The verdicts of committed results by row, the paper tier's in place of the laptop's."""
    patterns = patterns or ("*/config.json", "*/paper/config.json")
    files = [file for each in patterns for file in sorted((tree.root / "figures").glob(each))]
    verdicts = [json.loads(file.read_text("utf-8"))["verdicts"] for file in files]
    return {row: verdict for each in verdicts for row, verdict in each.items()}


def claim_id(tree: Tree) -> Iterator[Fault]:
    """Who greps for a judged row finds its statement: the id is a literal, or begins one in a
    family whose axis is a field of the Config; and no two have one."""
    for name, experiment in tree.lab.items():
        path = place(experiment, "claims")
        folder = (tree.root / path).parent
        text = "".join(file.read_text("utf-8") for file in sorted(folder.glob("*.py")))
        words = set(re.findall(r"[\w.+-]+", text))
        stems = tuple(re.findall(r'f"([\w.+-]+_)\{', text))
        for row in committed_verdicts(tree, f"{name}/**/config.json"):
            id = row.partition(".")[2]
            if id not in words and not id.startswith(stems):
                yield Fault(path, 1, f"the id {id} of a committed row stands nowhere")
        families = statements(experiment, "laptop")
        ids = [each.id for each in families] + [id for each in families for id in each.cells]
        for id in {id for id in ids if ids.count(id) > 1}:
            yield Fault(path, line_of(text, f'"{id}"'), f"two statements have the id {id}")


def family(tree: Tree) -> Iterator[Fault]:
    """A family reads as one sentence."""
    for experiment in tree.lab.values():
        path = place(experiment, "claims")
        for each in statements(experiment, "laptop"):
            words = each.whole.says + each.whole.measured + each.whole.source
            line = line_of(tree.page(path), f'"{each.id}"')
            if each.cells and re.search(r"\{[a-z_]{2,}", words):
                yield Fault(path, line, f"{each.id} reads {words}")
            if len(each.cells) > 4 and not each.message:
                yield Fault(path, line, f"{each.id}: say it in one message")


@cache
def sources(tree: Tree) -> dict[str, tuple[str, str]]:
    """The source of every judged row, and the file that says it."""
    from lsa_lab.judging.statements import cells_of

    rows = {}
    for experiment in tree.lab.values():
        for tier in judging_tiers(tree, experiment):
            for cell in cells_of(statements(experiment, tier)):
                rows[f"{experiment.name}.{cell.id}"] = cell.source, place(experiment, "claims")
    return rows


def reading(tree: Tree) -> Iterator[Fault]:
    """A source that names a paper says how it was read."""
    for row, (source, path) in sources(tree).items():
        for name, number in PAPERS.items():
            if number in source or re.search(rf"\b{name}\b", source):
                whole = f"{name} ({number})" in source
                if not whole or not any(words in source for words in READINGS):
                    yield Fault(path, 1, f"{row}: {source} is no {name} ({number}), as stated")


def paper_page(tree: Tree) -> dict[str, dict[str, str]]:
    """The places of each paper's page, "Theorem 1", and what decides them."""
    pages = {}
    for paper in PAPERS:
        lines = tree.page(f"docs/papers/{paper.lower()}.md").splitlines()
        rows = [re.split(r" (?<!\\)\| ", line.strip("| ")) for line in lines]
        rows = [row for row in rows if len(row) == 3 and row[0] not in ("place", "---")]
        pages[paper] = {row[0]: row[2] for row in rows}
        if len(pages[paper]) < len(rows):
            pages[paper]["a place that stands twice"] = ""
    return pages


def is_named(row: str, names: Iterable[str]) -> bool:
    """Whether one of the names is the row, or a pattern that it fits."""
    return any(fnmatch.fnmatchcase(row, name) for name in names)


def paper(tree: Tree) -> Iterator[Fault]:
    """A paper's page is complete: each place names what decides it, each row is on its page, with
    the committed verdict."""
    verdicts = committed_verdicts(tree)
    rows = sources(tree)
    for name, places in paper_page(tree).items():
        path, whole = f"docs/papers/{name.lower()}.md", " ".join(places.values())
        for where, decided in places.items():
            if "`" not in decided and not any(words in decided for words in OPEN):
                line = line_of(tree.page(path), where)
                yield Fault(path, line, f"{where}: nothing decides it, and nothing says why")
        named, said = spans(whole), dict(re.findall(r"`([^`]+)` \*\*([^*]+)\*\*", whole))
        for row in dict.fromkeys(named):
            line = line_of(tree.page(path), f"`{row}`")
            cells = [verdicts[each] for each in fnmatch.filter(verdicts, row)]
            if not fnmatch.filter(rows, row) and not (tree.root / row).is_file():
                yield Fault(path, line, f"no row or file {row}")
            elif said.get(row) != (together(cells) if cells else None):
                yield Fault(path, line, f"{row}: run the report")
        for row in rows:
            if PAPERS[name] in rows[row][0] and not is_named(row, named):
                yield Fault(path, 1, f"lacks the row {row}, whose source is this paper")


def headline(tree: Tree) -> Iterator[Fault]:
    """What is read first stands on committed rows: those of a headline are on its paper's page, and
    no sentence supposes a verdict that has moved."""
    from experiments import headlines, messages

    verdicts = committed_verdicts(tree)
    pages, places, text = paper_page(tree), [], tree.page(HEADLINES)
    sentences = [(HEADLINES, each.explained) for each in headlines.HEADLINES]
    for each in messages.MESSAGES.values():
        sentences += [(MESSAGES, words) for m in each for words in (m.words, m.null_words)]
    for each in headlines.HEADLINES:
        line = line_of(text, f'"{each.place}"')
        judged = [words for words in (each.trained, each.language) if words]
        sentences += [(HEADLINES, words) for words in judged]
        names = [name for words in judged for name in words.rows.split()]
        rows = {row for name in names for row in fnmatch.filter(verdicts, name)}
        rows |= {each.proved.test} if each.proved else set()
        named = spans(" ".join(pages[each.place[:2]].values()))
        lacking = [row for row in rows if not is_named(row, named)]
        if lacking:
            words = ", ".join(sorted(lacking))
            yield Fault(HEADLINES, line, f"{each.place}: its paper's page lacks {words}")
        if each.place in places:
            yield Fault(HEADLINES, line, f"{each.place} stands twice")
        places.append(each.place)
    for place in set(headlines.FIRST) - set(places):
        yield Fault(HEADLINES, line_of(text, "FIRST"), f"FIRST: {place} is the place of no line")
    for path, words in sentences:
        line = line_of(tree.page(path), words.text[:20])
        for name in words.rows.split():
            own = {verdicts[row] for row in fnmatch.filter(verdicts, name)} - {"estimated"}
            if not fnmatch.filter(verdicts, name):
                yield Fault(path, line, f"no committed row {name}")
            elif own - {words.expected.get(name)} and name in words.expected:
                yield Fault(path, line, f"{name} has moved: write the sentence again")


RULES = (
    question,
    so_what,
    key_meaning,
    needs,
    committed_size,
    claim_id,
    family,
    reading,
    paper,
    headline,
)
