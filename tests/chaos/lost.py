"""What every part of ``make chaos`` raises; apart, so that a process begun by its file finds it."""


class Lost(AssertionError):
    """A promise that was not kept; the message says where."""
