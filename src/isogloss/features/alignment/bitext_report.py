"""Statistics and suspicious pairs of a bitext: lengths, duplicates, untranslated text, scripts.

Words come from ``pair_words``. Thai, Lao, Khmer and Burmese need ``isogloss[icu]`` to have words.
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
"""Maximum factor between a pair's length ratio and the ratio of all text, in either direction."""

SHORT = 5
"""Words. Pairs with two shorter sides have random length ratios and never count as outliers."""

OWN_SCRIPT = 0.5
"""Minimum share of a text's letters in the language's script."""

MAX_SUSPICIOUS = 0.05
"""Share of suspicious pairs above which a warning is given."""

_LANGUAGES_BY_SCRIPT: dict[str, str] = tomllib.loads(
    Path(__file__).with_name("scripts.toml").read_text(encoding="utf-8")
)

SCRIPTS: dict[str, frozenset[str]] = {
    language: frozenset(
        script for script, languages in _LANGUAGES_BY_SCRIPT.items() if language in languages.split()
    )
    for language in " ".join(_LANGUAGES_BY_SCRIPT.values()).split()
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SideReport:
    """Statistics of one language of a bitext."""

    language: str
    mean_words: float
    longest_words: int
    empty: int
    """Texts without a word."""

    own_script: float | None
    """Share of letters in the language's script, or None for an unknown language."""

    other_script: int
    """Number of texts with most letters in other scripts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BitextReport:
    """Statistics of a bitext. Counts are numbers of pairs."""

    pairs: int
    first: SideReport
    second: SideReport
    length_outliers: int
    """Pairs with a length ratio far from the ratio of all text."""

    duplicates: int
    """Repeated pairs."""

    identical: int
    """Pairs of two equal texts."""

    warnings: tuple[str, ...] = ()
    """Warnings, one sentence each."""


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


def check_bitext(
    pairs: Iterable[Translation], first_language: str = "", second_language: str = ""
) -> BitextReport:
    """Compute the statistics of a bitext, reading every pair once.

    Scripts are checked for known languages only. Default: unknown languages.
    """
    source = _Side(first_language)
    target = _Side(second_language)
    fingerprints: set[int] = set()
    duplicates = identical = 0
    for pair in pairs:
        words = pair_words(pair)
        source.add(pair.first, words[0])
        target.add(pair.second, words[1])
        identical += words[0] == words[1]
        fingerprint = hash(words)  # Hashes of millions of pairs fit into memory, texts do not.
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


def length_outliers(source_lengths: list[int], target_lengths: list[int]) -> int:
    """Count the pairs whose length ratio is ``LONGEST_RATIO`` times above or below the usual ratio.

    The arguments are numbers of words by pair; the usual ratio is the ratio of their sums.
    """
    usual = (sum(target_lengths) or 1) / (sum(source_lengths) or 1)
    return sum(
        max(x, y) >= SHORT and max(x * usual, y) > LONGEST_RATIO * min(x * usual, y)
        for x, y in zip(source_lengths, target_lengths, strict=True)
    )


def scripts_in(text: str) -> Counter[str]:
    """Count a text's letters by script, named by the first word of their Unicode names (LATIN, CJK)."""
    if text.isascii():  # A shortcut, because Unicode names are slow.
        letters = sum(char.isalpha() for char in text)
        return Counter({"LATIN": letters} if letters else {})
    counts: Counter[str] = Counter()
    for letter, count in Counter(char for char in text if char.isalpha()).items():
        counts[unicode_name(letter, "").partition(" ")[0]] += count
    return counts


def own_share(letters: Counter[str], language: str) -> float | None:
    """Return the share of the letters in a language's scripts, or None.

    None is for no letters or an unknown language.
    """
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
