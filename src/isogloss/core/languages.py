"""Language codes and facts: ISO 639-1 codes if they exist, else 639-3. Built-in: qaa to qai.

A script or region follows where it matters: BCP 47's ``zh-Hant`` and ``sr-Latn``, which are written
``zh_Hant`` and ``sr_Latn`` here, because a hyphen joins two languages (``en-zh_Hant``).

The names cover the languages of the corpora the toolkit reads; other codes (any two or three letters) are
languages without an English name here. Facts (family, script, resource class, word order;
``languages.tsv``) cover languages of FLORES-200, Universal Dependencies, NTREX-128, the shipped descriptions
and the Wikipedias of 2020. A language without facts is unknown: nothing is guessed from its relatives.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

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

BUILT_IN_NAMES = {
    "qaa": "Ansa", "qab": "Bora", "qac": "Cilu", "qad": "Dunar", "qae": "Esko", "qaf": "Fileo",
    "qag": "Gayara", "qah": "Hubal", "qai": "Inlu",
}  # fmt: skip

BOTH = "+"
"""Separates two languages where an input is in both."""

_CODE = re.compile(r"[a-z]{2,3}(_[A-Z][a-z]{3})?(_([A-Z]{2}|[0-9]{3}))?")
_BETWEEN_LANGUAGES = re.compile(r"(\+|-(?![A-Za-z][a-z]{3}(?![a-z])|[A-Z]{2}(?![A-Za-z])|[0-9]{3}))")
"""A plus, or a hyphen that no script or region follows."""
_LOWER_SCRIPT = re.compile(r"[a-z]{2,3}[-_][a-z]{4}")
_LOWER_REGION = re.compile(r"[a-z]{2}")
_BUILT_IN = re.compile(r"qa[a-i](_[A-Z][a-z]{3}_[0-9]{3})?")
"""A built-in language, or one derived from it: qaa_Wrda_025."""
_MAY_BE_LONGER = re.compile(r"[a-z]{3}|.*[-_].*", re.DOTALL)
_WIKIPEDIA_ALEMANNIC = "als"
"""Code of Alemannic in Wikipedia and WikiANN. ISO 639-3's Tosk Albanian is written ``als_Latn``."""
RETIRED = {"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro"}
"""Codes of two letters that ISO 639-1 has replaced by others. Corpora such as mC4 have them.

``sh`` is none of these: it is the Serbo-Croatian of Wikipedia, besides Croatian and Serbian.
"""
_AKAN = "ak"
"""Akan. Corpora contain its varieties Twi and Fante."""


def is_language_code(text: str) -> bool:
    """Return whether a text has the form of a language code."""
    return bool(_CODE.fullmatch(text))


def check_language(language: str, field: str) -> str:
    """Return a field's code. Raises ConfigError if it does not have the form of a language code."""
    if not is_language_code(language):
        raise ConfigError(
            f"{field}: {language!r} is no language code. Use ISO 639-1 (en, sw), else 639-3 (yue); "
            f"the built-in languages are qaa to qai; a script or region may follow (zh-Hant, pt-BR)."
        )
    return language


def canonical_language(text: str) -> str:
    """Return a BCP 47 tag in the spelling of isogloss, also inside a pair such as en-zh-Hant or en+sr-Latn.

    ``zh-Hant`` becomes ``zh_Hant``, but ``yor_Latn`` ``yo`` and ``kor_Hang`` ``ko``: a language's usual
    script is dropped. A three-letter code becomes the two-letter code if one exists (``yor``, but not
    ``yue``). A standard variety becomes its language (``swh``, ``arb_Arab``, but not ``ary``). A retired code
    becomes the code that replaced it (``iw``: ``he``). Scripts and regions may be in lower case
    (``zh-hant``, ``zh-hant-tw``). Other texts and codes of two letters are returned unchanged.
    """
    return "".join(_canonical(_write_built_in(part)) for part in _split_languages(text))


def _write_built_in(tag: str) -> str:
    """Return qaa-Wrda-025 as qaa_Wrda_025, and any other text unchanged."""
    built_in_code = tag.replace("-", "_")
    return built_in_code if is_built_in(built_in_code) else tag


