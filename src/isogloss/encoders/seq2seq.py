"""Sequence-to-sequence models: loaded as safely as encoders are, and made to translate rows of subwords.

One layout serves Marian, NLLB, M2M-100, mBART-50 and T5: what tells the languages, the text, the end. What
these models call languages (ISO codes here) is in their vocabularies.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from isogloss.core.errors import ModelError, did_you_mean
from isogloss.data.parallel_text import THREE_LETTERS
from isogloss.encoders import folders
from isogloss.encoders.loading import check_all_there, from_pretrained

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

AUTO_CLASS = "AutoModelForSeq2SeqLM"
POSITIONS = 512
"""Longest input where a model's positions are relative and know no end."""

RATIO, EXTRA = 3, 16
"""A translation has at most so many times its text's subwords, and so many more: what goes on is no text."""

_AROUND = 3
"""Subwords around a translation: the start, the language and the end."""

_FILES = ("*.json", "*.txt", "*.model", "*.spm", "*.safetensors")
_TOKENIZERS = (*folders.TOKENIZERS, "source.spm", "spiece.model")

_OPEN, _CLOSE = ">>", "<<"


class Direction(NamedTuple):
    """How a model is told what to translate into what, in subwords of its vocabulary."""

    prefix: tuple[int, ...] = ()
    """What stands before every text."""
    first: int | None = None
    """What every translation is made to begin with."""


@dataclass(frozen=True)
class TranslationSubwords:
    """Texts to rows of subwords and back, for one direction of one model."""

    tokenizer: "PreTrainedTokenizerFast"
    direction: Direction
    longest: int
    """Subwords the model reads or writes, those that tell languages and end included."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the rows the model reads; longer ones than it takes are not cut here."""
        if not texts:
            return []
        rows = self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return [[*self.direction.prefix, *row, self.tokenizer.eos_token_id] for row in rows]

    def decode(self, rows: Iterable[Sequence[int]]) -> list[str]:
        """Return the texts of rows the model wrote, each in one line."""
        texts = (self.tokenizer.decode(list(row), skip_special_tokens=True) for row in rows)
        return [" ".join(text.split()) for text in texts]

    def names(self, row: Sequence[int]) -> list[str]:
        """Return the subwords of a row as they are called in the vocabulary."""
        found: list[str] = self.tokenizer.convert_ids_to_tokens(list(row))
        return found


def seq2seq_folder(source: str | Path) -> Path:
    """Return the folder of a sequence-to-sequence model, given a folder or hub name; ModelError if broken."""
    folder = folders.find_folder(source, _FILES, folders.has_weights)
    folders.read_config(folder)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise ModelError(
            f"{folder}: no tokenizer ({', '.join(_TOKENIZERS)}). Save the model's own tokenizer there: "
            f"AutoTokenizer.from_pretrained(NAME).save_pretrained({str(folder)!r})."
        )
    folders.check_weights(folder, AUTO_CLASS)
    return folder


def load_subwords(source: str | Path, languages: tuple[str, str]) -> TranslationSubwords:
    """Load the tokenizer of a model and find how it is told the languages (source, target)."""
    from transformers import AutoConfig, AutoTokenizer

    folder = seq2seq_folder(source)
    config = from_pretrained(AutoConfig, folder, {})
    tokenizer = from_pretrained(AutoTokenizer, folder, {})
    return subwords_for(tokenizer, config, languages, where=str(folder))


def subwords_for(
    tokenizer: "PreTrainedTokenizerFast",
    config: "PreTrainedConfig",
    languages: tuple[str, str],
    *,
    where: str = "this model",
) -> TranslationSubwords:
    """Return what turns texts into rows for a model that is there already."""
    direction = direction_between(tokenizer.get_vocab(), *languages, where=where)
    longest = getattr(config, "max_position_embeddings", None) or POSITIONS
    return TranslationSubwords(tokenizer, direction, min(longest, tokenizer.model_max_length))


def load_seq2seq(source: str | Path) -> "PreTrainedModel":
    """Load a sequence-to-sequence model in fp32, in evaluation mode; ModelError when weights are missing."""
    from transformers import AutoConfig, AutoModelForSeq2SeqLM

    folder = seq2seq_folder(source)
    config = from_pretrained(AutoConfig, folder, {})
    with torch.random.fork_rng(devices=[]):
        model, info = from_pretrained(
            AutoModelForSeq2SeqLM,
            folder,
            {
                "config": config,
                "dtype": torch.float32,
                "use_safetensors": True,
                "output_loading_info": True,
            },
        )
    # Positions that are computed are in no file.
    missing = {name for name in info["missing_keys"] if "embed_positions" not in name}
    check_all_there(folder, AUTO_CLASS, missing)
    return model.eval()


