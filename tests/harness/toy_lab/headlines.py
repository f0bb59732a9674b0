"""The toy's level 0: a statement that is tried and proved, and one that is proved alone."""

from lsa_lab.harness.report.headlines import Headline, Proof, Words

FIRST = ("T1, section 2",)
HEADLINES = (
    Headline(
        "T1, section 2",
        "The mean is small",
        Words("half of it is chance: {0}", "toy.wrong"),
        Proof("holds", "tests/small.py"),
        trained=Words("{0:i} of one", "toy.mean"),
    ),
    Headline(
        "T1, Theorem 1",
        "It is large",
        Words("none needed, because it is proved"),
        Proof("fails", "tests/large.py"),
    ),
)
