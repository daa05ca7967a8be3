"""Sequence-to-sequence models: loaded as safely as encoders are, and made to translate rows of subwords.

One layout serves Marian, NLLB, M2M-100, mBART-50 and T5: what tells the languages, the text, the end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isogloss.core.errors import ModelError
from isogloss.encoders import folder as folders
from isogloss.encoders.language_codes import Direction, direction_between
from isogloss.encoders.loading import check_all_there, find_folder, from_pretrained

AUTO_CLASS = "AutoModelForSeq2SeqLM"
POSITIONS = 512
"""Longest input where a model's positions are relative and know no end."""

RATIO, EXTRA = 3, 16
"""A translation has at most so many times its text's subwords, and so many more: what goes on is no text."""

_AROUND = 3
"""Subwords around a translation: the start, the language and the end."""

_FILES = ("*.json", "*.txt", "*.model", "*.spm", "*.safetensors")
_TOKENIZERS = (*folders.TOKENIZERS, "source.spm", "spiece.model")


@dataclass(frozen=True)
class TranslationSubwords:
    """Texts to rows of subwords and back, for one direction of one model."""

    tokenizer: Any
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
    folder = find_folder(source, _FILES, folders.has_weights)
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
    tokenizer: Any, config: Any, languages: tuple[str, str], *, where: str = "this model"
) -> TranslationSubwords:
    """Return what turns texts into rows for a model that is there already."""
    direction = direction_between(tokenizer.get_vocab(), *languages, where=where)
    longest = getattr(config, "max_position_embeddings", None) or POSITIONS
    return TranslationSubwords(tokenizer, direction, min(longest, tokenizer.model_max_length))


def load_seq2seq(source: str | Path) -> Any:
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
    model: Any, rows: Sequence[Sequence[int]], *, first: int | None = None, beams: int = 1, longest: int = 256
) -> list[list[int]]:
    """Translate rows of subwords; return what was written, without what begins and ends it.

    One beam is greedy search. Nothing but the row itself decides when it has to end. ``longest`` counts what
    begins and ends a translation, and is at most what the model takes.
    """
    from transformers import GenerationConfig

    device = next(model.parameters()).device
    ids, mask = _padded(rows, model.config.pad_token_id)
    limits = torch.tensor([limit_of(row, longest) for row in rows], device=device)
    ends = _ends(model)
    written = model.generate(
        input_ids=ids.to(device),
        attention_mask=mask.to(device),
        generation_config=_searching(model, beams, GenerationConfig, int(limits.max()) + 2),
        logits_processor=[_InTime(limits, beams, ends, model.config.pad_token_id, first)],
    )
    return [trimmed(row, ends, model.config.pad_token_id, first) for row in written[:, 1:].tolist()]


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


def _searching(model: Any, beams: int, kind: Any, most: int) -> Any:
    own = model.generation_config
    start = own.decoder_start_token_id
    return kind(
        num_beams=beams,
        do_sample=False,
        max_new_tokens=most,
        decoder_start_token_id=model.config.decoder_start_token_id if start is None else start,
        eos_token_id=_ends(model),
        pad_token_id=model.config.pad_token_id,
    )


def _ends(model: Any) -> int:
    end = model.config.eos_token_id
    return int(end[0] if isinstance(end, list) else end)


def _padded(rows: Sequence[Sequence[int]], padding: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows])
    return ids, (torch.arange(longest) < lengths.unsqueeze(1)).long()
