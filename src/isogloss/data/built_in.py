"""The built-in languages as a folder: files in the corpora's native formats, made when they are read.

So built-in and real languages take one way through the readers, and ``export`` leaves on disk exactly what
a run would have read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import combinations, permutations, product
from pathlib import Path

from isogloss.core.errors import DataError
from isogloss.core.languages import is_built_in, language_name
from isogloss.core.progress import Progress, Tell, silent
from isogloss.core.records import writing
from isogloss.core.whole_files import whole_file
from isogloss.data.bitext import Bitext
from isogloss.data.catalogue import CORPORA
from isogloss.data.corpora import SPLITS, Split
from isogloss.data.examples import Example, Translation
from isogloss.data.files import File, Folder, matches

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


@lru_cache(maxsize=8)  # One and the same maker, so that its files are listed once.
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
class BuiltInFolder:
    """All corpora of the built-in languages, as if on disk."""

    maker: Maker = field(default_factory=built_in_maker)

    @property
    def name(self) -> str:
        """What messages call it."""
        return "the built-in languages"

    def find(self, patterns: Iterable[str]) -> list[File]:
        """Give the files that match the first pattern that matches any, sorted by name; else none."""
        files = _every_file(self.maker)
        found = next(filter(None, (_matching(self.maker, pattern) for pattern in patterns)), ())
        return [files[path] for path in found]

    def inside(self) -> list[str]:
        """Give the corpus folders."""
        return sorted({path.partition("/")[0] for path in _files(self.maker)})

    def export(self, folder: Path, tell: Tell = silent) -> None:
        """Write every file; DiskFolder(folder) then reads the very same examples.

        Translations of examples and the large bitext are left out: there is a file for every pair.
        """
        files = _files(self.maker)
        for done, (path, file) in enumerate(files.items()):
            tell(Progress(what="export of the built-in languages", done=done, total=len(files), remark=path))
            with whole_file(folder / path) as stream, writing(folder / path):
                stream.writelines(file.read())
        tell(Progress(what="export of the built-in languages", done=len(files), total=len(files)))


def folder_for(language: str, data: Folder | None) -> Folder:
    """Give the folder a language (or pair such as en-fr) is read from: the built-in one or the user's."""
    built_in = [is_built_in(code) for code in language.split("-")]
    if all(built_in):
        return BuiltInFolder()
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


@lru_cache(maxsize=8)
def _files(maker: Maker) -> dict[str, File]:
    files: dict[str, File] = {}
    for corpus, language, split in product(MADE_AS, maker.languages, SPLITS):
        path = CORPORA[corpus].path(language, split)
        files[path] = _file(maker, path, _lines(maker, corpus, language, split))
    for first, second in combinations(sorted(maker.languages), 2):
        for split in SPLITS:
            files |= _bitext_file(maker, BITEXT, first, second, split)
    return files


@lru_cache(maxsize=8)
def _every_file(maker: Maker) -> dict[str, File]:
    return _files(maker) | _large_files(maker) | _translated_files(maker)


@lru_cache(maxsize=4096)  # There are thousands of files, and a plan asks for the same few again and again.
def _matching(maker: Maker, pattern: str) -> tuple[str, ...]:
    files = _every_file(maker)
    return (pattern,) if pattern in files else tuple(sorted(path for path in files if matches(path, pattern)))


def _large_files(maker: Maker) -> dict[str, File]:
    files: dict[str, File] = {}
    for (first, second), split in product(combinations(sorted(maker.languages), 2), SPLITS):
        files |= _bitext_file(maker, LARGE_BITEXT, first, second, split)
    return files


def _translated_files(maker: Maker) -> dict[str, File]:
    files: dict[str, File] = {}
    if maker.translated is None:
        return files
    for first, second in permutations(maker.languages, 2):
        for corpus, split, back in product(TRANSLATED, SPLITS, ("", f"-{first}")):
            languages = f"{first}-{second}{back}"
            path = CORPORA[corpus].path(languages, split)
            read = _lines(replace(maker, examples=maker.translated), corpus, languages, split)
            files[path] = _file(maker, path, read, f"-noise-{maker.noise}")
    return files


def _file(maker: Maker, path: str, read: Callable[[], Iterator[str]], how: str = "") -> File:
    fingerprint = f"built-in-{maker.version}-{path}{how}"
    return File(name=f"built-in/{path}", read=read, fingerprint=lambda: fingerprint)


def _lines(maker: Maker, corpus: str, language: str, split: Split) -> Callable[[], Iterator[str]]:
    def read() -> Iterator[str]:
        for line in CORPORA[corpus].write(maker.examples(MADE_AS[corpus], language, split), language):
            yield line + "\n"

    return read


def _bitext_file(maker: Maker, collection: str, first: str, second: str, split: Split) -> dict[str, File]:
    corpus, languages = Bitext(collection=collection), f"{first}-{second}"

    def read() -> Iterator[str]:
        for line in corpus.write(maker.translations(collection, first, second, split), languages):
            yield line + "\n"

    path = corpus.path(languages, split)
    return {path: _file(maker, path, read)}
