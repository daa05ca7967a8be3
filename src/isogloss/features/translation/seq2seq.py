"""Translation by sequence-to-sequence models of transformers: Marian (OPUS-MT), NLLB, M2M-100 and others.

CTranslate2 converts the same models once and is about twice as fast on a CPU; it needs the package
ctranslate2 (``pip install isogloss[mt-fast]``). Its greedy search gives the translations of transformers,
except for rare ties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.errors import MissingPackageError, ModelError, one_line
from isogloss.core.run_parts import Positive
from isogloss.data.projection.example_texts import Translated
from isogloss.encoders.folders import quiet
from isogloss.features.translation.pieces import (
    SentenceBatches,
    prompt_for,
    refuse_too_small,
    translate_in_chunks,
)
from isogloss.translators.setting import TranslateSetting

if TYPE_CHECKING:
    from ctranslate2 import Translator

    from isogloss.features.translation.seq2seq_models import TranslationSubwords


@dataclass(frozen=True, kw_only=True)
class Seq2Seq:
    """Translate with a model of transformers, sentence by sentence, in batches sorted by length."""

    name: ClassVar[str] = "seq2seq"
    needs_model: ClassVar[bool] = True
    knows_links: ClassVar[bool] = False

    beams: Positive = 1
    """Beam size. 1 is greedy search. 4 or 5 are usual, and as many times slower."""

    longest: Positive = 256
    """Maximum subwords of a piece of text and of its translation. Longer ones are truncated."""

    sentences: bool = True
    """Whether a text's sentences are translated one by one, as most models were trained."""

    batch_subwords: Positive = 4096
    """Subwords of one batch, padding included."""

    prompt: str = ""
    """Text before every piece, for models that need it (T5: translate {source} to {target}: )."""

    def __post_init__(self) -> None:
        """Raise ConfigError for sizes that are too small."""
        refuse_too_small(self)

    def check(self, source: str, target: str) -> None:
        """Accept all languages, because the model determines them."""

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> Iterator[Translated]:
        """Yield a translation for each text, in order."""
        return translate_in_chunks(texts, setting, self, lambda: self._load(setting).translate)

    def _load(self, setting: TranslateSetting) -> SentenceBatches:
        from isogloss.features.translation.seq2seq_models import generate, load_seq2seq, load_subwords
        from isogloss.training.precision import device, scoring

        model = load_seq2seq(setting.model).to(device())
        subwords = load_subwords(setting.model, (setting.source, setting.target))
        longest = min(self.longest, subwords.longest)
        write = partial(generate, model, first=subwords.direction.first, beams=self.beams, longest=longest)

        def generate_in_precision(rows: list[list[int]]) -> list[list[int]]:
            with scoring(model, setting.precision):
                return write(rows)

        return SentenceBatches(
            subwords=subwords,
            generate=generate_in_precision,
            prompt=prompt_for(self.prompt, setting),
            target=setting.target,
            sentences=self.sentences,
            longest=longest,
            batch_subwords=max(1, self.batch_subwords // self.beams),
        )


CONVERTED_FOLDER = "ctranslate2"
"""Folder of the converted model, within the work folder."""


@dataclass(frozen=True, kw_only=True)
class CTranslate2(Seq2Seq):
    """Translate with a model of transformers that is converted to CTranslate2."""

    name: ClassVar[str] = "ctranslate2"

    eight_bits: bool = False
    """Whether weights are quantised to 8 bits: less memory, often faster, slightly other translations."""

    def check(self, source: str, target: str) -> None:  # noqa: ARG002 (the model knows the languages)
        """Raise MissingPackageError if the package is not installed."""
        import_ctranslate2()

    def _load(self, setting: TranslateSetting) -> SentenceBatches:
        from isogloss.features.translation.seq2seq_models import load_subwords, seq2seq_folder

        import_ctranslate2()
        folder = seq2seq_folder(setting.model)
        subwords = load_subwords(folder, (setting.source, setting.target))
        engine = self._engine(_convert_model(folder, setting.folder / CONVERTED_FOLDER), setting)
        return SentenceBatches(
            subwords=subwords,
            generate=partial(self._generate, engine, subwords),
            prompt=prompt_for(self.prompt, setting),
            target=setting.target,
            sentences=self.sentences,
            longest=min(self.longest, subwords.longest),
            batch_subwords=self.batch_subwords,
        )

    def _engine(self, folder: Path, setting: TranslateSetting) -> "Translator":
        import torch

        from isogloss.training.precision import device, resolved_precision

        target, library = device(), import_ctranslate2()
        precision = resolved_precision(setting.precision, target)
        bits = "int8_" if self.eight_bits else ""
        # What is fast for torch may be unknown to CTranslate2, as bfloat16 is on some processors.
        is_supported = bits + precision in library.get_supported_compute_types(target.type)
        return library.Translator(
            str(folder),
            device=target.type,
            device_index=torch.cuda.current_device() if target.type == "cuda" else 0,
            compute_type=bits + (precision if is_supported else "float32"),
            inter_threads=1,
            intra_threads=torch.get_num_threads(),
        )

    def _generate(
        self, engine: "Translator", subwords: TranslationSubwords, rows: list[list[int]]
    ) -> list[list[int]]:
        from isogloss.features.translation.seq2seq_models import translation_limit, trim_row

        first_subword, tokenizer = subwords.direction.first, subwords.tokenizer
        longest = min(self.longest, subwords.longest)
        limits = [translation_limit(row, longest) for row in rows]
        results = engine.translate_batch(
            [subwords.names(row) for row in rows],
            target_prefix=None if first_subword is None else [subwords.names([first_subword])] * len(rows),
            beam_size=self.beams,
            # Beam search must not depend on the batch; greedy search only ends sooner.
            max_decoding_length=max(limits) + 1 if self.beams == 1 else longest - 1,
            max_input_length=0,
        )
        generated_rows = [tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results]
        ends = tokenizer.eos_token_id, tokenizer.pad_token_id
        return [
            trim_row(row, *ends, first_subword)[:limit]
            for row, limit in zip(generated_rows, limits, strict=True)
        ]


def import_ctranslate2() -> ModuleType:
    """Return the package. Raises MissingPackageError if it is not installed."""
    try:
        return import_module("ctranslate2")
    except ImportError as error:
        raise MissingPackageError(
            "translator ctranslate2 needs the package ctranslate2, which is not installed. Install it "
            "(pip install 'isogloss[mt-fast]'), or use the translator seq2seq.",
            "ctranslate2 (pip install 'isogloss[mt-fast]')",
        ) from error


def _convert_model(folder: Path, target: Path) -> Path:
    """Return the folder of the converted model, converting it if necessary."""
    if target.is_dir():
        return target
    from ctranslate2.converters import TransformersConverter

    with atomic_folder(target.parent, target.name) as temporary:
        try:
            with quiet():
                TransformersConverter(str(folder)).convert(str(temporary), force=True)
        except (ValueError, KeyError, AttributeError, NotImplementedError) as error:
            problem = one_line(error)
            raise ModelError(
                f"{folder}: CTranslate2 cannot convert this model ({problem[:200]}). Use the translator "
                f"seq2seq."
            ) from error
    return target
