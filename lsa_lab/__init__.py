"""A laboratory for the theory of in-context learning.

Import the module you need, for example ``from lsa_lab.models import linear_attention``; the report
card is here too: ``from lsa_lab import report_card, identify``. Nothing is configured on import:
precision, devices and caches are the business of whoever starts the process.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lsa_lab.card import identify, report_card

__all__ = ["identify", "report_card"]
__version__ = "1.0.0.dev0"


def __getattr__(name: str) -> Any:
    """Import the card at its first use, so that the import of the package stays light."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lsa_lab import card

    return getattr(card, name)
