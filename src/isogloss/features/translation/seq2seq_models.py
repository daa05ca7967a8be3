"""Sequence-to-sequence models for translation: loaded as safely as encoders, run on subword ids, or new.

Marian, NLLB, M2M-100, mBART-50 and T5 share one input format: language codes, text, end. Their codes are
found in the vocabulary from ISO codes. A new (Marian) model may have several directions: ``>>fr<<`` before a
text requests French, as in OPUS-MT.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from isogloss.core.errors import ModelError, did_you_mean
from isogloss.core.languages import base_and_script, codes_of_three_letters, is_usual_script
from isogloss.encoders import folders
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.encoders.folders import from_pretrained, quiet
from isogloss.encoders.learned_subwords import ModelJson, check_size, reading, unigram_pieces
from isogloss.encoders.loading import LEAST_NUMBERS, check_complete, check_sizes
from isogloss.encoders.subwords import pad_rows, padding_mask

AUTO_CLASS = "AutoModelForSeq2SeqLM"
POSITIONS = 512
"""Maximum input length of models with relative positions."""

RATIO = 3
EXTRA = 16
"""A translation has at most RATIO times as many subwords as its text, plus EXTRA: longer ones are loops."""

_SPECIAL = 3
"""Number of special subwords of a translation: start, language and end."""

_FILES = ("*.json", "*.txt", "*.model", "*.spm", "*.safetensors")
_TOKENIZERS = (*folders.TOKENIZERS, "source.spm", "spiece.model")

_OPEN = ">>"
_CLOSE = "<<"

END = "</s>"
UNKNOWN = "<unk>"
PADDING = "<pad>"
NEVER = -1e9
"""Number added to the score of padding, which prevents its generation."""


class DirectionCodes(NamedTuple):
    """The language codes of a direction of translation, as subword ids."""

    prefix: tuple[int, ...] = ()
    """Ids before every text."""
    first: int | None = None
    """Forced first id of every translation."""


@dataclass(frozen=True)
class TranslationSubwords:
    """The conversion of texts to subword ids and back, for one direction of a model."""

    tokenizer: Tokenizer
    direction: DirectionCodes
    longest: int
    """Maximum subwords of an input or output, special ones included."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the model's inputs, without truncation."""
        if not texts:
            return []
        rows = self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return [[*self.direction.prefix, *row, self.tokenizer.eos_token_id] for row in rows]

    def decode(self, rows: Iterable[Sequence[int]]) -> list[str]:
        """Return generated rows as texts of one line each."""
        texts = (self.tokenizer.decode(list(row), skip_special_tokens=True) for row in rows)
        return [" ".join(text.split()) for text in texts]

    def names(self, row: Sequence[int]) -> list[str]:
        """Return the subwords of a row as strings."""
        names: list[str] = self.tokenizer.convert_ids_to_tokens(list(row))
        return names


def seq2seq_folder(source: str | Path) -> Path:
    """Return the checked folder of a sequence-to-sequence model, given a path or hub name.

    Raises ModelError if the folder lacks a config, tokenizer or undamaged weights.
    """
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
    """Load the tokenizer of a model for a direction (source, target)."""
    from transformers import AutoConfig, AutoTokenizer

    folder = seq2seq_folder(source)
    config = from_pretrained(AutoConfig, folder, {})
    tokenizer = from_pretrained(AutoTokenizer, folder, {})
    return subwords_for(tokenizer, config, languages, where=str(folder))


def subwords_for(
    tokenizer: Tokenizer,
    config: Config,
    languages: tuple[str, str],
    *,
    where: str = "this model",
) -> TranslationSubwords:
    """Return the conversion of texts for a loaded tokenizer and configuration."""
    direction = direction_between(tokenizer.get_vocab(), *languages, where=where)
    longest = getattr(config, "max_position_embeddings", None) or POSITIONS
    return TranslationSubwords(tokenizer, direction, min(longest, tokenizer.model_max_length))


