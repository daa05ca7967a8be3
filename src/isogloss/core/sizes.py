"""Numbers of bytes for people."""


def format_size(size: int) -> str:
    """Format a number of bytes as MB, or as kB below 0.1 MB."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
