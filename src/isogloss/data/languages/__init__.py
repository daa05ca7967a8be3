"""The built-in languages: a family generated from a seed, with gold labels for every task.

from isogloss.data.languages import LANGUAGES, Translator, card, examples, translations

for sentence in examples("ud", "qad", "dev"):
    ...

They are also corpora: files in the corpora's native formats, generated when they are read. Readers,
fingerprints and runs treat them as files on disk; ``BuiltInLanguages`` writes them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from pathlib import Path

from isogloss.core.atomic_files import atomic_file, writing
from isogloss.core.languages import is_built_in
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.untrusted import check_outside_runs
from isogloss.data.corpora.bitext import Bitext, Bucc, apart
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpus import SPLITS, Corpus, Split, is_translation, not_there
from isogloss.data.examples import Example
from isogloss.data.files import File
from isogloss.data.formats.parallel_text import two_languages
from isogloss.data.languages.family import LANGUAGES, VERSION, Language, card, find_language
from isogloss.data.languages.generating import SIZES, examples, split_size, translations
from isogloss.data.languages.translating import BuiltInTranslator, translated, words_of

__all__ = [
    "LANGUAGES",
    "SIZES",
    "VERSION",
    "BuiltInTranslator",
    "Language",
    "card",
    "examples",
    "find_language",
    "split_size",
    "translated",
    "translations",
    "words_of",
]


GENERATED_AS = {
    "ud": "ud",
    "wikiann": "wikiann",
    "xnli": "xnli",
    "pawsx": "pawsx",
    "squad": "squad",
    "rawtext": "text",
}
"""The corpora of the built-in languages by their generator's names, without bitext and comparable text."""

TRANSLATED = ("xnli", "pawsx", "squad", "ud", "wikiann")
"""Corpora with translations of all pairs (qaa-qab), and translations back (qaa-qab-qaa)."""

NOISE = 0.05
"""Error rate of these translations, for each of three kinds of errors (words dropped, wrong, swapped)."""

BITEXT = "bitext"
LARGE_BITEXT = "bitext-large"
"""A collection of bitext that extends ``BITEXT`` to five times its size; not exported."""


@dataclass(frozen=True)
class BuiltInLanguages:
    """All corpora of the built-in languages."""

    @property
    def name(self) -> str:
        """Name in messages."""
        return "the built-in languages"

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Return the file of a split, which is generated when it is read."""
        if language not in self._languages(corpus):
            available = dict.fromkeys(SPLITS, sorted(self._languages(corpus)))
            name = f"bitext:{corpus.collection}" if isinstance(corpus, Bitext) else corpus.name
            raise not_there(self, name, language, split, available=available)
        if isinstance(corpus, Bitext | Bucc):
            language = "-".join(sorted(language.split("-")))
        return [self._file(corpus, language, split)]

    def folder(self, corpus: str, languages: Sequence[str] = ()) -> None:
        """Return no folder: described corpora are not made."""

    def inside(self) -> list[str]:
        """Return the corpora."""
        return sorted({path.partition("/")[0] for path in self._exported()})

    def export(self, folder: Path, on_progress: OnProgress = no_progress) -> None:
        """Write the files of all corpora; ``DiskFolder(folder)`` reads the same examples from them.

        Translations of examples, the large bitext and comparable text are left out, as each pair of languages
        has a file of its own.
        """
        check_outside_runs(folder)
        files = [*self._exported().items()]
        title = "export of the built-in languages"
        for path, file in one_by_one(files, title, on_progress, lambda entry: entry[0]):
            with atomic_file(folder, path) as stream, writing(folder / path):
                stream.writelines(file.read())

    def _languages(self, corpus: Corpus) -> set[str]:
        pairs = ["-".join(pair) for pair in permutations(LANGUAGES, 2)]
        if isinstance(corpus, Bitext):
            return set(pairs) if corpus.collection in (BITEXT, LARGE_BITEXT) else set()
        if isinstance(corpus, Bucc):
            return set(pairs)
        if corpus.name not in GENERATED_AS:
            return set()
        translated = pairs if corpus.name in TRANSLATED else []
        there_and_back = [f"{pair}-{pair.partition('-')[0]}" for pair in translated]
        return {*LANGUAGES, *translated, *there_and_back}

    def _file(self, corpus: Corpus, language: str, split: Split) -> File:
        path, suffix = corpus.path(language, split), ""
        if not isinstance(corpus, Bitext | Bucc) and is_translation(language):
            suffix = f"-noise-{NOISE}"

        def read() -> Iterator[str]:
            for line in corpus.write(self._examples(corpus, language, split), language):
                yield line + "\n"

        return File(f"built-in/{path}", read, lambda: f"built-in-{VERSION}-{path}{suffix}")

    def _examples(self, corpus: Corpus, language: str, split: Split) -> Iterable[Example]:
        if isinstance(corpus, Bitext):
            return translations(*two_languages(language), split, corpus=corpus.collection)
        if isinstance(corpus, Bucc):
            return apart(translations(*two_languages(language), split))
        if is_translation(language):
            return translated(GENERATED_AS[corpus.name], language, split, noise=NOISE)
        return examples(GENERATED_AS[corpus.name], language, split)

    def _exported(self) -> dict[str, File]:
        corpora = [CORPORA[name] for name in GENERATED_AS]
        pairs = ["-".join(pair) for pair in combinations(sorted(LANGUAGES), 2)]
        splits = [
            *product(corpora, LANGUAGES, SPLITS),
            *product([CORPORA["bitext"]], pairs, SPLITS),
        ]
        return {corpus.path(code, split): self._file(corpus, code, split) for corpus, code, split in splits}


def built_in_size(corpus: str, language: str, split: Split) -> int | None:
    """Return the number of examples in a split of the built-in languages, without generating any.

    None for other languages, for translated examples, whose number depends on what was lost, and for
    concatenated corpora.
    """
    codes = language.split("-")
    plain, _, collection = corpus.partition(":")
    name = (collection or BITEXT) if plain == "bitext" else GENERATED_AS.get(corpus, "")
    if not all(map(is_built_in, codes)) or len(codes) != (2 if plain == "bitext" else 1):
        return None
    if name not in SIZES:
        return None
    return min(split_size(name, code, split) for code in codes)
