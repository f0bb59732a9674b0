"""Who answers after the chosen demonstrations, by name, and names in statements' ids. No jax."""

EXACT = ("descent", "ridge")


def learners(config) -> list[str]:
    """The exact ones, then the trained models of ``config.models``."""
    return [*EXACT, *(name for name, _ in config.models)]


def tag(words: str) -> str:
    """A learner, a rule or a kind of pool in the id of a statement."""
    return words.replace(",", "").replace(" ", "_").replace("-", "_")