def _split_languages(text: str) -> list[str]:
    """Return the tags of a text and the signs between them."""
    parts = list[str]()
    for part in _BETWEEN_LANGUAGES.split(text):
        follows_script = len(parts) > 1 and parts[-1] == "-" and _LOWER_SCRIPT.fullmatch(parts[-2])
        if follows_script and _is_lower_region(part):
            tag = parts[-2]
            parts[-2:] = [f"{tag}-{part}"]
        else:
            parts.append(part)
    return parts


@cache
def _is_lower_region(text: str) -> bool:
    if not _LOWER_REGION.fullmatch(text):
        return False
    from langcodes import Language  # 40 ms

    return bool(Language.get(f"und-{text.upper()}").is_valid())


def languages_named(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the languages that texts name, joined by commas or one at a time, each once.

    ConfigError for texts that name none.
    """
    texts = tuple(texts)
    languages = dict.fromkeys(canonical_language(name) for name in " ".join(texts).replace(",", " ").split())
    if texts and not languages:
        raise ConfigError("--language: no language is given. Name some, as in --language de,fr.")
    return tuple(languages)


@cache
def _canonical(tag: str) -> str:
    if tag in RETIRED:
        return RETIRED[tag]
    if not _MAY_BE_LONGER.fullmatch(tag) or tag == _WIKIPEDIA_ALEMANNIC or is_built_in(tag):
        return tag
    from langcodes import LanguageTagError, standardize_tag  # 40 ms

    try:
        standard = str(standardize_tag(tag)).replace("-", "_")
    except LanguageTagError:
        return tag
    if not _CODE.fullmatch(standard):
        return tag
    if tag.startswith(("tl", "tgl")):
        standard = standard.replace(
            "fil", "tl"
        )  # To CLDR Tagalog is Filipino; corpora say tl, tgl and tgl_Latn.
    base, _, variety = standard.partition("_")
    base = _shorten_code(base)
    if len(base) == len(tag):
        return tag  # Three letters that ISO 639 has replaced by others.
    return base if not variety or is_usual_script(variety, base) else f"{base}_{variety}"


def _shorten_code(base: str) -> str:
    """Return the two-letter code of the language that a three-letter code is the standard variety of.

    Other codes are returned unchanged.
    """
    from langcodes.data_dicts import NORMALIZED_MACROLANGUAGES

    macrolanguage = NORMALIZED_MACROLANGUAGES.get(base, "") if len(base) == 3 else ""
    return macrolanguage if len(macrolanguage) == 2 and macrolanguage != _AKAN else base


def is_usual_script(script: str, base: str) -> bool:
    """Return whether a language, given without script and region, is usually written in this script."""
    return script in _usual_scripts(base)


def _usual_scripts(base: str) -> tuple[str, ...]:
    usual = base_and_script(base)[1]
    if usual == "Kore":
        return ("Hang", usual)  # FLORES has Hang, CLDR Kore.
    return (usual,) if usual else ()


@cache
def spellings(language: str) -> tuple[str, ...]:
    """Return the spellings of a language or a pair in file names, the given one first.

    ``zh_Hant``, ``zh-Hant``, ``zho_Hant``; ``yo``, ``yor``, ``yor_Latn``; ``en-yo``, ``eng-yor``.
    """
    canonical = canonical_language(language)
    tags = [language, *map("-".join, product(*map(_list_spellings, canonical.split("-"))))]
    if "-" not in canonical:
        tags = [spelling for tag in tags for spelling in (tag, tag.replace("_", "-"))]
    return tuple(dict.fromkeys(tags))


def _list_spellings(language: str) -> list[str]:
    if is_built_in(language):
        return [language]
    base, _, variety = language.partition("_")
    retired_codes = [base_code for base_code, replacement in RETIRED.items() if replacement == base]
    codes = (base, *codes_of_three_letters(base), *retired_codes)
    endings = dict.fromkeys((variety, "", *_usual_scripts(base)))
    tags = [f"{base_code}_{ending}" if ending else base_code for ending in endings for base_code in codes]
    return [tag for tag in tags if _canonical(tag) == language]


def codes_of_three_letters(base: str) -> tuple[str, ...]:
    """Return ISO 639-2 and 639-3's codes of a language of two letters: ``swa`` and ``swh`` of ``sw``."""
    return tuple(_codes_of_three_letters().get(base, ()))


@cache
def _codes_of_three_letters() -> dict[str, list[str]]:
    from langcodes.data_dicts import LANGUAGE_ALPHA3, LANGUAGE_REPLACEMENTS, NORMALIZED_MACROLANGUAGES

    codes: dict[str, list[str]] = {}
    for long_code in dict.fromkeys(
        (*LANGUAGE_ALPHA3.values(), *NORMALIZED_MACROLANGUAGES, *LANGUAGE_REPLACEMENTS)
    ):
        if len(long_code) == 3:
            base = _canonical(f"{long_code}_Zyyy").partition("_")[0]  # Any script: als is Albanian with one.
            codes.setdefault(base, []).append(long_code)
    return codes


@cache
def base_and_script(language: str) -> tuple[str, str]:
    """Return a language without script and region, and its (likely) script. Empty if unknown."""
    from langcodes import Language
    from langcodes.data_dicts import LIKELY_SUBTAGS

    tag = Language.get(language.replace("_", "-"))
    is_listed = {tag.language, tag.prefer_macrolanguage().language} & LIKELY_SUBTAGS.keys()
    likely = tag.maximize().script if is_listed else tag.script
    return str(tag.language), str(likely or "")


def language_of_variety(variety: str) -> str:
    """Return the language that a code's variety is the standard of, without script or region.

    ``ar`` of ``arb_Arab`` and ``sw`` of ``swh``; other members of a macrolanguage (``ary``) are separate
    languages. Texts that are not tags stay unchanged, like pairs: in ``en-de``, ``de`` is a language and not
    the region Germany.
    """
    from langcodes import Language, LanguageTagError, standardize_tag

    if _BETWEEN_LANGUAGES.search(variety):
        return variety
    try:
        return str(Language.get(standardize_tag(variety, macro=True)).language)
    except LanguageTagError:
        return variety


def language_of_text(language: str) -> str:
    """Return the language of a text: for a pair such as en-sw, translated from en into sw, the last one."""
    return language.rpartition("-")[2]


def is_built_in(language: str) -> bool:
    """Return whether a code is one of qaa to qai, or derived from one (qaa_Wrda_025).

    The private codes after them (UD's qtd) are the user's.
    """
    return bool(_BUILT_IN.fullmatch(language))


def language_name(language: str) -> str:
    """Return the English name, with the script or region if any. Without a listed name, return the code."""
    base, _, variety = language.partition("_")
    name = {**NAMES, **BUILT_IN_NAMES}.get(base)
    if name is None:
        return language
    return f"{name} ({variety})" if variety else name


UNKNOWN = "unknown"


class LanguageFacts(NamedTuple):
    """Facts of a language, each ``unknown`` where the table has none."""

    family: str = UNKNOWN
    """Top-level family of Glottolog. An isolate has its language's name."""
    script: str = UNKNOWN
    """ISO 15924 script: the script of the code (``sr_Latn``), else the usual one."""
    resources: str = UNKNOWN
    """Class of Joshi et al. (2020), from "0", hardly any data, to "5"."""
    order: str = UNKNOWN
    """Dominant order of subject, verb and object: SVO, SOV or VSO."""


def language_facts(language: str) -> LanguageFacts:
    """Return the facts of a language by any of its codes: ``sw``, ``swa``, ``swh_Latn``, ``zho-Hans``.

    A pair such as ``en-sw`` has the facts of its last language. A macrolanguage and its standard variety
    (``ar``, ``arb``) are the same language; other members (``ary``) are separate languages.
    """
    language = language_of_text(canonical_language(language))
    if is_built_in(language):
        return LanguageFacts()
    from langcodes import Language, LanguageTagError, standardize_tag  # 40 ms

    try:
        tag = Language.get(standardize_tag(language, macro=True))
        facts = all_language_facts().get(tag.to_alpha3(), LanguageFacts())
    except (LanguageTagError, LookupError):
        return LanguageFacts()
    return facts._replace(script=tag.script or facts.script)


@cache
def all_language_facts() -> dict[str, LanguageFacts]:
    """Return the table: facts by ISO 639-3 code."""
    text = (files("isogloss.core") / "languages.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    return {
        language: LanguageFacts(*(UNKNOWN if fact == "-" else fact for fact in facts))
        for language, *facts in rows
    }