def load_seq2seq(source: str | Path) -> Model:
    """Load a sequence-to-sequence model in fp32 and evaluation mode.

    Raises ModelError for missing weights.
    """
    from transformers import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, AutoConfig

    folder = seq2seq_folder(source)
    config = from_pretrained(AutoConfig, folder, {})
    shapes = folders.stored_shapes(folder, AUTO_CLASS)
    numbers = max(LEAST_NUMBERS, sum(tensor.numel() for tensor in shapes.values()))
    layers = ("encoder_layers", "decoder_layers", "num_layers", "num_decoder_layers", "num_hidden_layers")
    positions = {"max_position_embeddings": numbers // max(1, config.hidden_size)}
    check_sizes(folder, config, {**dict.fromkeys(layers, len(shapes)), "vocab_size": numbers, **positions})
    kind = MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING[type(config)]
    options = {"config": config, "dtype": torch.float32, "use_safetensors": True, "output_loading_info": True}
    with torch.random.fork_rng(devices=[]):
        # First without numbers, so that a configuration that does not fit the weights uses no memory.
        _, info = from_pretrained(kind, folder, {**options, "state_dict": shapes, "device_map": "meta"})
        # Sinusoidal positions are computed, not saved.
        missing = {name for name in info["missing_keys"] if "embed_positions" not in name}
        check_complete(folder, AUTO_CLASS, missing)
        model, _ = from_pretrained(kind, folder, options)
    return model.eval()


def generate(
    model: Model,
    rows: Sequence[Sequence[int]],
    *,
    first: int | None = None,
    beams: int = 1,
    longest: int = 256,
) -> list[list[int]]:
    """Translate rows of subword ids by beam search, and return the generated ids without special ones.

    One beam is greedy search. A translation's limit depends only on its own text. ``longest`` includes
    special subwords, and is at most the model's limit.
    """
    from transformers import GenerationConfig

    device = next(model.parameters()).device
    padding = model.config.pad_token_id
    start = model.generation_config.decoder_start_token_id
    end = model.config.eos_token_id
    end = end[0] if isinstance(end, list) else end
    ids = pad_rows(rows, padding)
    mask = padding_mask([len(row) for row in rows])
    limits = torch.tensor([translation_limit(row, longest) for row in rows], device=device)
    with quiet():  # transformers warns at each call if the model has a max_length.
        generated_rows = model.generate(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            generation_config=GenerationConfig(
                num_beams=beams,
                do_sample=False,
                max_new_tokens=int(limits.max()) + 2,
                decoder_start_token_id=model.config.decoder_start_token_id if start is None else start,
                eos_token_id=end,
                pad_token_id=padding,
            ),
            logits_processor=[_Constraints(limits, beams, end, padding, first)],
        )
    return [trim_row(row, end, padding, first) for row in generated_rows[:, 1:].tolist()]


def translation_limit(row: Sequence[int], longest: int) -> int:
    """Return the limit of a row's translation in subwords, without special ones."""
    return min(longest - _SPECIAL, RATIO * len(row) + EXTRA)


def trim_row(row: Sequence[int], end: int, padding: int, first: int | None) -> list[int]:
    """Return a generated row without its forced first id, up to the end."""
    stop = next((index for index, subword in enumerate(row) if subword in (end, padding)), len(row))
    return list(row[1 if stop and row[0] == first else 0 : stop])


@dataclass(frozen=True)
class _Constraints:
    """Constraints that force each translation's first id and its end at the limit, and exclude padding."""

    limits: Tensor
    """[batch]: limit of each translation."""
    beams: int
    end: int
    padding: int
    first: int | None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        length = input_ids.size(1) - 1
        scores = scores.clone()
        scores[:, self.padding] = -torch.inf
        if length == 0 and self.first is not None:
            return _only(scores, torch.ones(len(scores), dtype=torch.bool), self.first)
        first_ids = 0 if self.first is None else 1
        is_at_limit = (length - first_ids >= self.limits).repeat_interleave(self.beams)
        return _only(scores, is_at_limit, self.end) if bool(is_at_limit.any()) else scores


def _only(scores: Tensor, rows: Tensor, subword: int) -> Tensor:
    scores[rows.to(scores.device)] = -torch.inf
    scores[rows.to(scores.device), subword] = 0.0
    return scores


FLORES = {
    "ar": "arb_Arab", "az": "azj_Latn", "fa": "pes_Arab", "fa_AF": "prs_Arab", "fil": "tgl_Latn",
    "ko": "kor_Hang", "lv": "lvs_Latn", "mg": "plt_Latn", "mn": "khk_Cyrl", "ms": "zsm_Latn",
    "ne": "npi_Deva", "no": "nob_Latn", "ps": "pbt_Arab", "qu": "quy_Latn", "sq": "als_Latn",
    "sw": "swh_Latn", "tl": "tgl_Latn", "uz": "uzn_Latn",
}  # fmt: skip
"""NLLB's codes (FLORES-200) of languages with a different usual code in ISO 639-3 or ISO 15924."""

MBART = {
    "af": "ZA", "ar": "AR", "az": "AZ", "bn": "IN", "cs": "CZ", "de": "DE", "en": "XX", "es": "XX",
    "et": "EE", "fa": "IR", "fi": "FI", "fr": "XX", "gl": "ES", "gu": "IN", "he": "IL", "hi": "IN",
    "hr": "HR", "id": "ID", "it": "IT", "ja": "XX", "ka": "GE", "kk": "KZ", "km": "KH", "ko": "KR",
    "lt": "LT", "lv": "LV", "mk": "MK", "ml": "IN", "mn": "MN", "mr": "IN", "my": "MM", "ne": "NP",
    "nl": "XX", "pl": "PL", "ps": "AF", "pt": "XX", "ro": "RO", "ru": "RU", "si": "LK", "sl": "SI",
    "sv": "SE", "sw": "KE", "ta": "IN", "te": "IN", "th": "TH", "tl": "XX", "tr": "TR", "uk": "UA",
    "ur": "PK", "vi": "VN", "xh": "ZA", "zh": "CN",
}  # fmt: skip
"""Region of each language in mBART-50's codes (``sw_KE``)."""

_BOTH_SIDES: dict[str, Callable[[str], tuple[str, ...]]] = {
    "eng_Latn": lambda language: (language, *_with_script(language)),
    "__en__": lambda language: tuple(f"__{name}__" for name in _codes_without_script(language)),
    "en_XX": lambda language: tuple(
        f"{name}_{MBART.get(name, '')}" for name in _codes_without_script(language)
    ),
}
"""Spellings of a language's code, by a code that identifies the vocabulary.

NLLB, M2M-100 and mBART-50 have the source code before the text and the target code before the translation.
"""


def direction_between(vocabulary: Mapping[str, int], source: str, target: str, where: str) -> DirectionCodes:
    """Return the language codes of a direction in a vocabulary, or none for models of a single pair.

    Raises ModelError if the vocabulary has codes, but none for these languages.
    """
    for english, spell in _BOTH_SIDES.items():
        if english in vocabulary:
            source_id = _code_id(vocabulary, spell(source), source, where)
            target_id = _code_id(vocabulary, spell(target), target, where)
            return DirectionCodes((source_id,), target_id)
    if any(piece.startswith(_OPEN) and piece.endswith(_CLOSE) for piece in vocabulary):
        names = (*_codes_without_script(target), *_with_script(target))
        spellings = [language_subword(name) for name in names]
        return DirectionCodes((_code_id(vocabulary, spellings, target, where),))
    return DirectionCodes()


def _codes_without_script(language: str) -> tuple[str, ...]:
    """Return the codes of a language, including ISO 639-3 codes if it is written in its usual script."""
    base, script = base_and_script(language)
    flores_code = FLORES.get(base, "").partition("_")[0]
    further_codes = (base, flores_code, *codes_of_three_letters(base))
    return _unique(language, *(further_codes if is_usual_script(script, base) else ()))


def _with_script(language: str) -> tuple[str, ...]:
    """Return a language's codes of three letters with a script (default: the usual one), as in NLLB."""
    base, script = base_and_script(language)
    usual = FLORES.get(base, "") if is_usual_script(script, base) else ""
    codes = (base, *codes_of_three_letters(base))
    return _unique(FLORES.get(language, ""), usual, *(f"{name}_{script}" for name in codes))


def _unique(*codes: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in codes if name))


