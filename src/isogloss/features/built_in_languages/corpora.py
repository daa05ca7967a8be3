"""The corpora of the built-in languages: files in native formats, generated when they are read."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from operator import itemgetter
from pathlib import Path

from isogloss.core.atomic_files import atomic_file, writing
from isogloss.core.languages import is_built_in
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.untrusted import check_outside_runs
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpus import SPLITS, Corpus, Split, is_translation, not_there, two_languages
from isogloss.data.examples import ComparableText, Example, Translation
from isogloss.data.files import File
from isogloss.features.built_in_languages.family import LANGUAGES, VERSION, card, find_language
from isogloss.features.built_in_languages.relations import read_relation
from isogloss.features.built_in_languages.sizes import SIZES, split_size

GENERATED_AS = {
    "ud": "ud",
    "wikiann": "wikiann",
    "xnli": "xnli",
    "pawsx": "pawsx",
    "squad": "squad",
    "rawtext": "text",
}
"""Names of generators by corpus of the built-in languages, without bitext and comparable text."""

TRANSLATED = ("xnli", "pawsx", "squad", "ud", "wikiann")
"""Corpora with translations between all pairs (qaa-qab), and back-translations (qaa-qab-qaa)."""

NOISE = 0.05
"""Error rate of these translations, for each of three kinds of errors (words dropped, wrong, swapped)."""

BITEXT = "bitext"
"""Name of a corpus, of its collection, and of its task."""

COMPARABLE = "comparable"
"""Task of a corpus of which some sentences have no translation."""

_PAIR = 2

LARGE_BITEXT = "bitext-large"
"""Collection of bitext that extends ``BITEXT`` to five times its size. It is not exported."""


@dataclass(frozen=True)
class BuiltInLanguages:
    """All corpora of the built-in languages."""

    @property
    def name(self) -> str:
        """Name in messages."""
        return "the built-in languages"

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Return the file of a split, which is generated when it is read.

        Raises DataError, naming the existing languages, for an unknown corpus or language.
        """
        if language not in self._languages(corpus) and not self._is_derived(corpus, language):
            available = dict.fromkeys(SPLITS, sorted(self._languages(corpus)))
            name = f"bitext:{_collection(corpus)}" if BITEXT in corpus.tasks else corpus.name
            raise not_there(self, name, language, split, available=available)
        if _collection(corpus):
            language = "-".join(sorted(language.split("-")))
        return [self._file(corpus, language, split)]

    def folder(self, corpus: str, languages: Sequence[str] = ()) -> None:
        """Return None, because described corpora are not generated."""

    def inside(self) -> list[str]:
        """Return the names of the exported folders."""
        return sorted({path.partition("/")[0] for path in self._exported_files()})

    def export(self, folder: Path, on_progress: OnProgress = no_progress) -> None:
        """Write the files of all corpora, from which ``DiskFolder(folder)`` reads the same examples.

        Translations of examples, the large bitext and comparable text are not exported, because each pair of
        languages has separate files.
        """
        check_outside_runs(folder)
        files = list(self._exported_files().items())
        title = "export of the built-in languages"
        for path, file in one_by_one(files, title, on_progress, itemgetter(0)):
            with atomic_file(folder, path) as stream, writing(folder / path):
                stream.writelines(file.read())

    def _languages(self, corpus: Corpus) -> set[str]:
        pairs = ["-".join(pair) for pair in permutations(LANGUAGES, 2)]
        if collection := _collection(corpus):
            return set(pairs) if collection in (BITEXT, LARGE_BITEXT) else set()
        if corpus.name not in GENERATED_AS:
            return set()
        translations = pairs if corpus.name in TRANSLATED else []
        there_and_back = [f"{pair}-{pair.partition('-')[0]}" for pair in translations]
        return {*LANGUAGES, *translations, *there_and_back}

    def _is_derived(self, corpus: Corpus, language: str) -> bool:
        """Return whether a language, pair or back-translation contains a derived language of the corpus.

        Raises ConfigError for a dial out of range.
        """
        parts = language.split("-")
        relations = [relation for part in parts if (relation := read_relation(part))]
        if not relations or len(relations) < sum(part not in LANGUAGES for part in parts):
            return False
        is_pair = len(parts) == _PAIR and parts[0] != parts[1]
        if collection := _collection(corpus):
            return is_pair and collection in (BITEXT, LARGE_BITEXT)
        if corpus.name not in GENERATED_AS:
            return False
        for relation in relations:
            relation.check_corpus(GENERATED_AS[corpus.name])
        is_back_translation = len(parts) == _PAIR + 1 and parts[0] == parts[2] != parts[1]
        return len(parts) == 1 or (corpus.name in TRANSLATED and (is_pair or is_back_translation))

    def _file(self, corpus: Corpus, language: str, split: Split) -> File:
        path = corpus.path(language, split)
        suffix = ""
        if not _collection(corpus) and is_translation(language):
            suffix = f"-noise-{NOISE}"

        def read() -> Iterator[str]:
            for line in corpus.write(self._examples(corpus, language, split), language):
                yield line + "\n"

        return File(f"built-in/{path}", read, lambda: f"built-in-{VERSION}-{path}{suffix}")

    def _examples(self, corpus: Corpus, language: str, split: Split) -> Iterable[Example]:
        from isogloss.features.built_in_languages.generating import examples, translations
        from isogloss.features.built_in_languages.translating import translate_corpus

        if collection := _collection(corpus):
            pairs = translations(*two_languages(language), split, corpus=collection)
            return split_translations(pairs) if COMPARABLE in corpus.tasks else pairs
        if is_translation(language):
            return translate_corpus(GENERATED_AS[corpus.name], language, split, noise=NOISE)
        return examples(GENERATED_AS[corpus.name], language, split)

    def _exported_files(self) -> dict[str, File]:
        corpora = [CORPORA[name] for name in GENERATED_AS if name in CORPORA]
        bitext = [CORPORA[BITEXT]] if BITEXT in CORPORA else []
        pairs = ["-".join(pair) for pair in combinations(sorted(LANGUAGES), 2)]
        splits = [*product(corpora, LANGUAGES, SPLITS), *product(bitext, pairs, SPLITS)]
        return {
            corpus.path(language, split): self._file(corpus, language, split)
            for corpus, language, split in splits
        }

    @property
    def names(self) -> dict[str, str]:
        """The name of each language, by code."""
        return {language: built_in.name for language, built_in in LANGUAGES.items()}

    @property
    def labelled_corpora(self) -> tuple[str, ...]:
        """The corpora with labels or raw text."""
        return tuple(GENERATED_AS)

    def size(self, corpus: str, language: str, split: Split) -> int | None:
        """Return the number of examples in a split (``built_in_size``)."""
        return built_in_size(corpus, language, split)

    def cards(self) -> dict[str, dict[str, str]]:
        """Return facts of each language, by their heads."""
        return {language: card(language) for language in LANGUAGES}

    def share_of_common_words(self, language: str) -> float:
        """Return the share of words that a language shares with the first one."""
        spec = find_language(language)
        own_share = spec.relation.words if spec.relation else 0.0
        return spec.shared * (1 - own_share)


