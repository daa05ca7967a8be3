"""fast_align (Dyer, Chahuneau & Smith 2013), trained in process by systran-align, both ways.

The library learns two lexicons by EM and writes them to files; these are read here, so that the best links
of either direction, their probabilities and any symmetrisation of them can be had (the library's own
alignment gives one symmetrisation alone, from lexicons with rare entries left out).
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isogloss.aligners.diagonal_model import NONE, Lexicon, Words, best_links, joint
from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.progress import Progress
from isogloss.core.records import writing
from isogloss.data.examples import Translation
from isogloss.data.symmetrization import Symmetrization, symmetrized
from isogloss.data.word_links import Aligned

LEXICONS = "fast-align.npz"
WORDS = "fast-align.json"

WHOLE_LEXICON = -30.0
"""Log of the least probability kept, next to a word's best; the library's own, −4, costs a point of AER."""

EPS = "<eps>"
"""What the library calls no word."""

Sentences = tuple[list[Words], list[Words]]
Links = dict[tuple[int, int], float]


@dataclass(frozen=True, kw_only=True)
class FastAlign:
    """Align by how often words are translations of one another and how near the diagonal they are."""

    name: ClassVar[str] = "fast-align"
    needs_encoder: ClassVar[bool] = False

    symmetrization: Symmetrization = "intersection"
    """How both directions become one: intersection (one-to-one), union, grow-diag, grow-diag-final-and, or
    forward or backward alone."""

    iterations: int = 5
    """Rounds of expectation maximisation."""

    lowercase: bool = True
    """Whether capitals count as small letters."""

    tension: float = 4.0
    """How strongly words near the diagonal are preferred (lambda); training starts from it and adapts it."""

    prior: float = 0.01
    """Dirichlet prior of the lexicon (alpha); 0 for plain maximum likelihood."""

    none: float = 0.08
    """Probability that a word has no counterpart (p0)."""

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Learn both lexicons from the pairs, keep them, and link the words of the pairs."""
        library = _library()
        setting.folder.mkdir(parents=True, exist_ok=True)
        words: tuple[dict[str, int], dict[str, int]] = ({}, {})
        numbered = self._numbered(setting.pairs, words, learn=True)
        setting.tell(Progress(what="lexicon", done=0, total=2, remark=f"{len(setting.pairs)} pairs"))
        lexicons = self._learned(library, numbered)
        _save(setting.folder, words, lexicons)
        return self._linked(numbered, lexicons, setting)

    def align_new(self, setting: AlignSetting) -> list[Aligned]:
        """Link the words of new pairs with the lexicons in the setting's folder; no library is needed."""
        words, lexicons = _load(setting.folder)
        return self._linked(self._numbered(setting.pairs, words, learn=False), lexicons, setting)

    def _numbered(
        self, pairs: Iterable[Translation], words: tuple[dict[str, int], dict[str, int]], *, learn: bool
    ) -> Sentences:
        """Return the words of both sides as numbers, new ones below 0 unless they are to be learned."""
        texts: tuple[list[str], list[str]] = ([], [])
        for pair in pairs:
            for side, text in zip(texts, (pair.first, pair.second), strict=True):
                side.append(text.lower() if self.lowercase else text)
        first, second = (
            [_numbers(text.split(), known, learn=learn) for text in side]
            for side, known in zip(texts, words, strict=True)
        )
        return first, second

    def _learned(self, library: Any, numbered: Sentences) -> tuple[Lexicon, Lexicon]:
        with TemporaryDirectory(prefix="fast-align-") as place:
            text, forward, backward = (Path(place, name) for name in ("text", "forward", "backward"))
            with text.open("w", encoding="ascii", newline="\n") as file:
                for first, second in zip(*numbered, strict=True):
                    if len(first) and len(second):  # A side without words teaches nothing.
                        file.write(f"{_line('a', first)} ||| {_line('b', second)}\n")
            if not text.stat().st_size:
                return _no_lexicon(), _no_lexicon()
            library.generate_alignment_probabilities(
                str(text),
                str(forward),
                str(backward),
                iterations=self.iterations,
                favor_diagonal=True,
                beam_threshold=WHOLE_LEXICON,
                diagonal_tension=self.tension,
                optimize_tension=True,
                variational_bayes=self.prior > 0,
                alpha=self.prior or 0.01,
                prob_align_null=self.none,
            )
            return read_lexicon(forward), read_lexicon(backward)

    def _linked(
        self, numbered: Sentences, lexicons: tuple[Lexicon, Lexicon], setting: AlignSetting
    ) -> list[Aligned]:
        setting.tell(Progress(what="links", done=1, total=2))
        forward, backward = (
            self._directed(list(zip(*sides, strict=True)), lexicon)
            for sides, lexicon in zip((numbered, numbered[::-1]), lexicons, strict=True)
        )
        made = [
            _aligned(one, {(i, j): score for (j, i), score in other.items()}, self.symmetrization)
            for one, other in zip(forward, backward, strict=True)
        ]
        setting.tell(Progress(what="links", done=2, total=2))
        return made

    def _directed(self, pairs: Sequence[tuple[Words, Words]], lexicon: Lexicon) -> list[Links]:
        """Link each word of the second of two sentences with its best word of the first, if any."""
        whole = [place for place, (given, made) in enumerate(pairs) if len(given) and len(made)]
        found: list[Links] = [{} for _ in pairs]
        matrices = joint(lexicon, [pairs[place] for place in whole], tension=self.tension, none=self.none)
        for place, matrix in zip(whole, matrices, strict=True):
            found[place] = best_links(matrix)
        return found


