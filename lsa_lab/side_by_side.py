"""How many rows of a ``lax.map`` go side by side: decided here for every platform."""

import jax

from lsa_lab.arguments import check_at_least

_ON_ACCELERATORS = 32  # times as many: a core's caches hold few, and an accelerator idles over few


def rows(together: int | None, on_cpu: int) -> int:
    """``together`` where it is said, else what suits the platform: ``on_cpu`` rows, or many more.

    Ask for fewer where their memory is too much. The number is part of what the last bits rest on.
    """
    if together is not None:
        return check_at_least(together, "together")
    return on_cpu if jax.default_backend() == "cpu" else _ON_ACCELERATORS * on_cpu
