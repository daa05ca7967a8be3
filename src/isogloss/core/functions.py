"""Functions that always return the same value, for parameters that are functions."""


def do_nothing(*_: object) -> None:
    """Ignore all arguments."""


def always(*_: object) -> bool:
    """Return True."""
    return True


def never(*_: object) -> bool:
    """Return False."""
    return False