def generate(
    model: "PreTrainedModel",
    rows: Sequence[Sequence[int]],
    *,
    first: int | None = None,
    beams: int = 1,
    longest: int = 256,
) -> list[list[int]]:
    """Translate rows of subwords; return what was written, without what begins and ends it.

    One beam is greedy search. Nothing but the row itself decides when it has to end. ``longest`` counts what
    begins and ends a translation, and is at most what the model takes.
    """
    from transformers import GenerationConfig

    device, padding = next(model.parameters()).device, model.config.pad_token_id
    own, end = model.generation_config.decoder_start_token_id, _end(model)
    ids, mask = _padded(rows, padding)
    limits = torch.tensor([limit_of(row, longest) for row in rows], device=device)
    written = model.generate(
        input_ids=ids.to(device),
        attention_mask=mask.to(device),
        generation_config=GenerationConfig(
            num_beams=beams,
            do_sample=False,
            max_new_tokens=int(limits.max()) + 2,
            decoder_start_token_id=model.config.decoder_start_token_id if own is None else own,
            eos_token_id=end,
            pad_token_id=padding,
        ),
        logits_processor=[_InTime(limits, beams, end, padding, first)],
    )
    return [trimmed(row, end, padding, first) for row in written[:, 1:].tolist()]


def limit_of(row: Sequence[int], longest: int) -> int:
    """Return how many subwords the translation of a row may have, beside what begins and ends it."""
    return min(longest - _AROUND, RATIO * len(row) + EXTRA)


def trimmed(row: Sequence[int], end: int, padding: int, first: int | None) -> list[int]:
    """Leave out what is forced at the beginning, and the end with all after it."""
    kept: list[int] = []
    for place, subword in enumerate(row):
        if subword in (end, padding):
            break
        if place or subword != first:
            kept.append(subword)
    return kept


@dataclass(frozen=True)
class _InTime:
    """Let a row begin with its language and end where it must, and never hold padding."""

    limits: Tensor
    """[batch], subwords each translation may have."""
    beams: int
    end: int
    padding: int
    first: int | None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        written = input_ids.size(1) - 1
        scores = scores.clone()
        scores[:, self.padding] = -torch.inf
        if written == 0 and self.first is not None:
            return _only(scores, torch.ones(len(scores), dtype=torch.bool), self.first)
        forced = 0 if self.first is None else 1
        late = (written - forced >= self.limits).repeat_interleave(self.beams)
        return _only(scores, late, self.end) if bool(late.any()) else scores


def _only(scores: Tensor, rows: Tensor, subword: int) -> Tensor:
    scores[rows.to(scores.device)] = -torch.inf
    scores[rows.to(scores.device), subword] = 0.0
    return scores


def _end(model: "PreTrainedModel") -> int:
    end = model.config.eos_token_id
    return int(end[0] if isinstance(end, list) else end)


def _padded(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])
    return ids, (torch.arange(longest) < lengths.unsqueeze(1)).long()


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

_BOTH_SIDES: dict[str, Callable[[str], tuple[str, ...]]] = {
    "eng_Latn": lambda language: (language, FLORES.get(language, "")),
    "__en__": lambda language: (f"__{language}__",),
    "en_XX": lambda language: (f"{language}_{MBART.get(language, '')}",),
}
"""NLLB, M2M-100 and mBART-50: the source's code before the text, the target's before the translation.

By a code that tells such a vocabulary: what spells those of a language.
"""


def direction_between(vocabulary: Mapping[str, int], source: str, target: str, where: str) -> Direction:
    """Find how a model with this vocabulary is told the languages; nothing to tell where it knows one pair.

    ModelError when the vocabulary has codes, but none for these languages.
    """
    for known, spell in _BOTH_SIDES.items():
        if known in vocabulary:
            first, second = (
                _number(vocabulary, spell(language), language, where) for language in (source, target)
            )
            return Direction((first,), second)
    if any(piece.startswith(_OPEN) and piece.endswith(_CLOSE) for piece in vocabulary):
        flores, three = FLORES.get(target, ""), THREE_LETTERS.get(target, "")
        of_flores, _, script = flores.partition("_")
        names = (target, three, of_flores, flores, f"{three}_{script}")
        return Direction((_number(vocabulary, map(language_subword, names), target, where),))
    return Direction()


def language_subword(language: str) -> str:
    """Return the subword that tells a Marian model of several languages to translate into this one."""
    return f"{_OPEN}{language}{_CLOSE}"


def _number(vocabulary: Mapping[str, int], spellings: Iterable[str], language: str, where: str) -> int:
    tried = [spelling for spelling in spellings if spelling]
    for spelling in tried:
        if spelling in vocabulary:
            return vocabulary[spelling]
    codes = [piece for piece in vocabulary if "_" in piece or piece.startswith(_OPEN)]
    raise ModelError(
        f"{where}: this model knows no language {language!r} (looked for {', '.join(tried)})."
        f"{did_you_mean(tried[0], codes)} Choose another model, or write the language as the model does."
    )
