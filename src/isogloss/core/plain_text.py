"""Text from files and recipes, made safe to print: without control characters and direction overrides."""

import re
import unicodedata

DIRECTION_CONTROLS = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
"""Unicode's embeddings, overrides and isolates, which change the direction of the text after them."""


LEADING_FOLDERS = re.compile(r"""(?<![^ \n])(['"(`]*)(?:\w:)?[/\\](?:[^ \n]*[/\\])?""")
"""Everything before the last part of an absolute path: the opening bracket or quote, and the folders."""


def plain(text: str) -> str:
    """Return the text without control characters (except line ends and tabs) and direction overrides."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        letter
        for letter in text
        if letter in "\n\t" or (unicodedata.category(letter) != "Cc" and letter not in DIRECTION_CONTROLS)
    )


def without_folders(text: object) -> str:
    """Return printable text without the folders of absolute paths, which differ between machines."""
    return LEADING_FOLDERS.sub(r"\1…/", plain(str(text)))