def _collection(corpus: Corpus) -> str:
    """Return the collection of bitext that a corpus is made of, or "" for a corpus of single languages."""
    if COMPARABLE in corpus.tasks:
        return BITEXT
    return str(getattr(corpus, "collection", "")) if BITEXT in corpus.tasks else ""


def split_translations(pairs: Iterable[Translation]) -> Iterator[ComparableText]:
    """Yield translations as comparable text.

    Every third stays a pair, the others lose the first or the second side in turn.
    """
    for index, pair in enumerate(pairs):
        source = "" if index % 3 == 1 else pair.first
        target = "" if index % 3 == 2 else pair.second
        yield ComparableText(id=pair.id, first=source, second=target)


def built_in_size(corpus: str, language: str, split: Split) -> int | None:
    """Return the number of examples in a split of the built-in languages, without generating them.

    None is for natural languages, for translated examples, whose number depends on lost answers, and for
    concatenated corpora.
    """
    parts = language.split("-")
    base_name, _, collection = corpus.partition(":")
    name = (collection or BITEXT) if base_name == "bitext" else GENERATED_AS.get(corpus, "")
    if not all(is_built_in(part) for part in parts) or len(parts) != (2 if base_name == "bitext" else 1):
        return None
    if name not in SIZES:
        return None
    return min(split_size(name, part, split) for part in parts)


LANGUAGES_AND_CORPORA = BuiltInLanguages()
"""The built-in languages, for the table of generated languages."""
