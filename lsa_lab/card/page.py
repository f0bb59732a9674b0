"""A card for people: a page, a badge, and the table of all cards, made from card.json alone."""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from itertools import combinations, pairwise
from statistics import median
from typing import Any

GROUPS = {
    "risk": ("How far from the best?", "The model's mean squared error over that of the Bayes rule "
             "(the best there is) after so many demonstrations. 1 is perfect."),
    "rule": ("Which algorithm?", "The nearest of eleven known rules, by answers to prompts "
             "on which rules differ. The distance is 0 for equal answers, 2 for unrelated ones."),
    "growth": ("Does it grow?", "Prompts longer than any in training."),
    "shifts": ("Where does it break?", "Prompts of another law than in training, beside ridge "
               "regression, which does not know of the change either."),
    "sparse": ("Sparse weights", "Only a quarter of the weights is not zero."),
    "drift": ("Weights that drift", "The best rule forgets: it is the Kalman filter."),
    "overwriting": ("Contradictions", "The same key again, with a new label."),
    "recall": ("Recall", "Pairs without a law, which can only be remembered."),
    "order": ("Order", "The same demonstrations, permuted."),
    "flows": ("Who has a say?", "The derivative of the answer by each label."),
    "clipping": (
        "What can be removed?",
        "Risk over that of the whole model, with a layer's matrices at half rank or a head less.",
    ),
    "precision": ("Precision", "The same weights with fewer digits."),
    "speed": ("Cost", "One prompt on the machine that made this card."),
    "steps": ("Learning", "Steps of training with the recipe of the card."),
    "tracking": ("State tracking", "Trained anew to count the signs that it has seen."),
}  # fmt: skip
_GIVEN = {  # of groups whose words are of a training, where there was none
    "growth": "Prompts of more than {n} demonstrations.",
    "shifts": "Prompts of another law than the one above, beside ridge regression, which does not "
              "know of the change either.",
}  # fmt: skip
_COLOURS = {"holds": "#2a7f4f", "fails": "#b3372f", "undecided": "#a67c00", "": "#555"}
_GREYS = ("#555", "#777", "#999", "#aaa", "#bbb")
_STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:52rem;margin:2rem auto;
padding:0 1rem;color:#222}h1{margin-bottom:.2rem}table{border-collapse:collapse;width:100%;
font-size:13px}
td,th{text-align:left;padding:.25rem .5rem;border-bottom:1px solid #ddd;vertical-align:top}
th{cursor:pointer}.n{white-space:nowrap;font-variant-numeric:tabular-nums}small{color:#666}
svg{max-width:100%}"""


def digest(body: dict[str, Any]) -> str:
    """The sum of a card's contents, without the sum itself."""
    rest = {key: value for key, value in body.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def number(value: Any) -> str:
    """A value as a reader has it: three digits, or the word."""
    if isinstance(value, str):
        return {"inf": "∞", "-inf": "-∞", "nan": "-"}.get(value, value)
    if math.isinf(value):
        return "∞"
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def interval(probe: dict[str, Any]) -> str:
    """The interval in brackets, if there is one."""
    ends = probe["interval"]
    return "" if ends is None else f"[{number(ends[0])}, {number(ends[1])}]"


def headline(body: dict[str, Any]) -> str:
    """The card in a line: risk at the length in training, the rule, and the growth."""
    by_name = {probe["name"]: probe for probe in body["probes"]}
    last = [name for name in by_name if name.startswith("risk over Bayes, n")][-1]
    grown = by_name["risk over Bayes, 8 times the length"]["value"]
    rule = by_name["nearest rule"]["value"]
    near = number(by_name[last]["value"])
    return f"{near} x Bayes | {rule} | {number(grown)} x at 8 times the length"


def badge(body: dict[str, Any]) -> str:
    """The headline as an SVG of one line."""
    text = escape(headline(body))
    left, right = 62, 6.3 * len(text) + 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="20" '
        f'role="img" aria-label="lsa_lab: {text}"><rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right:.0f}" height="20" fill="#35618f"/>'
        '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="8" y="14">lsa_lab</text><text x="{left + 7}" y="14">{text}</text></g></svg>\n'
    )


def html(body: dict[str, Any]) -> str:
    """The page of one card."""
    trained, n = body["trained"], 8 * body["d"]
    runs = (
        f"{n} demonstrations in training, {body['runs']} seeds"
        if trained
        else f"{n} demonstrations, given weights, {body['runs']} sets of prompts"
    )
    parts = [
        f"<h1>{escape(body['name'])}</h1><p><b>{escape(headline(body))}</b></p>",
        f"<p>A model reads pairs (x, y) of a linear law with noise and answers the next x. "
        f"It has {body['parameters']} parameters; tier {body['tier']}: d = {body['d']}, noise "
        f"{body['noise_std']}, {runs}. Brackets are "
        "95 % intervals; a statement holds if the whole interval keeps its bound. Every probe, and "
        "the letters of the rules, are defined in docs/card.md of lsa_lab.</p>",
        "<p>In the pictures a dot is the number and a line its interval, on a logarithmic axis: "
        "green holds, red fails, brown is undecided. A grey tick is what the number would be "
        "without the effect, the last column of the tables. The answer 0 is that of a model that "
        "has learned nothing.</p>",
    ]
    for group, (title, about) in GROUPS.items():
        rows = [probe for probe in body["probes"] if probe["group"] == group]
        if rows:
            about = about if trained else _GIVEN.get(group, about).format(n=n)
            parts.append(f"<h2>{title}</h2><p>{about}</p>")
            parts.append(_risk_picture(body) if group == "risk" else _picture(rows))
            parts.append(_table(rows))
    facts = {key: value for key, value in body.items() if key not in ("probes", "curves")}
    text = escape(json.dumps(facts, indent=1))
    parts.append(f"<details><summary>What it rests on</summary><pre>{text}</pre></details>")
    return _document(body["name"], "\n".join(parts))


def index(cards: Sequence[dict[str, Any]]) -> str:
    """The table of all cards: a click on a head sorts by that probe."""
    names = list(dict.fromkeys(p["name"] for body in cards for p in body["probes"]))
    heads = ["model", "headline", "parameters", "runs", "tier", *names]
    rows = []
    for body in cards:
        by_name = {probe["name"]: probe for probe in body["probes"]}
        cells = [f'<a href="{escape(body["name"])}/index.html">{escape(body["name"])}</a>']
        cells += [escape(headline(body)), *(str(body[key]) for key in heads[2:5])]
        for name in names:
            probe = by_name.get(name)
            if probe is None:
                cells.append("")
                continue
            colour = _COLOURS[probe["verdict"]]
            cells.append(f'<span style="color:{colour}">{escape(number(probe["value"]))}</span> '
                         f"<small>{interval(probe)}</small>")  # fmt: skip
        rows.append("<tr>" + "".join(f'<td class="n">{cell}</td>' for cell in cells) + "</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    about = (
        "<style>body{max-width:none}th{vertical-align:bottom}td:first-child{position:sticky;"
        "left:0;background:#fff}</style>"
        "<h1>Cards</h1><p>Each row is one model, trained by the same recipe, whose size the tier "
        "says: compare rows of one tier. Click a head to sort. "
        "Green holds, red fails, brown is undecided; brackets are 95 % intervals over runs: seeds, "
        "or of given weights sets of prompts. "
        f"{nearness(cards)}</p>"
    )
    table = f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead><tbody>'
    return _document("Cards", f"{about}{table}{''.join(rows)}</tbody></table></div>{_SORT}")


def nearness(cards: Sequence[dict[str, Any]]) -> str:
    """How far two seeds of one layer are from each other, beside seeds of two layers of one tier:
    the median of the mean |log risk - log risk| over all lengths."""
    runs = [
        (body["name"], body["tier"], [math.log(max(value, 1e-12)) for value in run])
        for body in cards if body["causal"] and body["trained"]
        for run in body["curves"]["risk"]["runs"]
        if all(isinstance(value, float | int) for value in run)
    ]  # fmt: skip
    pairs: dict[bool, list[float]] = {True: [], False: []}
    for (first, tier, left), (second, other, right) in combinations(runs, 2):
        if tier == other and len(left) == len(right):
            far = [abs(a - b) for a, b in zip(left, right, strict=True)]
            pairs[first == second].append(sum(far) / len(far))
    ratios = sorted((ratio, name) for name, ratio in apart(cards).items())
    if not (all(pairs.values()) and ratios and median(pairs[True]) > 0):  # seeds that are alike
        return ""
    same, differing = median(pairs[True]), median(pairs[False])
    (least, last), (greatest, first) = ratios[0], ratios[-1]
    return (
        f"Risks of two seeds of one layer differ by {100 * same:.2g} % (the median over pairs), "
        f"those of two layers of one tier by {100 * differing:.2g} %, {differing / same:.2g} times "
        f"as much. Over all {len(ratios)} probes that have an interval, one at a time, the means "
        f"of two layers are in the median probe {median(r for r, _ in ratios):.2g} times as far "
        f"apart as two seeds of one, from {least:.2g} ({escape(last)}) to {greatest:.2g} "
        f"({escape(first)})."
    )


def apart(cards: Sequence[dict[str, Any]]) -> dict[str, float]:
    """For each probe, how far the means of two layers of one tier are apart, over how far two
    seeds of one layer are: the medians over pairs of layers, and over layers.

    The standard deviation s of seeds is that of the interval, m ± t s/√R, and two normal seeds
    are .954 s apart in the median. Ratios, whose intervals are of logarithms, are compared so.
    """
    from scipy.special import stdtrit

    every: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for body in cards:
        if body["causal"] and body["trained"]:
            factor = math.sqrt(body["runs"]) / float(stdtrit(body["runs"] - 1, 0.975))
            for probe in body["probes"]:
                numbers = [*(probe["interval"] or []), probe["value"], factor]
                if len(numbers) == 4 and all(isinstance(v, float | int) for v in numbers):
                    every[probe["name"], body["tier"]].append(numbers)
    most: dict[str, list[list[float]]] = {}
    for (name, _), rows in every.items():
        most[name] = max(most.get(name, []), rows, key=len)
    ratios = {}
    for name, rows in most.items():
        if all(
            low > 0 and math.isclose(low * high, v * v, rel_tol=1e-4) for low, high, v, _ in rows
        ):
            rows = [[*map(math.log, row[:3]), row[3]] for row in rows]
        seeds = 0.954 * median((high - low) / 2 * factor for low, high, _, factor in rows)
        if len(rows) > 1 and seeds > 0:
            ratios[name] = median(abs(a[2] - b[2]) for a, b in combinations(rows, 2)) / seeds
    return ratios


_SORT = """<script>document.querySelectorAll('th').forEach((head,i)=>head.onclick=()=>{
const body=document.querySelector('tbody'),key=r=>{const t=r.cells[i].innerText.trim(),
x=parseFloat(t);return t===''||t==='-'?[2,0]:t.startsWith('∞')?[0,1e99]:isNaN(x)?[1,t]:[0,x]};
const up=head.dataset.up!=='1';head.dataset.up=up?'1':'0';
[...body.rows].sort((a,b)=>{const [k,p]=key(a),[l,q]=key(b);
return k-l||(p>q?1:p<q?-1:0)*(up?1:-1)}).forEach(r=>body.append(r))})</script>"""


def _document(title: str, content: str) -> str:
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>"
        f"<style>{_STYLE}</style><body>{content}</body></html>\n"
    )


def _table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for probe in rows:
        verdict = probe["verdict"]
        null = (
            "" if probe["null"] is None else f"{number(probe['null'])}: {escape(probe['null_is'])}"
        )
        note = f"<br><small>{escape(probe['note'])}</small>" if probe["note"] else ""
        lines.append(
            f"<tr><td>{escape(probe['name'])}<br><small>{escape(probe['says'])}</small>{note}</td>"
            f'<td class="n">{escape(number(probe["value"]))} <small>{interval(probe)}</small></td>'
            f'<td style="color:{_COLOURS[verdict]}">{verdict}</td>'
            f"<td><small>{null}</small></td></tr>"
        )
    head = "<tr><th>number</th><th>value</th><th>verdict</th><th>beside it</th></tr>"
    return f'<div style="overflow-x:auto"><table>{head}{"".join(lines)}</table></div>'


def _scale(values: Sequence[float], low: float, high: float) -> Any:
    """A map of positive numbers to places on a logarithmic axis."""
    logs = [math.log(max(value, 1e-6)) for value in values]
    first, last = min(logs), max(logs)
    span = (last - first) or 1.0
    return lambda v: (
        low + (high - low) * (min(max(math.log(max(v, 1e-6)), first), last) - first) / span
    )


def _picture(rows: list[dict[str, Any]]) -> str:
    """Points with their intervals on a logarithmic axis; a grey tick is the null."""
    rows = [
        probe for probe in rows if isinstance(probe["value"], float | int) and probe["interval"]
    ]
    ends = [end for probe in rows for end in (probe["value"], *probe["interval"], probe["null"])]
    ends = [end for end in ends if isinstance(end, float | int) and end > 0]
    if not rows or not ends:
        return ""
    place, height = _scale([*ends, max(ends) * 1.1], 290, 570), 22 * len(rows) + 22
    marks = []
    for i, probe in enumerate(rows):
        y, colour = 14 + 22 * i, _COLOURS[probe["verdict"]]
        low, high = (
            end if isinstance(end, float | int) else probe["value"] for end in probe["interval"]
        )
        marks.append(f'<text x="4" y="{y + 4}" font-size="11">{escape(probe["name"])}</text>')
        marks.append(f'<path d="M{place(low):.1f} {y}H{place(high):.1f}" stroke="{colour}"/>')
        marks.append(f'<circle cx="{place(probe["value"]):.1f}" cy="{y}" r="4" fill="{colour}"/>')
        if probe["null"] is not None and probe["null"] > 0:
            marks.append(f'<path d="M{place(probe["null"]):.1f} {y - 7}v14" stroke="#999"/>')
    style = f'y="{height - 4}" font-size="10" fill="#666" text-anchor="middle"'
    outer = min(ends), max(ends)
    marks += [f'<text x="{place(v):.0f}" {style}>{number(v)}</text>' for v in outer]
    return f'<svg viewBox="0 0 590 {height}" width="590">{"".join(marks)}</svg>'


def _risk_picture(body: dict[str, Any]) -> str:
    """The model's risk by length, each run a line, over the closed curves of five rules in grey,
    if it has them."""
    curves = body["curves"]["risk"]
    places, rules = curves["places"], curves["rules"]
    values = [v for run in curves["runs"] for v in run if isinstance(v, float | int)]
    values += [curve[t] for curve in rules.values() for t in places]
    if not values:
        return ""
    up, across = _scale(values, 230, 15), lambda t: 40 + 380 * t / max(places)

    def line(points: Any, colour: str, width: float, dash: str = "") -> str:
        path = " ".join(f"{across(t):.1f},{up(v):.1f}" for t, v in points)
        return (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"'
                f'{dash}/>')  # fmt: skip

    marks, ends, own = [], [], 15.0
    for i, (name, curve) in enumerate(rules.items()):
        dash = f' stroke-dasharray="{2 + 2 * i} 2"' if i < len(rules) - 1 else ""
        marks.append(line(enumerate(curve), _GREYS[-1 - i], 1.5, dash))
        ends.append([up(curve[-1]) + 4, name, _GREYS[-1 - i]])
    for run in curves["runs"]:
        rows = [(t, v) for t, v in zip(places, run, strict=True) if isinstance(v, float | int)]
        if rows:
            marks.append(line(rows, "#c1440e", 1.3))
            own = up(rows[-1][1]) + 4
    ends.append([own, body["name"], "#c1440e"])
    ends.sort(key=lambda end: end[0])
    for before, after in pairwise(ends):
        after[0] = max(after[0], before[0] + 12)
    marks += [f'<text x="426" y="{y:.0f}" font-size="11" fill="{colour}">{escape(name)}</text>'
              for y, name, colour in ends]  # fmt: skip
    marks += [f'<text x="{across(t):.0f}" y="256" font-size="10" text-anchor="middle">{t}</text>'
              for t in (0, max(places) // 2, max(places))]  # fmt: skip
    marks += [f'<text x="4" y="{up(v) + 3:.0f}" font-size="10" fill="#666">{v:.2g}</text>'
              for v in (min(values), max(values))]  # fmt: skip
    words = "demonstrations; upwards the risk, logarithmic"
    about = f'<text x="230" y="272" font-size="11" text-anchor="middle">{words}</text>'
    return f'<svg viewBox="0 0 610 292" width="610">{"".join(marks)}{about}</svg>'
