"""Statistics and suspicious pairs of a bitext: lengths, duplicates, untranslated text, scripts.

Words are those of ``pair_words``; Thai, Lao, Khmer and Burmese need ``isogloss[icu]`` to have any.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from unicodedata import name as unicode_name

from isogloss.core.languages import language_name
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words

LONGEST_RATIO = 3.0
"""Factor between a pair's ratio of lengths and that of all text, either way, above which it is an outlier."""

SHORT = 5
"""Sides shorter than this have chance lengths and are no outliers."""

OWN_SCRIPT = 0.5
"""Least share of letters in the language's script."""

MAX_SUSPICIOUS = 0.05
"""Share of suspicious pairs above which a warning is given."""

_WRITTEN_IN: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("scripts.toml").read_text(encoding="utf-8")
)

SCRIPTS: dict[str, frozenset[str]] = {
    code: frozenset(script for script, codes in _WRITTEN_IN.items() if code in codes.split())
    for code in " ".join(_WRITTEN_IN.values()).split()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SideReport:
    """One language of a bitext."""

    language: str
    mean_words: float
    longest_words: int
    empty: int
    """Texts without a word."""

    own_script: float | None
    """Share of letters in the language's script; None for an unknown language."""

    other_script: int
    """Texts most of whose letters belong to other scripts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BitextReport:
    """Statistics of a bitext; counts are of pairs."""

    pairs: int
    first: SideReport
    second: SideReport
    length_outliers: int
    """Pairs whose length ratio is far from that of all text."""

    duplicates: int
    """Repeated pairs."""

    identical: int
    """Pairs of two equal texts."""

    warnings: tuple[str, ...] = ()
    """One sentence each."""


@dataclass
class _Side:
    language: str
    lengths: list[int] = field(default_factory=list)
    letters: Counter[str] = field(default_factory=Counter)
    other_script: int = 0

    def add(self, text: str, words: Sequence[str]) -> None:
        self.lengths.append(len(words))
        letters = scripts_in(text)
        self.letters.update(letters)
        share = own_share(letters, self.language)
        self.other_script += share is not None and share < OWN_SCRIPT

    def report(self) -> SideReport:
        return SideReport(
            language=self.language,
            mean_words=sum(self.lengths) / len(self.lengths) if self.lengths else 0.0,
            longest_words=max(self.lengths, default=0),
            empty=sum(not length for length in self.lengths),
            own_script=own_share(self.letters, self.language),
            other_script=self.other_script,
        )


def check_bitext(pairs: Iterable[Translation], first: str = "", second: str = "") -> BitextReport:
    """Read every pair once and report; scripts are checked for known languages."""
    source, target = _Side(first), _Side(second)
    fingerprints: set[int] = set()
    duplicates = identical = 0
    for pair in pairs:
        words = pair_words(pair)
        source.add(pair.first, words[0])
        target.add(pair.second, words[1])
        identical += words[0] == words[1]
        fingerprint = hash(words)  # Of millions of pairs, numbers fit into memory where texts would not.
        duplicates += fingerprint in fingerprints
        fingerprints.add(fingerprint)
    report = BitextReport(
        pairs=len(source.lengths),
        first=source.report(),
        second=target.report(),
        length_outliers=length_outliers(source.lengths, target.lengths),
        duplicates=duplicates,
        identical=identical,
    )
    return replace(report, warnings=tuple(_warnings(report)))


def length_outliers(first: list[int], second: list[int]) -> int:
    """Count the pairs whose length ratio is ``LONGEST_RATIO`` times above or below the usual one."""
    usual = (sum(second) or 1) / (sum(first) or 1)
    return sum(
        max(x, y) >= SHORT and max(x * usual, y) > LONGEST_RATIO * min(x * usual, y)
        for x, y in zip(first, second, strict=True)
    )


def scripts_in(text: str) -> Counter[str]:
    """Count a text's letters by script, named as Unicode begins their names (LATIN, CJK)."""
    if text.isascii():  # Most text is, and a name for each letter takes time.
        letters = sum(map(str.isalpha, text))
        return Counter({"LATIN": letters} if letters else {})
    counts: Counter[str] = Counter()
    for letter, count in Counter(filter(str.isalpha, text)).items():
        counts[unicode_name(letter, "").partition(" ")[0]] += count
    return counts


def own_share(letters: Counter[str], language: str) -> float | None:
    """Return the share of the letters in a language's scripts; None for no letters or an unknown language."""
    if language not in SCRIPTS or not letters.total():
        return None
    return sum(letters[script] for script in SCRIPTS[language]) / letters.total()


def _warnings(report: BitextReport) -> Iterable[str]:
    if not report.pairs:
        yield "No pairs."
        return
    kinds = {
        "differ much in length: are they translations?": report.length_outliers,
        "repeat an earlier pair": report.duplicates,
        "have the same text on both sides: are they translated?": report.identical,
        "have no words on one side": max(report.first.empty, report.second.empty),
    }
    for problem, count in kinds.items():
        if count > MAX_SUSPICIOUS * report.pairs or (count and problem.startswith("have no words")):
            yield f"{_share(count, report.pairs)} {problem}"
    for side in (report.first, report.second):
        if side.other_script > MAX_SUSPICIOUS * report.pairs:
            yield (
                f"{_share(side.other_script, report.pairs)} are not in the script of "
                f"{language_name(side.language)} where they should be: are the languages exchanged, or "
                f"romanised?"
            )


def _share(count: int, pairs: int) -> str:
    return f"{count} of {pairs} pairs ({count / pairs:.1%})"
