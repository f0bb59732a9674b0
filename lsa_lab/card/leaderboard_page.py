"""The leaderboard: a table of all cards, with the differences between seeds and between layers."""

import math
from collections import defaultdict
from collections.abc import Sequence
from html import escape
from itertools import combinations
from statistics import median
from typing import Any

from lsa_lab.card.formats import COLOURS, format_headline, format_interval, format_number
from lsa_lab.card.page import render_document


def render_leaderboard(cards: Sequence[dict[str, Any]]) -> str:
    """Return the HTML table of all cards, which a click on a column head sorts."""
    names = list(dict.fromkeys(probe["name"] for body in cards for probe in body["probes"]))
    heads = ["model", "headline", "parameters", "runs", "tier", *names]
    rows = []
    for body in cards:
        probes = {probe["name"]: probe for probe in body["probes"]}
        cells = [f'<a href="{escape(body["name"])}/index.html">{escape(body["name"])}</a>']
        cells += [escape(format_headline(body)), *(str(body[key]) for key in heads[2:5])]
        cells += [_render_cell(probes.get(name)) for name in names]
        rows.append("<tr>" + "".join(f'<td class="n">{cell}</td>' for cell in cells) + "</tr>")
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    intro = (
        "<style>body{max-width:none}th{vertical-align:bottom}td:first-child{position:sticky;"
        "left:0;background:#fff}</style>"
        "<h1>Cards</h1><p>Each row is one model. The recipe of training is the same for all "
        "models, and the tier gives its size: compare rows of one tier. Click a column head to "
        "sort. Green holds, red fails, brown is undecided. Brackets are 95 % intervals over runs: "
        "over seeds, or over "
        f"sets of prompts for given weights. {describe_differences(cards)}</p>"
    )
    table = f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead><tbody>'
    return render_document("Cards", f"{intro}{table}{''.join(rows)}</tbody></table></div>{_SORT}")


def _render_cell(probe: dict[str, Any] | None) -> str:
    if probe is None:
        return ""
    colour, value = COLOURS[probe["verdict"]], escape(format_number(probe["value"]))
    return f'<span style="color:{colour}">{value}</span> <small>{format_interval(probe)}</small>'


def describe_differences(cards: Sequence[dict[str, Any]]) -> str:
    """Return a text: the difference of two seeds of one layer, and of two layers of one tier.

    A difference is the median over pairs of the mean |log risk - log risk| over all lengths.
    """
    runs = [
        (body["name"], body["tier"], [math.log(max(value, 1e-12)) for value in run])
        for body in cards if body["causal"] and body["trained"]
        for run in body["curves"]["risk"]["runs"]
        if all(isinstance(value, float | int) for value in run)
    ]  # fmt: skip
    differences: dict[bool, list[float]] = {True: [], False: []}  # by whether the layer is the same
    for (name_a, tier_a, risks_a), (name_b, tier_b, risks_b) in combinations(runs, 2):
        if tier_a == tier_b and len(risks_a) == len(risks_b):
            gaps = [abs(a - b) for a, b in zip(risks_a, risks_b, strict=True)]
            differences[name_a == name_b].append(sum(gaps) / len(gaps))
    ratios = sorted((ratio, name) for name, ratio in layer_to_seed_ratios(cards).items())
    if not (all(differences.values()) and ratios and median(differences[True]) > 0):
        return ""  # too few cards, or identical seeds
    seeds, layers = median(differences[True]), median(differences[False])
    (least, least_name), (greatest, greatest_name) = ratios[0], ratios[-1]
    return (
        f"Risks of two seeds of one layer differ by {100 * seeds:.2g} % (median over pairs). Risks "
        f"of two layers of one tier differ by {100 * layers:.2g} %, {layers / seeds:.2g} times as "
        f"much. The same ratio was computed for {len(ratios)} probes with an interval: "
        "the difference between two layers over that between two seeds. Its median over probes is "
        f"{median(ratio for ratio, _ in ratios):.2g}. It is smallest, {least:.2g}, for "
        f"{escape(least_name)}, and largest, {greatest:.2g}, for {escape(greatest_name)}."
    )


def layer_to_seed_ratios(cards: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Return the difference of two layers of one tier over that of two seeds, for each probe.

    Both differences are medians: over pairs of layers, and over layers. The standard deviation s of
    seeds follows from the interval, m ± t s/√R; two normal seeds differ by .954 s in the median.
    Ratios, which have symmetric intervals of their logarithms, are compared on that scale.
    """
    ratios = {}
    for name, rows in _collect_numbers(cards).items():
        if all(
            low > 0 and math.isclose(low * high, v * v, rel_tol=1e-4) for low, high, v, _ in rows
        ):
            rows = [[*map(math.log, row[:3]), row[3]] for row in rows]
        seeds = 0.954 * median((high - low) / 2 * factor for low, high, _, factor in rows)
        if len(rows) > 1 and seeds > 0:
            ratios[name] = median(abs(a[2] - b[2]) for a, b in combinations(rows, 2)) / seeds
    return ratios


def _collect_numbers(cards: Sequence[dict[str, Any]]) -> dict[str, list[list[float]]]:
    """Return rows [low, high, value, √R/t] for each probe, in the tier that has most of them."""
    from scipy.special import stdtrit

    by_tier: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    for body in cards:
        if body["causal"] and body["trained"]:
            factor = math.sqrt(body["runs"]) / float(stdtrit(body["runs"] - 1, 0.975))
            for probe in body["probes"]:
                numbers = [*(probe["interval"] or []), probe["value"], factor]
                if len(numbers) == 4 and all(isinstance(v, float | int) for v in numbers):
                    by_tier[probe["name"], body["tier"]].append(numbers)
    largest: dict[str, list[list[float]]] = {}
    for (name, _), rows in by_tier.items():
        largest[name] = max(largest.get(name, []), rows, key=len)
    return largest


_SORT = """<script>document.querySelectorAll('th').forEach((head,i)=>head.onclick=()=>{
const body=document.querySelector('tbody'),key=r=>{const t=r.cells[i].innerText.trim(),
x=parseFloat(t);return t===''||t==='-'?[2,0]:t.startsWith('∞')?[0,1e99]:isNaN(x)?[1,t]:[0,x]};
const up=head.dataset.up!=='1';head.dataset.up=up?'1':'0';
[...body.rows].sort((a,b)=>{const [k,p]=key(a),[l,q]=key(b);
return k-l||(p>q?1:p<q?-1:0)*(up?1:-1)}).forEach(r=>body.append(r))})</script>"""
