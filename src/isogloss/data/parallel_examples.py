"""Which labelled test sets are parallel: the same examples, under the same ids, in every language.

Equal ids alone do not say so: many formats number their examples, whatever these are.
"""

from collections.abc import Mapping, Sequence

from isogloss.core.errors import ConfigError
from isogloss.core.languages import is_built_in
from isogloss.data.corpora import Split

PARALLEL: Mapping[str, tuple[Split, ...]] = {
    "xnli": ("dev", "test"),
    "pawsx": ("dev", "test"),
    "mlqa": ("dev", "test"),
    "squad": ("test",),  # XQuAD
}
"""Splits that were translated by people; of MLQA each two languages have some examples in common."""

BUILT_IN: tuple[Split, ...] = ("dev", "test")
"""Splits of every corpus of the built-in languages."""

PUD = "pud"
"""The treebank that says the same in every language (Zeman et al. 2017, Section 3)."""


def check_parallel(corpus: str, split: Split, languages: Sequence[str], treebanks: Mapping[str, str]) -> None:
    """Raise ConfigError unless a corpus's split is known to be parallel in these languages."""
    built_in = {is_built_in(language) for language in languages}
    if len(built_in) > 1:
        raise ConfigError(
            f"languages {' '.join(languages)}: some are built in and some are not, so they have no examples "
            f"in common. Name languages of one kind."
        )
    plain = corpus.partition(":")[0]
    known = BUILT_IN if True in built_in else PARALLEL.get(plain, ())
    if plain == "ud" and False in built_in:
        other = [language for language in languages if not _is_pud(treebanks.get(language, ""))]
        known = () if other else ("test",)
    if split not in known:
        there = "; ".join(f"{name} ({', '.join(splits)})" for name, splits in sorted(PARALLEL.items()))
        raise ConfigError(
            f"{corpus!r}: its {split} split does not say the same in every language, or is not known to. "
            f'Choose bitext, or a parallel test set: {there}; ud with treebanks = "PUD" (test); of the '
            f"built-in languages dev or test of any."
        )


def _is_pud(treebank: str) -> bool:
    return treebank.rpartition("/")[2].rpartition("-")[2].lower() == PUD
