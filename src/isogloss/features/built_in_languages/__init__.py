"""The built-in languages: a family generated from a seed, with gold labels for every task.

from isogloss.features.built_in_languages import LANGUAGES, BuiltInTranslator, card, examples, translations

for sentence in examples("ud", "qad", "dev"):
    ...

They are also corpora: files in the corpora's native formats, generated when they are read. Readers,
fingerprints and runs treat them like files on disk; ``BuiltInLanguages`` writes them.
"""

from isogloss.features.built_in_languages.corpora import GENERATED_AS, BuiltInLanguages, built_in_size
from isogloss.features.built_in_languages.family import LANGUAGES, VERSION, Language, card, find_language
from isogloss.features.built_in_languages.generating import SIZES, examples, split_size, translations
from isogloss.features.built_in_languages.translating import BuiltInTranslator, translate_corpus, words_of

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
    "examples",
    "find_language",
    "split_size",
    "translate_corpus",
    "translations",
    "words_of",
]
