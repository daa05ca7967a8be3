"""Language codes: ISO 639-1 where there is one, else 639-3; qaa to qtz are the built-in languages.

The names cover the languages of the corpora the toolkit reads. A code that is not listed is still a
language (anything of two or three letters is), it only has no English name here.
"""

import re

from isogloss.core.errors import ConfigError

NAMES = {
    "af": "Afrikaans", "ar": "Arabic", "bg": "Bulgarian", "bn": "Bengali", "cs": "Czech", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian",
    "it": "Italian", "ja": "Japanese", "jv": "Javanese", "ka": "Georgian", "kk": "Kazakh", "kn": "Kannada",
    "ko": "Korean", "lt": "Lithuanian", "ml": "Malayalam", "mr": "Marathi", "ms": "Malay", "my": "Burmese",
    "nl": "Dutch", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sw": "Swahili",
    "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian",
    "ur": "Urdu", "vi": "Vietnamese", "yo": "Yoruba", "zh": "Chinese",
}  # fmt: skip

BOTH = "+"
"""Separates two languages where an input is in both."""

_CODE = re.compile(r"[a-z]{2,3}")
_BUILT_IN = re.compile(r"q[a-t][a-z]")


def check_language(code: str, where: str) -> str:
    """Return the code if it has the form of one; raise ConfigError otherwise."""
    if not _CODE.fullmatch(code):
        raise ConfigError(
            f"{where}: {code!r} is no language code. Use ISO 639-1 (en, sw), else 639-3 (yue); "
            f"the built-in languages are qaa, qab, …"
        )
    return code


def language_of_text(language: str) -> str:
    """Return the language a text is in: of a pair such as en-sw, translated from en into sw, the last."""
    return language.rpartition("-")[2]


def is_built_in(code: str) -> bool:
    """Return whether a code is in the private range qaa…qtz, the built-in languages."""
    return bool(_BUILT_IN.fullmatch(code))


def language_name(code: str) -> str:
    """Return the English name, or the code itself where none is listed."""
    return NAMES.get(code, code)