def language_subword(language: str) -> str:
    """Return the subword that requests a target language from a multilingual Marian model."""
    return f"{_OPEN}{language}{_CLOSE}"


def _code_id(vocabulary: Mapping[str, int], spellings: Iterable[str], language: str, where: str) -> int:
    candidates = [spelling for spelling in spellings if spelling]
    for spelling in candidates:
        if spelling in vocabulary:
            return vocabulary[spelling]
    codes = [piece for piece in vocabulary if "_" in piece or piece.startswith(_OPEN)]
    raise ModelError(
        f"{where}: this model has no language {language!r} (tried {', '.join(candidates)})."
        f"{did_you_mean(candidates[0], codes)} Choose a different model, or write the language as the model "
        f"does."
    )


def train_translation_tokenizer(lines: Iterable[str], *, languages: Sequence[str], size: int) -> Tokenizer:
    """Train a fast Unigram tokenizer of at most ``size`` subwords, including one per target language."""
    special = (END, UNKNOWN, *(language_subword(language) for language in languages))
    pieces = unigram_pieces(
        list(lines), size - 1, special, lambda model: _marian_tokenizer(model, special).backend_tokenizer
    )
    vocabulary = [*pieces["vocab"], (PADDING, 0.0)]
    check_size(len(vocabulary), size, "it")
    return _marian_tokenizer({"vocab": vocabulary}, (*special, PADDING))


