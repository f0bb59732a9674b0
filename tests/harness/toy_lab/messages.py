"""The toy's level 1."""

from lsa_lab.harness.report.headlines import Message

MESSAGES = {
    "theme": (
        Message("The mean is {0}", "toy.mean", "none needed, because it is a toy"),
        Message("{holds} of {cells} hold", "toy.*", "as wrong: {0}", "toy.wrong", "counted"),
    )
}
