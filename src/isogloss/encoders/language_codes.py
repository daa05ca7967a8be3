"""What translation models call languages: ISO codes here, codes of their own in their vocabularies."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from isogloss.core.errors import ModelError, did_you_mean
from isogloss.data.parallel_text import THREE_LETTERS

FLORES = {
    "af": "afr_Latn", "am": "amh_Ethi", "ar": "arb_Arab", "az": "azj_Latn", "be": "bel_Cyrl",
    "bg": "bul_Cyrl", "bn": "ben_Beng", "bs": "bos_Latn", "ca": "cat_Latn", "cs": "ces_Latn",
    "cy": "cym_Latn", "da": "dan_Latn", "de": "deu_Latn", "el": "ell_Grek", "en": "eng_Latn",
    "eo": "epo_Latn", "es": "spa_Latn", "et": "est_Latn", "eu": "eus_Latn", "fa": "pes_Arab",
    "fi": "fin_Latn", "fr": "fra_Latn", "ga": "gle_Latn", "gl": "glg_Latn", "gu": "guj_Gujr",
    "ha": "hau_Latn", "he": "heb_Hebr", "hi": "hin_Deva", "hr": "hrv_Latn", "ht": "hat_Latn",
    "hu": "hun_Latn", "hy": "hye_Armn", "id": "ind_Latn", "ig": "ibo_Latn", "is": "isl_Latn",
    "it": "ita_Latn", "ja": "jpn_Jpan", "jv": "jav_Latn", "ka": "kat_Geor", "kk": "kaz_Cyrl",
    "km": "khm_Khmr", "kn": "kan_Knda", "ko": "kor_Hang", "ky": "kir_Cyrl", "lo": "lao_Laoo",
    "lt": "lit_Latn", "lv": "lvs_Latn", "mg": "plt_Latn", "mi": "mri_Latn", "mk": "mkd_Cyrl",
    "ml": "mal_Mlym", "mn": "khk_Cyrl", "mr": "mar_Deva", "ms": "zsm_Latn", "mt": "mlt_Latn",
    "my": "mya_Mymr", "nb": "nob_Latn", "ne": "npi_Deva", "nl": "nld_Latn", "nn": "nno_Latn",
    "no": "nob_Latn", "pa": "pan_Guru", "pl": "pol_Latn", "ps": "pbt_Arab", "pt": "por_Latn",
    "qu": "quy_Latn", "ro": "ron_Latn", "ru": "rus_Cyrl", "si": "sin_Sinh", "sk": "slk_Latn",
    "sl": "slv_Latn", "so": "som_Latn", "sq": "als_Latn", "sr": "srp_Cyrl", "sv": "swe_Latn",
    "sw": "swh_Latn", "ta": "tam_Taml", "te": "tel_Telu", "tg": "tgk_Cyrl", "th": "tha_Thai",
    "tl": "tgl_Latn", "tr": "tur_Latn", "uk": "ukr_Cyrl", "ur": "urd_Arab", "uz": "uzn_Latn",
    "vi": "vie_Latn", "wo": "wol_Latn", "xh": "xho_Latn", "yo": "yor_Latn", "yue": "yue_Hant",
    "zh": "zho_Hans", "zu": "zul_Latn",
}  # fmt: skip
"""NLLB's codes: FLORES-200's, of the variety and script that a corpus of this ISO code most often is in."""

MBART = {
    "af": "ZA", "ar": "AR", "az": "AZ", "bn": "IN", "cs": "CZ", "de": "DE", "en": "XX", "es": "XX",
    "et": "EE", "fa": "IR", "fi": "FI", "fr": "XX", "gl": "ES", "gu": "IN", "he": "IL", "hi": "IN",
    "hr": "HR", "id": "ID", "it": "IT", "ja": "XX", "ka": "GE", "kk": "KZ", "km": "KH", "ko": "KR",
    "lt": "LT", "lv": "LV", "mk": "MK", "ml": "IN", "mn": "MN", "mr": "IN", "my": "MM", "ne": "NP",
    "nl": "XX", "pl": "PL", "ps": "AF", "pt": "XX", "ro": "RO", "ru": "RU", "si": "LK", "sl": "SI",
    "sv": "SE", "sw": "KE", "ta": "IN", "te": "IN", "th": "TH", "tl": "XX", "tr": "TR", "uk": "UA",
    "ur": "PK", "vi": "VN", "xh": "ZA", "zh": "CN",
}  # fmt: skip
"""What follows the language in mBART-50's codes (``sw_KE``)."""

_OPEN, _CLOSE = ">>", "<<"


class Direction(NamedTuple):
    """How a model is told what to translate into what, in subwords of its vocabulary."""

    prefix: tuple[int, ...] = ()
    """What stands before every text."""
    first: int | None = None
    """What every translation is made to begin with."""


@dataclass(frozen=True)
class _Manner:
    """A kind of models' codes: ``known`` tells such a vocabulary, ``spell`` gives the codes of a language."""

    known: str

    def spell(self, language: str) -> tuple[str, ...]:
        forms = {
            "eng_Latn": (language, FLORES.get(language, "")),
            "__en__": (f"__{language}__",),
            "en_XX": (f"{language}_{MBART.get(language, '')}",),
        }
        return forms[self.known]


_BOTH_SIDES = (_Manner("eng_Latn"), _Manner("__en__"), _Manner("en_XX"))
"""NLLB, M2M-100 and mBART-50: the source's code before the text, the target's before the translation."""


def direction_between(vocabulary: Mapping[str, int], source: str, target: str, where: str) -> Direction:
    """Find how a model with this vocabulary is told the languages; nothing to tell where it knows one pair.

    ModelError when the vocabulary has codes, but none for these languages.
    """
    for manner in _BOTH_SIDES:
        if manner.known in vocabulary:
            first, second = (
                _number(vocabulary, manner.spell(language), language, where) for language in (source, target)
            )
            return Direction((first,), second)
    if any(piece.startswith(_OPEN) and piece.endswith(_CLOSE) for piece in vocabulary):
        return Direction((_number(vocabulary, _marian(target), target, where),))
    return Direction()


def language_subword(language: str) -> str:
    """Return the subword that tells a Marian model of several languages to translate into this one."""
    return f"{_OPEN}{language}{_CLOSE}"


def _marian(language: str) -> tuple[str, ...]:
    flores = FLORES.get(language, "")
    three = THREE_LETTERS.get(language, "")
    names = (language, three, flores.partition("_")[0], flores, f"{three}_{flores.partition('_')[2]}")
    return tuple(language_subword(name) for name in names)


def _number(vocabulary: Mapping[str, int], spellings: Iterable[str], language: str, where: str) -> int:
    tried = [spelling for spelling in spellings if spelling]
    for spelling in tried:
        if spelling in vocabulary:
            return vocabulary[spelling]
    raise ModelError(
        f"{where}: this model knows no language {language!r} (looked for {', '.join(tried)})."
        f"{did_you_mean(tried[0], _codes(vocabulary))} Choose another model, or write the language as the "
        f"model does."
    )


def _codes(vocabulary: Container[str] | Iterable[str]) -> list[str]:
    return [piece for piece in vocabulary if "_" in piece or piece.startswith(_OPEN)]  # type: ignore[union-attr]
