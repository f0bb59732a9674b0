"""Level 1 of the ledger: one sentence a message, by theme, with its null."""

from lsa_lab.harness.report.headlines import Message

MESSAGES: dict[str, tuple[Message, ...]] = {}
