"""What a designer reads first: the headline, the eight lines of the summary, the rank."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from lsa_lab.card.cost import STATE_PROBE
from lsa_lab.card.evaluation import TIERS

COMMITTED = Path(__file__).with_name("committed.json")  # rows of the cards of lsa_lab.card.layers
BREAK = 2.0  # times the Bayes risk: a longer prompt with a larger risk breaks the model
UNLEARNT = 0.9  # of the risk of the answer 0, from which a model did not learn
_STRENGTHS = ("tracking", "growth", "drift", "overwriting", "recall", "shifts", "precision")
_TRACKED = 0.95  # accuracy from which state tracking is a strength
_PEERS = 2.0  # factor between the parameters, or the states, of layers that are ranked together
_SIZES = ("trained", "steps", "batch", "d", "n", "noise_std", "task", "pretraining_tasks")


def format_number(value: Any) -> str:
    """Return a number with three digits, or the symbol of a number that is not finite."""
    if isinstance(value, str):
        return {"inf": "∞", "-inf": "-∞", "nan": "undefined"}.get(value, value)
    return f"{value:.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}"


def get_probes(body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the probes of a card by name."""
    return {probe["name"]: probe for probe in body["probes"]}


def get_risk(body: dict[str, Any]) -> dict[str, Any]:
    """Return the probe of the risk over that of the Bayes rule at the length in training."""
    return get_probes(body)[f"risk over Bayes, n = {body['n']}"]


def get_rule(body: dict[str, Any]) -> str:
    """Return the name of the nearest rule, "" for a task other than regression."""
    return str(get_probes(body).get("nearest rule", {"value": ""})["value"])


def did_learn(body: dict[str, Any]) -> bool:
    """Return whether the median risk is below .9 of that of the answer 0."""
    risk = get_risk(body)
    return float(risk["value"]) < UNLEARNT * float(risk["null"])


def find_break(body: dict[str, Any]) -> int | None:
    """Return the first measured length with a median risk above twice the Bayes risk, or None."""
    growth = body["curves"]["growth"]
    medians = np.median(np.array(growth["runs"], float), 0)
    pairs = zip(growth["lengths"], medians, strict=True)
    return next((length for length, risk in pairs if risk > BREAK), None)


