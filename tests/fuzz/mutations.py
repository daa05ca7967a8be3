"""Mutations of files, each a function of a generator: the same number gives the same file again."""

import gzip
import json
import random
from collections.abc import Callable

PIECES = (
    *(bytes([byte]) for byte in b'\t\n\r\0-0"[]{},:#_ \\|\xff\xc3\xe2\x1b'),
    *(sign.encode() for sign in ("\u2028", "\u0085", "\ufeff", "\u200d", "\u202e", "e\u0301", "²", "٣")),
    *(
        b"\r\n",
        b"\n\n",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\u0000",
        b"NaN",
        b"null",
        b"1e999",
        b"-1",
        b"../",
        b"/etc/",
    ),
    *(b"O", b"B-PER", b"E-X", b"B-a,B-b", b"(A*", b"# ", b"-DOCSTART-", b"||| ", b"'''", b"[[x]]", b"= "),
)
LONG = (
    b"[" * 3_000,
    b'{"a":' * 1_000,
    b" " * 5_000,
    b"a" * 70_000,
    b"\t" * 2_000,
    b"\n" * 5_000,
    b"9" * 5_000,
)
VALUES = (
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    -0.5,
    "",
    " ",
    "x",
    "a" * 3_000,
    "\ud800",
    [],
    [[]],
    {},
    {"a": [1]},
    "../x",
)

Mutation = Callable[[random.Random, bytes], bytes]


def _spot(rng: random.Random, text: bytes) -> int:
    return rng.randrange(len(text) + 1)


def flip(rng: random.Random, text: bytes) -> bytes:
    if not text:
        return text
    position = rng.randrange(len(text))
    return text[:position] + bytes([text[position] ^ rng.randrange(1, 256)]) + text[position + 1 :]


def cut(rng: random.Random, text: bytes) -> bytes:
    return text[: _spot(rng, text)]


def splice(rng: random.Random, text: bytes) -> bytes:
    position = _spot(rng, text)
    return text[:position] + rng.choice(PIECES) + text[position + rng.choice((0, 0, 1, 3, 10)) :]


def swell(rng: random.Random, text: bytes) -> bytes:
    position = _spot(rng, text)
    return text[:position] + rng.choice(LONG) + text[position:]


def lines(rng: random.Random, text: bytes) -> bytes:
    rows = text.split(b"\n")
    position = rng.randrange(len(rows))
    other_position = rng.randrange(len(rows))
    options = rng.randrange(4)
    if options == 0:
        rows[position], rows[other_position] = rows[other_position], rows[position]
    elif options == 1:
        rows.insert(position, rows[other_position])
    elif options == 2:
        del rows[position]
    else:
        rows[position] += rows[other_position]
    return b"\n".join(rows)


def cells(rng: random.Random, text: bytes) -> bytes:
    rows = text.split(b"\n")
    sign = rng.choice([sign for sign in (b"\t", b" ", b",") if sign in text] or [b" "])
    picked_range = range(len(rows)) if rng.random() < 0.2 else [rng.randrange(len(rows))]
    position = rng.randrange(5)
    for index in picked_range:
        row = rows[index].split(sign)
        if position == 0:
            row.append(b"")
        elif position == 1:
            row = row[:-1]
        elif position == 2:
            row = row[::-1]
        elif position == 3:
            row[rng.randrange(len(row))] = b""
        else:
            row.insert(0, rng.choice(PIECES))
        rows[index] = sign.join(row)
    return b"\n".join(rows)


def encoding(rng: random.Random, text: bytes) -> bytes:
    whole_text = text.decode(errors="ignore")
    return rng.choice(
        (
            whole_text.encode("utf-16"), whole_text.encode("latin-1", "replace"), b"\xef\xbb\xbf" + text,
            text.replace(b"\n", b"\r"), text.replace(b"\n", b"\r\n"), text.rstrip(b"\n"),
            text.replace(b"\t", b" "), text.replace(b"\n\n", b"\n"), b"",
            rng.randbytes(rng.randrange(200)), gzip.compress(text), text + text,
        )
    )  # fmt: skip


def values(rng: random.Random, text: bytes) -> bytes:
    """Put another value anywhere into JSON, or into one line of it."""
    rows = text.split(b"\n")
    position = rng.randrange(len(rows))
    for part, whole_result in ((text, True), (rows[position], False)):
        try:
            body = json.loads(part)
        except (ValueError, RecursionError):
            continue
        changed_encodings = json.dumps(_other(rng, body)).encode()
        rows[position] = changed_encodings
        return changed_encodings if whole_result else b"\n".join(rows)
    return splice(rng, text)


def _other(rng: random.Random, body: object) -> object:
    if rng.random() < 0.3 or not isinstance(body, dict | list) or not body:
        return rng.choice(VALUES)
    if isinstance(body, list):
        position = rng.randrange(len(body))
        return [*body[:position], _other(rng, body[position]), *body[position + 1 :]]
    key = rng.choice(list(body))
    if rng.random() < 0.2:
        return {name: value for name, value in body.items() if name != key}
    return {**body, key: _other(rng, body[key])}


TEXT: tuple[Mutation, ...] = (flip, cut, splice, splice, swell, lines, lines, cells, cells, encoding, values)
BINARY: tuple[Mutation, ...] = (flip, flip, cut, splice)


def mutate_text(text: bytes, seed: str, *, binary: bool = False) -> bytes:
    """Return a file with one to three mutations that follow from the seed."""
    rng = random.Random(seed)
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice(BINARY if binary else TEXT)(rng, text)
    return text
