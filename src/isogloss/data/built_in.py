"""The built-in languages as a source: files in the corpora's native formats, made when they are read.

So built-in and real languages take one way through the readers, and ``export`` leaves on disk exactly what
a run would have read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, permutations, product
from pathlib import Path

from isogloss.core.atomic_files import atomic_file
from isogloss.core.errors import DataError
from isogloss.core.languages import is_built_in, language_name
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.records import writing
from isogloss.data.bitext import Bitext
from isogloss.data.catalogue import CORPORA
from isogloss.data.corpora import SPLITS, Corpus, Source, Split
from isogloss.data.examples import Example, Translation
from isogloss.data.files import File
from isogloss.data.layouts import is_translation, not_there

MADE_AS = {
    "ud": "ud",
    "wikiann": "wikiann",
    "xnli": "xnli",
    "pawsx": "pawsx",
    "squad": "squad",
    "rawtext": "text",
}
"""The corpora that the built-in languages have, besides bitext, and what their maker calls them."""

TRANSLATED = ("xnli", "pawsx", "squad", "ud", "wikiann")
"""Those that are there in translation too, for every pair: qaa-qab, and there and back: qaa-qab-qaa."""

NOISE = 0.05
"""Rate of errors in these translations, each of three kinds (words dropped, wrong, exchanged)."""

BITEXT = "bitext"
LARGE_BITEXT = "bitext-large"
"""A collection of bitext that begins as ``BITEXT`` does and is five times as long; not exported."""


@dataclass(frozen=True)
class Maker:
    """What makes the built-in languages: their codes, a version, examples and translations."""

    languages: tuple[str, ...]
    version: int
    examples: Callable[[str, str, Split], Iterable[Example]]
    """From corpus (one of ``MADE_AS``'s values), language and split."""
    translations: Callable[[str, str, str, Split], Iterable[Translation]]
    """From collection (``BITEXT`` or ``LARGE_BITEXT``), first language, second language and split."""
    translated: Callable[[str, str, Split], Iterable[Example]] | None = None
    """From corpus (one of ``MADE_AS``'s values), languages (qaa-qab, qaa-qab-qaa) and split."""
    noise: float = 0.0
    """Rate of errors in what is translated."""


def built_in_maker(noise: float = NOISE) -> Maker:
    """Give the maker of this package's languages; ``noise`` is its translators' rate of errors."""
    from isogloss.data import languages  # the lexicon is only needed where it is used

    return Maker(
        languages=tuple(languages.LANGUAGES),
        version=languages.VERSION,
        examples=languages.examples,
        translations=lambda corpus, first, second, split: languages.translations(
            first, second, split, corpus=corpus
        ),
        translated=partial(languages.translated, noise=noise),
        noise=noise,
    )


@dataclass(frozen=True)
class BuiltInLanguages:
    """All corpora of the built-in languages."""

    maker: Maker = field(default_factory=built_in_maker)

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the built-in languages"

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Give the one file of a split, which is made when it is read."""
        if language not in self._languages(corpus):
            there = dict.fromkeys(SPLITS, sorted(self._languages(corpus)))
            name = f"bitext:{corpus.collection}" if isinstance(corpus, Bitext) else corpus.name
            raise not_there(self, name, language, split, there=there)
        if isinstance(corpus, Bitext):
            language = "-".join(sorted(language.split("-")))
        return [self._file(corpus, language, split)]

    def inside(self) -> list[str]:
        """Give the corpora."""
        return sorted({path.partition("/")[0] for path in self._exported()})

    def export(self, folder: Path, on_progress: OnProgress = no_progress) -> None:
        """Write every file; DiskFolder(folder) then reads the very same examples.

        Translations of examples and the large bitext are left out: there is a file for every pair.
        """
        files = self._exported()
        for done, (path, file) in enumerate(files.items()):
            on_progress(
                Progress(what="export of the built-in languages", done=done, total=len(files), remark=path)
            )
            with atomic_file(folder / path) as stream, writing(folder / path):
                stream.writelines(file.read())
        on_progress(Progress(what="export of the built-in languages", done=len(files), total=len(files)))

    def _languages(self, corpus: Corpus) -> set[str]:
        """Give the languages, and the pairs of them, that a corpus is there in."""
        pairs = ["-".join(pair) for pair in permutations(self.maker.languages, 2)]
        if isinstance(corpus, Bitext):
            return set(pairs) if corpus.collection in (BITEXT, LARGE_BITEXT) else set()
        if corpus.name not in MADE_AS:
            return set()
        translated = pairs if self.maker.translated and corpus.name in TRANSLATED else []
        there_and_back = [f"{pair}-{pair.partition('-')[0]}" for pair in translated]
        return {*self.maker.languages, *translated, *there_and_back}

    def _file(self, corpus: Corpus, language: str, split: Split) -> File:
        path, how = corpus.path(language, split), ""
        if not isinstance(corpus, Bitext) and is_translation(language):
            how = f"-noise-{self.maker.noise}"

        def read() -> Iterator[str]:
            for line in corpus.write(self._examples(corpus, language, split), language):
                yield line + "\n"

        return File(f"built-in/{path}", read, lambda: f"built-in-{self.maker.version}-{path}{how}")

    def _examples(self, corpus: Corpus, language: str, split: Split) -> Iterable[Example]:
        if isinstance(corpus, Bitext):
            first, _, second = language.partition("-")
            return self.maker.translations(corpus.collection, first, second, split)
        translated = self.maker.translated if is_translation(language) else None
        return (translated or self.maker.examples)(MADE_AS[corpus.name], language, split)

    def _exported(self) -> dict[str, File]:
        corpora = [CORPORA[name] for name in MADE_AS]
        asked = [*product(corpora, self.maker.languages, SPLITS)]
        pairs = ["-".join(pair) for pair in combinations(sorted(self.maker.languages), 2)]
        asked += product([CORPORA["bitext"]], pairs, SPLITS)
        return {corpus.path(code, split): self._file(corpus, code, split) for corpus, code, split in asked}


def source_of(language: str, data: Source | None) -> Source:
    """Give the source a language (or pair such as en-fr) is read from: the built-in one or the user's."""
    built_in = [is_built_in(code) for code in language.split("-")]
    if all(built_in):
        return BuiltInLanguages()
    if any(built_in):
        raise DataError(
            f"{language}: one of the two is a built-in language and one is not; expected both of one kind. "
            f"Choose a pair such as qaa-qab or en-fr."
        )
    if data is None:
        names = " and ".join(language_name(code) for code in language.split("-"))
        raise DataError(
            f"{language}: {names} must be read from corpora on your disk, and no folder was given. "
            f"Give --data DIR, or use the built-in languages (qaa, qab, …), which need none."
        )
    return data


def built_in_size(corpus: str, language: str, split: Split) -> int | None:
    """Return how many examples a split of the built-in languages has, without making any.

    None for other languages, for translated examples, whose number depends on what was lost, and for
    corpora that are read as one.
    """
    codes = language.split("-")
    plain, _, collection = corpus.partition(":")
    name = (collection or BITEXT) if plain == "bitext" else MADE_AS.get(corpus, "")
    if not all(map(is_built_in, codes)) or len(codes) != (2 if plain == "bitext" else 1):
        return None
    from isogloss.data.languages import SIZES, split_size

    return min(split_size(name, code, split) for code in codes) if name in SIZES else None
