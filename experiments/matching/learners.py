"""Who answers after the chosen demonstrations, by name. No jax."""

EXACT = ("descent", "ridge")


def learners(config) -> list[str]:
    """The exact ones, then the trained models of ``config.models``."""
    return [*EXACT, *(name for name, _ in config.models)]
