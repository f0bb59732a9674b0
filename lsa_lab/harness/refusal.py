"""What every part of the harness raises where it cannot do what it is asked for."""

import contextlib
from collections.abc import Iterator


class RefusalError(Exception):
    """The command line cannot be obeyed; the message says what can."""


@contextlib.contextmanager
def refused(*kinds: type[Exception], before: str = "", after: str = "") -> Iterator[None]:
    """Errors of these kinds are refusals, in their own words between these."""
    try:
        yield
    except kinds as error:
        raise RefusalError(f"{before}{error}{after}") from None
