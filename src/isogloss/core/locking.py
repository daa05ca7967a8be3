"""One process at a time: a lock on an open file, which the system takes back when the process ends."""


def locked(file: int) -> bool:
    """Lock an open file until it is closed, if only by the end of the process; False if another has it."""
    try:
        import fcntl
    except ImportError:  # Windows has none; there, two processes at once are the user's care.
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
