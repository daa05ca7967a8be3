"""Where examples come from: the built-in languages, or the folder the user named with --data."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from itertools import islice
from typing import Any

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.core.runs import Pretrained
from isogloss.data.built_in import source_of
from isogloss.data.catalogue import CORPORA
from isogloss.data.concatenated import Concatenated, concatenated
from isogloss.data.corpora import Corpus, Source, Split
from isogloss.data.examples import Example
from isogloss.data.hub_datasets import data_source
from isogloss.data.tokenization import word_breaking

Treebanks = tuple[tuple[str, str], ...]


class RecentExamples:
    """Splits as they were read, the least recently asked for forgotten first."""

    def __init__(self, limit: int) -> None:
        """Keep up to ``limit`` examples of all splits together; a longer split is never kept."""
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[Example, ...]] = OrderedDict()

    def examples(self, key: Hashable, read: Callable[[], Iterable[Example]]) -> list[Example]:
        """Give the examples kept under a key, which must name their file's state too, or read them."""
        found = self._kept.pop(key, None)
        if found is None:
            found = tuple(read())
        if len(found) <= self._limit:
            self._kept[key] = found
            while sum(map(len, self._kept.values())) > self._limit:
                self._kept.popitem(last=False)
        return list(found)


_RECENT = RecentExamples(limit=50_000)
"""What this process read: runs, and the languages of one, ask for the same few splits again and again."""


@dataclass(frozen=True)
class Sources:
    """Corpora by name, read from the right folder for each language, and encoders that exist already."""

    data: str = ""
    """A folder; "hub" for the Hugging Face hub, "hub:FOLDER" for parquet files of it; none when empty."""
    encoders: Mapping[str, str] = field(default_factory=dict)
    """Where encoders and translation models are on this machine, by fingerprint: runs do not say it."""

    def encoder(self, encoder: Pretrained) -> str:
        """Return an encoder's folder, or its name on the hub."""
        return self.encoders.get(encoder.data, encoder.source)

    def corpus(self, name: str, treebanks: Treebanks = ()) -> Corpus:
        """Return a corpus by name; what follows a colon is one field of it ("bitext:bible", "mlqa:en").

        "snli+sick" is two read as one.

        ConfigError, with the nearest name, when there is no such corpus or it has no such choice.
        """
        return concatenated(name, lambda part: self._one(part, treebanks))

    def _one(self, name: str, treebanks: Treebanks) -> Corpus:
        plain, _, chosen = name.partition(":")
        if plain not in CORPORA:
            near = did_you_mean(plain, CORPORA)
            raise ConfigError(f"no corpus {plain!r}.{near} Known: {', '.join(sorted(CORPORA))}.")
        corpus: Any = CORPORA[plain]
        after_colon = corpus.after_colon or "choice after a colon"
        wanted: dict[str, Any] = {"treebanks": treebanks, after_colon: chosen}
        changes = {choice: value for choice, value in wanted.items() if value}
        for choice in changes.keys() - {one.name for one in fields(corpus)}:
            raise ConfigError(
                f"corpus {plain!r} has no {choice} to choose from; found {changes[choice]!r}. Leave it out."
            )
        return replace(corpus, **changes)  # type: ignore[no-any-return]

    def has_treebanks(self, name: str) -> bool:
        """Tell whether a corpus, each part of it, has treebanks to choose from."""
        corpus = self.corpus(name)
        parts = [part.corpus for part in corpus.parts] if isinstance(corpus, Concatenated) else [corpus]
        return all(hasattr(part, "treebanks") for part in parts)

    def needs(self, name: str, kind: str) -> None:
        """Raise ConfigError unless a corpus holds a kind of examples: text, bitext, or a task's labels."""
        there = self.corpus(name).tasks
        if kind not in there:
            fitting = [other for other, corpus in CORPORA.items() if kind in corpus.tasks]
            raise ConfigError(
                f"corpus {name!r} holds {', '.join(there)}, not {kind}. Choose one of: {', '.join(fitting)}."
            )

    def stream(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> Iterator[Example]:
        """Read the first examples of a split (0: all of them), one at a time."""
        read = self.corpus(corpus, treebanks).read(self.source(language), language, split)
        return islice(read, examples or None)

    def examples(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> list[Example]:
        """Read the first examples of a split (0: all), or give those read before; DataError for none."""
        files = self.corpus(corpus, treebanks).files(self.source(language), language, split)
        state = tuple((file.name, file.fingerprint()) for file in files)
        found = _RECENT.examples(
            (corpus, treebanks, language, split, examples, state),
            lambda: self.stream(corpus, language, split, treebanks=treebanks, examples=examples),
        )
        if not found:
            raise DataError(
                f"{corpus} {language} {split}: the split is empty. Choose another split or language."
            )
        return found

    def fingerprint(self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = ()) -> str:
        """Return a fingerprint of the files a split is read from; DataError when they are not there."""
        found = self.corpus(corpus, treebanks)
        files = found.files(self.source(language), language, split)
        breaking = word_breaking(language.split("-")) if "bitext" in found.tasks else ""
        return "+".join(filter(None, [*(file.fingerprint() for file in files), breaking]))

    def source(self, language: str) -> Source:
        """Return where a language's files come from; a pair such as en-fr goes by its first language."""
        return source_of(language.split("-", maxsplit=1)[0], data_source(self.data))


def combined_fingerprint(fingerprints: list[str]) -> str:
    """Return one short fingerprint for several."""
    return sha256("\n".join(fingerprints).encode()).hexdigest()[:16]
