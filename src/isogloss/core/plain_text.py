"""Text from files and recipes, made safe to show: nothing in it steers a terminal or turns a line around."""

import re
import unicodedata

TURNING = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
"""Unicode's embeddings, overrides and isolates: they change the direction of what stands behind them."""


FOLDERS = re.compile(r"""(?<![^ \n])(['"(`]*)(?:\w:)?[/\\](?:[^ \n]*[/\\])?""")
"""What stands before the last part of an absolute path: what opens it, and its folders."""


def plain(text: str) -> str:
    """Return the text without control characters (line ends and tabs stay) and without turns of direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter for letter in text if _shows(letter))


def without_folders(text: object) -> str:
    """Return a text, safe to show, without the folders of absolute paths: they belong to one machine."""
    return FOLDERS.sub(r"\1…/", plain(str(text)))


def _shows(letter: str) -> bool:
    return letter in "\n\t" or (unicodedata.category(letter) != "Cc" and letter not in TURNING)
