"""Translation by CTranslate2: the same models as seq2seq takes, converted once, about twice as fast on a CPU.

Needs the package ctranslate2 (``pip install isogloss[mt-fast]``). Greedy search writes what transformers
does, but for rare ties.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.errors import ConfigError, ModelError
from isogloss.data.label_projection import Translated
from isogloss.encoders.folders import quiet
from isogloss.encoders.seq2seq import (
    TranslationSubwords,
    load_subwords,
    seq2seq_folder,
    translation_limit,
    trimmed,
)
from isogloss.training.precision import device, resolved_precision
from isogloss.translators.chunks import in_chunks
from isogloss.translators.sentence_batches import SentenceBatches, prompt_for, refuse_too_small
from isogloss.translators.setting import TranslateSetting

CONVERTED = "ctranslate2"
"""Folder of the converted model, in the translation's own."""


@dataclass(frozen=True, kw_only=True)
class CTranslate2:
    """Translate with a model of transformers that is converted to CTranslate2."""

    name: ClassVar[str] = "ctranslate2"
    needs_model: ClassVar[bool] = True
    knows_links: ClassVar[bool] = False

    beams: int = 1
    """Translations followed at the same time; 1 is greedy search, 4 or 5 is usual and that much slower."""

    longest: int = 256
    """Subwords of the longest piece of text and of the longest translation of one; what is longer is cut."""

    sentences: bool = True
    """Whether a text's sentences are translated one by one, as most models were trained; False: together."""

    batch_subwords: int = 4096
    """Subwords of one batch, padding included."""

    prompt: str = ""
    """What stands before every text, for models told in words (T5: translate {source} to {target}: )."""

    eight_bits: bool = False
    """Whether weights are rounded to 8 bits: less memory, often faster, slightly other translations."""

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        sizes = {"beams": self.beams, "longest": self.longest, "batch_subwords": self.batch_subwords}
        refuse_too_small(self.name, sizes)

    def check(self, source: str, target: str) -> None:  # noqa: ARG002 (the model knows the languages)
        """Refuse to translate where the package is not installed."""
        import_ctranslate2()

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> Iterator[Translated]:
        """Give one translation for each text, in order."""
        return in_chunks(texts, setting, self, lambda: self._load(setting).translate)

    def _load(self, setting: TranslateSetting) -> SentenceBatches:
        import_ctranslate2()
        folder = seq2seq_folder(setting.model)
        subwords = load_subwords(folder, (setting.source, setting.target))
        engine = self._engine(_converted(folder, setting.folder / CONVERTED), setting)
        return SentenceBatches(
            subwords=subwords,
            generate=partial(self._generate, engine, subwords),
            prompt=prompt_for(self.prompt, setting),
            target=setting.target,
            sentences=self.sentences,
            longest=min(self.longest, subwords.longest),
            batch_subwords=self.batch_subwords,
        )

    def _engine(self, folder: Path, setting: TranslateSetting) -> Any:
        place = device()
        precision = resolved_precision(setting.precision, place)
        kind = ("int8_" if self.eight_bits else "") + precision
        return import_ctranslate2().Translator(
            str(folder),
            device=place.type,
            compute_type=kind,
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )

    def _generate(self, engine: Any, subwords: TranslationSubwords, rows: list[list[int]]) -> list[list[int]]:
        first, tokenizer = subwords.direction.first, subwords.tokenizer
        longest = min(self.longest, subwords.longest)
        limits = [translation_limit(row, longest) for row in rows]
        found = engine.translate_batch(
            [subwords.names(row) for row in rows],
            target_prefix=None if first is None else [subwords.names([first])] * len(rows),
            beam_size=self.beams,
            # What beams look at must not depend on the batch; a greedy translation only ends sooner.
            max_decoding_length=max(limits) + 1 if self.beams == 1 else longest - 1,
            max_input_length=0,
        )
        written = [tokenizer.convert_tokens_to_ids(one.hypotheses[0]) for one in found]
        ends = tokenizer.eos_token_id, tokenizer.pad_token_id
        return [trimmed(row, *ends, first)[:limit] for row, limit in zip(written, limits, strict=True)]


def import_ctranslate2() -> Any:
    """Return the package; ConfigError, saying how to install it, when it is not there."""
    try:
        import ctranslate2
    except ImportError as error:
        raise ConfigError(
            "translator ctranslate2 needs the package ctranslate2, which is not installed. Install it "
            "(pip install 'isogloss[mt-fast]'), or use the translator seq2seq."
        ) from error
    return ctranslate2


def _converted(folder: Path, place: Path) -> Path:
    """Convert a model's folder, unless that was done before."""
    if place.is_dir():
        return place
    from ctranslate2.converters import TransformersConverter

    with atomic_folder(place) as temporary:
        try:
            with quiet():
                TransformersConverter(str(folder)).convert(str(temporary), force=True)
        except (ValueError, KeyError, AttributeError, NotImplementedError) as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise ModelError(
                f"{folder}: CTranslate2 cannot convert this model ({what[:200]}). Use the translator seq2seq."
            ) from error
    return place
