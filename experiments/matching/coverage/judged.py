"""What is judged of the shares and of the errors, as rows."""

from experiments.matching.coverage.claims import samples
from experiments.matching.coverage.config import (
    CLASSES,
    KINDS,
    PROXIES,
    SHARES,
    TAGS,
    count_proxies,
    statements,
)
from lsa_lab import results
from lsa_lab.harness import judged_panel, style

ORDER = (CLASSES, *(kind for kind in KINDS if kind != CLASSES))  # the headline's kind first
WORDS = dict(zip(PROXIES, ("no intercept", "intercept", "intercept,\nstart left out"), strict=True))
ERRORS = {
    "minority": "minority / random",
    "favours": "minority / majority",
    "strata": "stratified / matching",
    "whitened": "whitened / matching",
}


def judged_shares(ax, dataset):
    labels = {
        f"{TAGS[kind]}_{name}": f"{WORDS[rule]}, {kind}".replace("\n", " ")
        for kind in ORDER
        for rule, name in list(zip(PROXIES, SHARES, strict=True))[: count_proxies(kind)]
    }
    labels |= {f"{TAGS[kind]}_shares_whitened": f"whitened, {kind}" for kind in ORDER}
    judged(ax, dataset, labels, (0.003, 20.0), (0.01, 0.1, 1, 10))
    ax.set(xlabel="KL / random's", title="judged: shares")


def judged_errors(ax, dataset):
    labels = {
        f"{TAGS[kind]}_{row}": f"{name}, {kind}" for row, name in ERRORS.items() for kind in ORDER
    }
    judged(ax, dataset, labels, (0.5, 4.0), (0.5, 1, 2, 4))
    ax.set(xlabel="ratio of errors", title="judged: errors")


def judged(ax, dataset, labels, span, ticks):
    style.log_axes(ax, x=True, ticks=ticks)
    rows = statements(results.config_of(dataset))
    judged_panel.rows(ax, rows, samples(dataset), labels, span)
    ax.axvline(1, color="grey", lw=0.8)
