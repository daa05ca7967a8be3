"""Texts as files, lines as texts."""

from collections.abc import Iterable

from isogloss.data.files import File, byte_stream


def text_file(text: str | bytes, name: str = "input") -> File:
    """Give a text as a file."""
    body = text.encode() if isinstance(text, str) else text
    return byte_stream(name, body.splitlines(keepends=True))


def joined(lines: Iterable[str]) -> str:
    """Give lines as a text."""
    return "".join(f"{line}\n" for line in lines)
