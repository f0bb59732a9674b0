"""What every part of the harness raises where it cannot do what it is asked for."""


class RefusalError(Exception):
    """The command line cannot be obeyed; the message says what can."""
