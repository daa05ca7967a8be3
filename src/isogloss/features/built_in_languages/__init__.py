"""The built-in languages: a family generated from a seed, with gold labels for every task.

from isogloss.features.built_in_languages import LANGUAGES, BuiltInTranslator, card, examples, translations

for sentence in examples("ud", "qad", "dev"):
    ...

They are also corpora: files in the corpora's native formats, generated when they are read. Readers,
fingerprints and runs treat them like files on disk; ``BuiltInLanguages`` writes them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isogloss.features.built_in_languages.corpora import GENERATED_AS, BuiltInLanguages, built_in_size
    from isogloss.features.built_in_languages.distances import measure_distances
    from isogloss.features.built_in_languages.family import (
        LANGUAGES,
        VERSION,
        Language,
        card,
        derive_language,
        find_language,
    )
    from isogloss.features.built_in_languages.generating import examples, translations
    from isogloss.features.built_in_languages.sizes import SIZES, split_size
    from isogloss.features.built_in_languages.translating import BuiltInTranslator, translate_corpus, words_of

_NAMES = {
    "corpora": "GENERATED_AS BuiltInLanguages built_in_size",
    "distances": "measure_distances",
    "family": "LANGUAGES VERSION Language card derive_language find_language",
    "generating": "examples translations",
    "sizes": "SIZES split_size",
    "translating": "BuiltInTranslator translate_corpus words_of",
}
_HOMES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "GENERATED_AS",
    "LANGUAGES",
    "SIZES",
    "VERSION",
    "BuiltInLanguages",
    "BuiltInTranslator",
    "Language",
    "built_in_size",
    "card",
    "derive_language",
    "examples",
    "find_language",
    "measure_distances",
    "split_size",
    "translate_corpus",
    "translations",
    "words_of",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