def find_strength(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the first probe, hardest first, whose bound every run keeps; None if there is none."""
    for group in _STRENGTHS if did_learn(body) else ():
        for probe in reversed([probe for probe in body["probes"] if probe["group"] == group]):
            kept = probe["verdict"] and probe["kept"] == len(probe["samples"])
            if kept and (group != "tracking" or probe["value"] >= _TRACKED):
                return probe
    return None


def describe_trial(body: dict[str, Any]) -> str:
    """Return a warning if the training was shorter than in the laptop tier, or ""."""
    few = body["trained"] and body["steps"] < TIERS["laptop"].steps
    return f"{body['steps']} steps: not for judging" if few else ""


def count_kept(body: dict[str, Any], probe: dict[str, Any]) -> str:
    """Return a text such as "7 of 8 seeds", or "" without a verdict."""
    unit = "seeds" if body["trained"] else "sets of prompts"
    return f"{probe['kept']} of {len(probe['samples'])} {unit}" if probe["verdict"] else ""


def format_headline(body: dict[str, Any]) -> str:
    """Return one line: the risk, the rule, the length at which the model breaks, its strength."""
    risk = get_risk(body)
    parts = [f"{format_number(risk['value'])} x Bayes", get_rule(body)]
    if not did_learn(body):
        parts = [f"did not learn: {parts[0]}, the answer 0 has {format_number(risk['null'])}"]
    elif length := find_break(body):
        parts.append(f"breaks at n = {length}")
    else:
        parts.append(f"does not break up to n = {body['curves']['growth']['lengths'][-1]}")
    if strength := find_strength(body):
        parts.append(f"best: {strength['name']} {format_number(strength['value'])}")
    return " | ".join(filter(None, [describe_trial(body), *parts]))


def summarise(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the eight lines of the summary, each with its heading."""
    n, probes, risk, row = body["n"], get_probes(body), get_risk(body), make_row(body)
    last, strength = body["curves"]["growth"]["lengths"][-1], find_strength(body)
    ends = ", ".join(format_number(end) for end in risk["interval"] or ())
    answer = f"{format_number(risk['value'])} times the Bayes risk [{ends}] at n = {n}"
    if not did_learn(body):
        answer = f"did not learn: {answer}, and the answer 0 {format_number(risk['null'])} times"
    reach = f"the risk stays below {BREAK:g} times the Bayes risk up to n = {last}"
    if length := row["breaks"]:
        reach = f"breaks at n = {length}, {length / n:.3g} times the length in training: "
        reach += f"there the risk exceeds {BREAK:g} times the Bayes risk"
    note = probes.get("nearest rule", {"note": "rules are for regression"})["note"]
    best = strength and f"{strength['name']}: {format_number(strength['value'])}"
    learning = "the weights were trained elsewhere"
    if body["trained"]:
        steps = format_number(probes["steps to twice the Bayes risk"]["value"])
        learning = f"twice the Bayes risk after {steps} of {body['steps']} steps"
        learning = learning.replace("after ∞ of", "not reached in")
        learning += f", in {body['runs']} seeds at rate {body['rate']:g}"
    state, time = row["state"], next(p for p in body["probes"] if p["group"] == "speed")
    size = f"{state} numbers in the state" if state else "a state that grows or is unknown"
    return [
        ("Risk", answer.replace(" []", "")),
        ("Rule", "; ".join(filter(None, [row["rule"], note]))),
        ("Length", reach),
        ("Best strength", best or "no probe of the list holds in every run"),
        ("Weakness", _describe_weakness(body)),
        ("Learning", learning),
        ("Cost", f"{body['parameters']} parameters, {size}, {format_number(time['value'])} "
                 f"{time['name']}"),
        ("Rank", describe_rank(row)),
    ]  # fmt: skip


def _describe_weakness(body: dict[str, Any]) -> str:
    bounded = [probe for probe in body["probes"] if probe["verdict"]]
    failed = [probe for probe in bounded if probe["verdict"] == "fails"]
    text = f"{len(failed)} of {len(bounded)} bounds fail"
    if not failed:
        return text

    excesses = [
        float(probe["value"]) / probe["at_most"] if probe["at_least"] is None
        else probe["at_least"] / max(float(probe["value"]), 1e-9) for probe in failed
    ]  # fmt: skip
    worst = failed[int(np.argmax(excesses))]
    return f"{text}; farthest from its bound: {worst['name']}, {format_number(worst['value'])}"


def describe_rank(row: dict[str, Any]) -> str:
    """Return the rank by risk among the committed layers of similar parameters, and of state."""
    others = [other for other in load_committed() if other["sizes"] == row["sizes"]]
    if not others:
        return "not ranked: no committed layer has the same task, sizes and steps"
    texts = []
    for key, words in ("parameters", "parameters"), ("state", "numbers in the state"):
        peers = [
            other for other in others
            if other["name"] != row["name"] and row[key] and other[key]
            and 1 / _PEERS <= other[key] / row[key] <= _PEERS
        ]  # fmt: skip
        rank = 1 + sum(float(other["risk"]) < float(row["risk"]) for other in peers)
        if peers:
            texts.append(f"{rank} of {len(peers) + 1} layers with similarly many {words}")
    return "by risk " + ", ".join(texts) if texts else "no committed layer is of similar size"


def make_row(body: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a card in the table of all cards."""
    state = get_probes(body).get(STATE_PROBE)  # absent if it grows with the prompt or is not known
    return {
        "name": body["name"],
        "headline": format_headline(body),
        "risk": get_risk(body)["value"],
        "rule": get_rule(body),
        "breaks": find_break(body),
        "parameters": body["parameters"],
        "state": int(state["value"]) if state else None,
        "tier": body["tier"],
        "runs": body["runs"],
        "sizes": {name: body.get(name) for name in _SIZES},
        "cells": {
            probe["name"]: [probe["value"], probe["verdict"], count_kept(body, probe)]
            for probe in body["probes"]
        },
    }


def load_committed() -> list[dict[str, Any]]:
    """Return the rows of the committed layers, which travel with the package."""
    return list(json.loads(COMMITTED.read_text("utf-8")))


def format_summary(body: dict[str, Any]) -> str:
    """Return the summary as ten lines of text."""
    sizes = f"{body['tier']} tier, {body['runs']} runs, d = {body['d']}, n = {body['n']}"
    lines = [f"Card of {body['name']}: {sizes}", describe_trial(body) or format_headline(body)]
    return "\n".join(lines + [f"{label:14}{text}" for label, text in summarise(body)])
