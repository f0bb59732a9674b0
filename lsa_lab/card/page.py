"""The page and the badge of a card, rendered from the contents of card.json."""

import json
from html import escape
from typing import Any

from lsa_lab.card.formats import COLOURS, format_headline, format_interval, format_number
from lsa_lab.card.pictures import draw_intervals, draw_risks

GROUPS = {
    "risk": ("How far from the best?", "The mean squared error of the model over that of the Bayes "
             "rule, the best predictor, after the given number of demonstrations. 1 is optimal."),
    "rule": ("Which algorithm?", "The nearest of eleven known rules, by predictions on prompts on "
             "which rules differ. The distance is 0 for equal and 2 for unrelated predictions."),
    "growth": ("Does it generalise to longer prompts?", "The prompts are longer than in training."),
    "shifts": ("Where does it break?", "The prompts have another distribution than in training. "
               "The baseline is ridge regression, which does not know the shift."),
    "sparse": ("Sparse weights", "Only a quarter of the weights is nonzero."),
    "drift": ("Weights that drift", "The best rule is the Kalman filter, which forgets."),
    "overwriting": ("Contradictions", "A key is repeated with a new label."),
    "recall": ("Recall", "The labels are independent of the keys, so the model has to store them."),
    "order": ("Order", "The same demonstrations in a random order."),
    "flows": ("Influence of the labels", "The gradient of the prediction by each label."),
    "clipping": (
        "What can be removed?",
        "The risk over that of the intact model, with the matrices of a layer at half rank or "
        "without one head.",
    ),
    "precision": ("Precision", "The same weights in a lower precision."),
    "speed": ("Cost", "One prompt on the machine that made this card."),
    "steps": ("Learning", "Steps of training with the recipe of the card."),
    "tracking": ("State tracking", "The model is trained from scratch to count signs."),
}  # fmt: skip
_UNTRAINED_GROUPS = {  # texts for weights that the card did not train
    "growth": "The prompts have more than {n} demonstrations.",
    "shifts": "The prompts have another distribution than the one above. The baseline is ridge "
              "regression, which does not know the shift.",
}  # fmt: skip
_STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:52rem;margin:2rem auto;
padding:0 1rem;color:#222}h1{margin-bottom:.2rem}table{border-collapse:collapse;width:100%;
font-size:13px}
td,th{text-align:left;padding:.25rem .5rem;border-bottom:1px solid #ddd;vertical-align:top}
th{cursor:pointer}.n{white-space:nowrap;font-variant-numeric:tabular-nums}small{color:#666}
svg{max-width:100%}"""


def render_badge(body: dict[str, Any]) -> str:
    """Return the headline as an SVG of one line."""
    text = escape(format_headline(body))
    left, right = 62, 6.3 * len(text) + 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="20" '
        f'role="img" aria-label="lsa_lab: {text}"><rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right:.0f}" height="20" fill="#35618f"/>'
        '<g fill="#fff" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="8" y="14">lsa_lab</text><text x="{left + 7}" y="14">{text}</text></g></svg>\n'
    )


def render_card(body: dict[str, Any]) -> str:
    """Return the HTML page of one card."""
    trained, n = body["trained"], 8 * body["d"]
    runs = (
        f"{n} demonstrations in training, {body['runs']} seeds"
        if trained
        else f"{n} demonstrations, given weights, {body['runs']} sets of prompts"
    )
    parts = [
        f"<h1>{escape(body['name'])}</h1><p><b>{escape(format_headline(body))}</b></p>",
        f"<p>A model reads pairs (x, y) with y linear in x plus noise, and predicts y for the next "
        f"x. It has {body['parameters']} parameters. Tier {body['tier']}: d = {body['d']}, noise "
        f"{body['noise_std']}, {runs}. Brackets are 95 % intervals. A statement holds if the whole "
        "interval keeps its bound. docs/card.md of lsa_lab defines every number and the letters of "
        "the rules.</p>",
        "<p>In the pictures a dot is the number and a line its interval, on a logarithmic axis: "
        "green holds, red fails, brown is undecided. A grey tick is the number without the effect, "
        "which is the last column of the tables. The answer 0 is the prediction of a model that "
        "has learned nothing.</p>",
    ]
    for group, (title, text) in GROUPS.items():
        probes = [probe for probe in body["probes"] if probe["group"] == group]
        if probes:
            text = text if trained else _UNTRAINED_GROUPS.get(group, text).format(n=n)
            parts.append(f"<h2>{title}</h2><p>{text}</p>")
            parts.append(draw_risks(body) if group == "risk" else draw_intervals(probes))
            parts.append(_render_table(probes))
    facts = {key: value for key, value in body.items() if key not in ("probes", "curves")}
    text = escape(json.dumps(facts, indent=1))
    parts.append(f"<details><summary>Facts</summary><pre>{text}</pre></details>")
    return render_document(body["name"], "\n".join(parts))


def render_document(title: str, content: str) -> str:
    """Return an HTML document in the style of the cards."""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title>"
        f"<style>{_STYLE}</style><body>{content}</body></html>\n"
    )


def _render_table(probes: list[dict[str, Any]]) -> str:
    lines = []
    for probe in probes:
        verdict, value = probe["verdict"], escape(format_number(probe["value"]))
        null = ""
        if probe["null"] is not None:
            null = f"{format_number(probe['null'])}: {escape(probe['null_is'])}"
        note = f"<br><small>{escape(probe['note'])}</small>" if probe["note"] else ""
        lines.append(
            f"<tr><td>{escape(probe['name'])}<br><small>{escape(probe['says'])}</small>{note}</td>"
            f'<td class="n">{value} <small>{format_interval(probe)}</small></td>'
            f'<td style="color:{COLOURS[verdict]}">{verdict}</td>'
            f"<td><small>{null}</small></td></tr>"
        )
    head = "<tr><th>number</th><th>value</th><th>verdict</th><th>without the effect</th></tr>"
    return f'<div style="overflow-x:auto"><table>{head}{"".join(lines)}</table></div>'
