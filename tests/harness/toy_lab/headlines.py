"""The toy's headlines: one judged, one proved."""

from lsa_lab.harness.report.headlines import Headline

HEADLINES = (
    Headline("T1, section 2", "The mean is small", "toy", "toy.mean"),
    Headline("T1, Theorem 1", "It is large", "theorem", theorem="tests/large.py", proved="fails"),
)
