"""The catalogue of corpora: contents, layouts of files, licences. Features add corpora."""

from pathlib import Path

from isogloss.core.registry import Registry
from isogloss.data.corpora.corpus_tables import read_corpora
from isogloss.data.corpora.texts_and_trees import RawText, Ud
from isogloss.data.corpus import Corpus

OF_FEATURES: Registry[Corpus] = Registry({}, features="corpora")
"""Corpora that features add, with the default of every field."""

_CORPORA: dict[str, Corpus] = {
    RawText.name: RawText(),
    Ud.name: Ud(),
    **read_corpora(Path(__file__).with_name("catalogue.toml")),
    **OF_FEATURES,
}

CORPORA: dict[str, Corpus] = dict(sorted(_CORPORA.items()))
"""All corpora by name, with the default of every field. Those of packages are in the group ``corpora``."""
