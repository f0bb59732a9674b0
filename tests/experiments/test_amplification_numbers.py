"""Untrained stacks of `amplification` are summed up as by hand."""

from types import SimpleNamespace

import numpy as np

from experiments.flow import pairs
from experiments.flow.amplification import compute
from lsa_lab.models import linear_attention
from lsa_lab.models.linear_attention import Params


def test_medians_and_agreement_of_frozen_stacks_are_those_of_their_closed_form(monkeypatch):
    rng = np.random.default_rng(0)
    w_kq, w_pv = rng.normal(size=(2, 2, 3, 3))
    w_kq, eta = w_kq - w_kq.swapaxes(-1, -2), np.array([0.2, 0.3])
    params = Params(
        *(np.repeat(w[:, None, None], 2, axis=1) for w in (w_kq, eta[:, None, None] * w_pv))
    )
    batch, _ = pairs.draw(rng, 2, 5, 2)
    case = (compute.FROZEN, linear_attention.forward, params, batch)
    monkeypatch.setattr(compute.cases, "untrained_cases", lambda config: [case])
    config = SimpleNamespace(kinds=("linear",), gain=1.0, gains=(1.0,))
    summaries, agreed = compute.untrained_summaries(config)
    for r in range(2):
        logs, right = [], []
        for b in range(5):
            both = [of_one(params, batch, r, b, i) for i in range(2)]
            label, token, kappas = (np.array(part) for part in zip(*both, strict=True))
            ratio, whole = np.log(label[0] / label[1]), np.log(token[0] / token[1])
            logs.append(ratio * np.sign(ratio[0]))
            if min(kappas) > -1:
                right.append((whole[1] > whole[0]) == (kappas[0] > kappas[1]))
        np.testing.assert_allclose(summaries[compute.FROZEN]["median"][r], np.median(logs, axis=0))
        assert abs(agreed[f"flow, {compute.FROZEN}"][r] - np.mean(right)) < 1e-12


def of_one(params, batch, r, b, i):
    """|∂ŷ/∂d| and |∂q/∂d| after 1 and 2 layers of q ← q + (d·Kq) P d, and κ = d·K P d."""
    w_kq, w_pv = params.w_kq[r, 0, 0], params.w_pv[r, 0, 0]
    start = np.append(batch.x[r, b, i], batch.y[r, b, i])
    columns = []
    for direction in np.eye(3):
        d, query = start + 1e-30j * direction, np.append(batch.x_query[r, b], 0)
        path = []
        for _ in range(2):
            d, query = (token + (d @ w_kq @ token) * (w_pv @ d) for token in (d, query))
            path.append(query.imag / 1e-30)
        columns.append(path)
    columns = np.array(columns)  # [e, L, e]
    whole = np.linalg.norm(columns, axis=(0, 2))
    return np.linalg.norm(columns[..., -1], axis=0), whole, start @ w_kq @ w_pv @ start


def test_kinds_come_first_where_summaries_are_stacked():
    rows = [{"growth": np.array([1.0, 2.0])}, {"growth": np.array([3.0, 4.0])}]
    assert compute._stacked(rows)["growth"].tolist() == [[1, 2], [3, 4]]
