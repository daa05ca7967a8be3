"""The corpus of a fine-tuned model on the hub: its datasets, its licence, and what the licence forbids."""

import re

from isogloss.core.languages import is_built_in
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.own import KNOWN
from isogloss.data.corpus import Corpus
from isogloss.data.hub_splits import hub_splits
from isogloss.using.provenance import Provenance

OTHER = "other"
"""The hub's name for other licences, which come with a name and a link."""

_NON_COMMERCIAL = re.compile(r"\bNC\b|non-?commercial", re.IGNORECASE)
_COMMONS = re.compile(r"CC BY((?:-(?:NC|SA|ND))*) (\d\.\d)")


def corpus_of(provenance: Provenance) -> Corpus | None:
    """Return the corpus a model was trained on. None if unknown."""
    name = provenance.corpus.partition(":")[0]
    return CORPORA.get(name) or KNOWN.get(name)


def datasets_of(provenance: Provenance) -> list[str]:
    """List the datasets of the hub that a model was trained on."""
    repositories = (
        split.repository
        for split in hub_splits().values()
        if split.corpus.name == provenance.corpus and split.language in provenance.languages
    )
    return list(dict.fromkeys(repositories))


def licence_of(provenance: Provenance) -> str | None:
    """Return the hub's name of the licence of a model's training data. None if unknown."""
    corpus = corpus_of(provenance)
    if has_built_in_languages(provenance) or (corpus and corpus.about.licence.startswith("Apache-2.0")):
        return "apache-2.0"
    if corpus is None or not corpus.about.licence:
        return None
    match = _COMMONS.match(corpus.about.licence)
    return f"cc-by{match[1].lower()}-{match[2]}" if match else OTHER


def non_commercial(provenance: Provenance) -> str:
    """Return a warning if a part of the training data is not for commercial use. Otherwise empty."""
    corpus = corpus_of(provenance)
    licence = corpus.about.licence if corpus else ""
    if corpus is None or has_built_in_languages(provenance) or not _NON_COMMERCIAL.search(licence):
        return ""
    return f"the licence of corpus {corpus.name} ({licence}) forbids commercial use, at least of a part."


def has_built_in_languages(provenance: Provenance) -> bool:
    """Return whether a model was trained on built-in languages. False if its languages are unknown."""
    return bool(provenance.languages) and all(is_built_in(language) for language in provenance.languages)
