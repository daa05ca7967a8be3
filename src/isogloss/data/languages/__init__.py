"""The built-in languages: a family generated from a seed, with gold labels for every task.

from isogloss.data.languages import LANGUAGES, Translator, card, examples, translations

for sentence in examples("ud", "qad", "dev"):
    ...
"""

from isogloss.data.languages.family import LANGUAGES, VERSION, Language, card
from isogloss.data.languages.generating import SIZES, examples, split_size, translations
from isogloss.data.languages.translated import count_lost, translated
from isogloss.data.languages.translating import Translator

__all__ = [
    "LANGUAGES",
    "SIZES",
    "VERSION",
    "Language",
    "Translator",
    "card",
    "count_lost",
    "examples",
    "split_size",
    "translated",
    "translations",
]
