"""Ways to damage a file, each a function from bytes to bytes, drawn by hypothesis."""

import gzip
import lzma
import re
from collections.abc import Callable

from hypothesis import strategies as st

Damage = Callable[[bytes], bytes]

PIECES = [
    *(bytes([byte]) for byte in b'\t\n\r\0-0"[]{},:#_ \\\xff\xc3\xe2'),
    *(
        sign.encode()
        for sign in ("\u2028", "\u0085", "\ufeff", "\u200d", "\u202e", "e\u0301", "²", "٣", "\x1c")
    ),
    b"|||",
    b"\r\n",
    b"\n\n",
    b"\xed\xa0\x80",  # a lone surrogate in what calls itself UTF-8
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\\u0000",
    b"en",
    b"links",
    b"sentence1",
    b"label",
    b"NaN",
    b"null",
]
LONG = {
    "deep list": b"[" * 900,
    "deeper list": b"[" * 200_000,
    "deep object": b'{"a":' * 900,
    "spaces": b" " * 5000,
    "long word": b"a" * 70_000,
    "many columns": b"\t" * 5000,
    "many lines": b"\n" * 5000,
}
"""By name, so that hypothesis can show which."""
NUMBERS = [b"-1", b"0", b"1", b"7", b"1e9", b"1e999", b"2.5", b"NaN", b"-Infinity", b"true", b"null", b'"1"',
           b"9" * 20, b"9" * 5000, b"1_0", "٣".encode(), b"0x1", b"00", b"[]", b"{}"]  # fmt: skip

place = st.floats(0, 1, exclude_max=True)


def cut(where: float) -> Damage:
    """End the file early."""
    return lambda text: text[: int(where * len(text))]


def splice(where: float, length: int, instead: bytes) -> Damage:
    """Put bytes in the place of others."""

    def change(text: bytes) -> bytes:
        position = int(where * len(text))
        return text[:position] + instead + text[position + length :]

    return change


def swell(where: float, kind: str) -> Damage:
    """Put very much in."""
    return splice(where, 0, LONG[kind])


def flip(where: float, bits: int) -> Damage:
    """Change bits of one byte."""

    def change(text: bytes) -> bytes:
        position = int(where * len(text))
        return text[:position] + bytes([text[position] ^ bits]) + text[position + 1 :] if text else text

    return change


def number(where: float, instead: bytes) -> Damage:
    """Put something in the place of a number."""

    def change(text: bytes) -> bytes:
        matches = list(re.finditer(rb"\d+", text))
        if not matches:
            return text
        match = matches[int(where * len(matches))]
        return text[: match.start()] + instead + text[match.end() :]

    return change


def lines(change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    """Do something to the lines."""
    return lambda text: b"\n".join(change(text.split(b"\n")))


def repeat(origin: float, where: float) -> Damage:
    """Put a line a second time, anywhere."""

    def change(all_: list[bytes]) -> list[bytes]:
        position = int(where * len(all_))
        return [*all_[:position], all_[int(origin * len(all_))], *all_[position:]]

    return lines(change)


def swap(left: float, right: float) -> Damage:
    """Exchange two lines."""

    def change(all_: list[bytes]) -> list[bytes]:
        i = int(left * len(all_))
        j = int(right * len(all_))
        all_[i], all_[j] = all_[j], all_[i]
        return all_

    return lines(change)


def remove(where: float) -> Damage:
    """Take a line away."""
    return lines(lambda all_: [line for i, line in enumerate(all_) if i != int(where * len(all_))])


def columns(where: float, change: Callable[[list[bytes]], list[bytes]]) -> Damage:
    """Change the columns of one line, or (where ≥ 0.9) of all."""

    def change_cells(all_: list[bytes]) -> list[bytes]:
        position = int(where * len(all_))
        return [
            b"\t".join(change(line.split(b"\t"))) if i == position or where >= 0.9 else line
            for i, line in enumerate(all_)
        ]

    return lines(change_cells)


def twice(where: float) -> Damage:
    """Say a member of a JSON object twice, the second time differently."""

    def change(text: bytes) -> bytes:
        matches = list(re.finditer(rb'"\w+":', text))
        if not matches:
            return text
        match = matches[int(where * len(matches))]
        return text[: match.start()] + match[0] + b'"x", ' + text[match.start() :]

    return change


WHOLE: list[Damage] = [
    lambda text: b"",
    lambda text: text.split(b"\n")[0],
    lambda text: text.split(b"\n")[0] + b"\n",
    lambda text: text + text,
    lambda text: text.replace(b"\n", b"\r\n"),
    lambda text: text.replace(b"\n", b"\r"),
    lambda text: text.replace(b"\n", "\u2028".encode()),
    lambda text: b"\xef\xbb\xbf" + text,
    lambda text: b"\xef\xbb\xbf\xef\xbb\xbf" + text,
    lambda text: text.decode(errors="ignore").encode("utf-16"),
    lambda text: text.rstrip(b"\n"),
    lambda text: text + b"\n\n\n",
    lambda text: text.replace(b"\t", b" "),
]

one_damage = st.one_of(
    st.sampled_from(WHOLE),
    st.builds(cut, place),
    st.builds(splice, place, st.integers(0, 12), st.one_of(st.sampled_from(PIECES), st.binary(max_size=3))),
    st.builds(splice, place, st.just(0), st.sampled_from(PIECES)),
    st.builds(swell, place, st.sampled_from(sorted(LONG))),
    st.builds(flip, place, st.integers(1, 255)),
    st.builds(number, place, st.sampled_from(NUMBERS)),
    st.builds(repeat, place, place),
    st.builds(swap, place, place),
    st.builds(remove, place),
    st.builds(columns, place, st.sampled_from([lambda row: [*row, row[-1]], lambda row: [*row, b"x"]])),
    st.builds(
        columns, place, st.sampled_from([lambda row: row[:-1], lambda row: row[1:], lambda row: row[::-1]])
    ),
    st.builds(twice, place),
)

damages = st.lists(one_damage, min_size=1, max_size=3)


def _members(text: bytes) -> bytes:
    return gzip.compress(text[: len(text) // 2]) + gzip.compress(text[len(text) // 2 :])


def _garbage(text: bytes) -> bytes:
    return gzip.compress(text) + b"more"


PACKINGS: list[tuple[str, Damage]] = [
    ("", bytes),
    ("", bytes),
    ("", bytes),
    (".gz", gzip.compress),
    (".gz", _members),
    (".gz", _garbage),
    (".gz", lambda text: gzip.compress(text)[:-5]),
    (".gz", lzma.compress),
    (".gz", bytes),
    (".xz", lambda text: lzma.compress(text, preset=0)),
    (".xz", lambda text: lzma.compress(text, preset=0) * 2),
    (".xz", lambda text: lzma.compress(text, preset=0)[:-7]),
    (".xz", lambda text: lzma.compress(text, format=lzma.FORMAT_ALONE, preset=0)),
    (".xz", bytes),
]
"""Suffix, and how the bytes under it come about. Some are not what the suffix says."""