def read_lexicon(path: Path) -> Lexicon:
    """Read a file of the library: its words, each ended by a zero byte, then a row of entries for each.

    Words of ours are a letter and a number. Rows begin with their word and length; entries are a word and
    its probability. The library counts words from 1.
    """
    content = path.read_bytes()
    count = int.from_bytes(content[4:8], "little")
    words, place = [], 8
    for _ in range(count):
        end = content.index(b"\0", place)
        words.append(content[place:end].decode("ascii"))
        place = end + 1
    ours = np.array([-1, *(_own_number(word) for word in words)], dtype=np.int64)
    entry = np.dtype([("word", "<i4"), ("probability", "<f4")])
    place += 4
    given, entries = [], []
    while place < len(content):
        word, size = np.frombuffer(content, "<i4", 2, place).tolist()
        entries.append(np.frombuffer(content, entry, size, place + 8))
        given.append(np.full(size, ours[word]))
        place += 8 + size * entry.itemsize
    every = np.concatenate(entries) if entries else np.empty(0, entry)
    rows = np.concatenate(given) if given else np.empty(0, np.int64)
    return Lexicon.of(rows, ours[every["word"]], every["probability"])


def _own_number(word: str) -> int:
    if word == EPS:
        return NONE
    return int(word[1:]) if word[1:].isdigit() else -1  # The bar between two sides is a word as well.


def _line(letter: str, words: Words) -> str:
    return " ".join(f"{letter}{word}" for word in words.tolist())


def _numbers(words: Sequence[str], known: dict[str, int], *, learn: bool) -> Words:
    if learn:
        return np.array([known.setdefault(word, len(known) + 1) for word in words], dtype=np.int64)
    return np.array([known.get(word, -1) for word in words], dtype=np.int64)


def _aligned(forward: Links, backward: Links, how: Symmetrization) -> Aligned:
    links = symmetrized(forward, backward, how)
    directions = [way for name, way in (("backward", forward), ("forward", backward)) if how != name]
    scores = (sum(way.get(link, 0.0) for way in directions) / len(directions) for link in links)
    return Aligned(links=links, scores=tuple(scores))


def _no_lexicon() -> Lexicon:
    return Lexicon(np.empty(0, np.int64), np.empty(0, np.float32))


def _save(folder: Path, words: tuple[dict[str, int], dict[str, int]], lexicons: Sequence[Lexicon]) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    for name, lexicon in zip(("forward", "backward"), lexicons, strict=True):
        arrays |= {f"{name}_keys": lexicon.keys, f"{name}_probabilities": lexicon.probabilities}
    with writing(folder / LEXICONS):
        np.savez(folder / LEXICONS, **arrays)  # type: ignore[arg-type]
        text = json.dumps([list(side) for side in words], ensure_ascii=False)
        (folder / WORDS).write_text(text, encoding="utf-8")


def _load(folder: Path) -> tuple[tuple[dict[str, int], dict[str, int]], tuple[Lexicon, Lexicon]]:
    with suppress(OSError, ValueError, KeyError):
        sides = json.loads((folder / WORDS).read_text(encoding="utf-8"))
        first, second = ({word: place for place, word in enumerate(side, 1)} for side in sides)
        with np.load(folder / LEXICONS) as arrays:
            forward, backward = (
                Lexicon(arrays[f"{name}_keys"], arrays[f"{name}_probabilities"])
                for name in ("forward", "backward")
            )
        return (first, second), (forward, backward)
    raise DataError(
        f"{folder}: no whole alignment model is here ({LEXICONS} and {WORDS}). Give the folder of a bitext "
        f"that fast-align aligned, or align it again."
    )


def _library() -> Any:
    try:
        import systran_align
    except ImportError as error:
        raise ConfigError(
            f"aligner fast-align: it needs the package systran-align ({error}). pip install systran-align, "
            f"or, where there is none for this system, choose the aligner encoder, which needs nothing more."
        ) from error
    return systran_align
