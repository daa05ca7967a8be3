"""The built-in languages: a family generated from a seed, with gold labels for every task.

from isogloss.data.languages import LANGUAGES, Translator, card, examples, translations

for sentence in examples("ud", "qad", "dev"):
    ...
"""

from isogloss.data.languages.family import LANGUAGES, VERSION, Language, card, find_language
from isogloss.data.languages.generating import SIZES, examples, split_size, translations
from isogloss.data.languages.translating import Translator, translated, words_of

__all__ = [
    "LANGUAGES",
    "SIZES",
    "VERSION",
    "Language",
    "Translator",
    "card",
    "examples",
    "find_language",
    "split_size",
    "translated",
    "translations",
    "words_of",
]
