"""The catalogue of corpora: contents, layouts of files, licences. Features add corpora."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from isogloss.core.registry import Registry
from isogloss.data.corpora.texts_and_trees import RawText, Ud
from isogloss.data.corpus import Corpus

OF_FEATURES: Registry[Corpus] = Registry({}, features="corpora")
"""Corpora that features add, with the default of every field."""


class _Catalogue(Mapping[str, Corpus]):
    """Mapping from sorted names to corpora. A lookup makes the corpus and imports what reads its files."""

    def __init__(self) -> None:
        self._made: dict[str, Corpus] = {RawText.name: RawText(), Ud.name: Ud()}

    @cached_property
    def _tables(self) -> Mapping[str, dict[str, Any]]:
        """Tables of labelled corpora by name."""
        return tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))

    @cached_property
    def _names(self) -> dict[str, None]:
        return dict.fromkeys(sorted({*self._made, *self._tables, *OF_FEATURES}))

    def __getitem__(self, name: str) -> Corpus:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def _make(self, name: str) -> Corpus:
        if name not in self._tables:
            return OF_FEATURES[name]
        from isogloss.data.corpora.corpus_tables import make_corpus

        return make_corpus(name, self._tables[name])

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


CORPORA: Mapping[str, Corpus] = _Catalogue()
"""All corpora by name, with the default of every field. Those of packages are in the group ``corpora``."""
