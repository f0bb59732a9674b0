"""The trainings that diverged, which no figure shows."""


def left_out(dataset) -> int:
    """How many of the trainings in ``status`` diverged."""
    return sum(text.startswith("diverged") for text in dataset.status.values)