def read_translation_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer written by ``write_tokenizer``.

    Raises StorageError for a damaged file.
    """
    with reading(path) as content:
        model = content["model"]
        special = [
            piece
            for piece, _ in model["vocab"]
            if piece in (END, UNKNOWN, PADDING) or piece == language_subword(piece[2:-2])
        ]
        return _marian_tokenizer(model, special)


@dataclass(frozen=True, kw_only=True)
class MarianShape:
    """The size of a translation model."""

    layers: int
    """Number of layers in the encoder."""
    decoder_layers: int
    dim: int
    heads: int
    feed_forward: int
    positions: int = 512
    """Maximum length of texts in subwords."""
    dropout: float = 0.1


def new_marian(shape: MarianShape, tokenizer: Tokenizer, *, seed: int, attention: str) -> Model:
    """Return a new MarianMTModel.

    Weights depend only on the seed. Both embeddings and the output share one matrix. As in Marian, decoding
    starts from a zero embedding, the one of padding, which is the last id.
    """
    from transformers import MarianConfig, MarianMTModel

    padding = tokenizer.pad_token_id
    config = MarianConfig(
        vocab_size=len(tokenizer),
        decoder_vocab_size=len(tokenizer),
        pad_token_id=padding,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        forced_eos_token_id=None,
        decoder_start_token_id=padding,
        d_model=shape.dim,
        encoder_layers=shape.layers,
        decoder_layers=shape.decoder_layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.feed_forward,
        decoder_ffn_dim=shape.feed_forward,
        max_position_embeddings=shape.positions,
        dropout=shape.dropout,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        init_std=shape.dim**-0.5,
    )
    config._attn_implementation = attention
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MarianMTModel(config)
    with torch.no_grad():
        model.model.shared.weight[padding] = 0.0
        model.final_logits_bias[0, padding] = NEVER
    return model


def _marian_tokenizer(model: ModelJson | None, special: Sequence[str]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    pieces = [(name, 0.0) for name in special] if model is None else [tuple(pair) for pair in model["vocab"]]
    names = [name for name, _ in pieces]
    backend = Tokenizer(models.Unigram(pieces, unk_id=names.index(UNKNOWN)))
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, names.index(END))]
    )
    languages = [name for name in special if name not in (END, UNKNOWN, PADDING)]
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=END,
        unk_token=UNKNOWN,
        pad_token=PADDING if PADDING in special else None,
        additional_special_tokens=languages,
        model_input_names=["input_ids", "attention_mask"],
    )
