"""Facts about languages: family, script and resource class (``languages.tsv``).

The table covers the languages of FLORES-200, Universal Dependencies, NTREX-128, the shipped descriptions and
the Wikipedias of 2020. A language that is not in it is unknown: nothing is guessed from its relatives.
"""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from isogloss.core.languages import canonical_language, is_built_in, language_of_text

UNKNOWN = "unknown"


class LanguageFacts(NamedTuple):
    """Facts of a language, each ``unknown`` where the table has none."""

    family: str = UNKNOWN
    """Top-level family of Glottolog; that of an isolate is named as the language."""
    script: str = UNKNOWN
    """ISO 15924: that of the code (``sr_Latn``), else the usual one."""
    resources: str = UNKNOWN
    """Class of Joshi et al. (2020), from "0", hardly any data, to "5"."""


def language_facts(code: str) -> LanguageFacts:
    """Return the facts of a language by any code of it: ``sw``, ``swa``, ``swh_Latn``, ``zho-Hans``.

    Of a pair such as ``en-sw`` it is the last. A macrolanguage and its standard variety (``ar``, ``arb``) are
    one; its other members (``ary``) are languages of their own.
    """
    code = language_of_text(canonical_language(code))
    if is_built_in(code):
        return LanguageFacts()
    from langcodes import Language, LanguageTagError, standardize_tag  # 40 ms

    try:
        tag = Language.get(standardize_tag(code, macro=True))
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
        code: LanguageFacts(*(UNKNOWN if fact == "-" else fact for fact in facts)) for code, *facts in rows
    }
