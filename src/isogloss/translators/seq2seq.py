"""Translation by sequence-to-sequence models of transformers: Marian (OPUS-MT), NLLB, M2M-100 and others."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from isogloss.core.run_parts import Positive
from isogloss.data.projection.label_projection import Translated
from isogloss.encoders.seq2seq import generate, load_seq2seq, load_subwords
from isogloss.training.precision import device, scoring
from isogloss.translators.setting import (
    SentenceBatches,
    TranslateSetting,
    in_chunks,
    prompt_for,
    refuse_too_small,
)


@dataclass(frozen=True, kw_only=True)
class Seq2Seq:
    """Translate with a model of transformers, sentence by sentence, in batches sorted by length."""

    name: ClassVar[str] = "seq2seq"
    needs_model: ClassVar[bool] = True
    knows_links: ClassVar[bool] = False

    beams: Positive = 1
    """Beam size; 1 is greedy search, 4 or 5 is usual and that many times slower."""

    longest: Positive = 256
    """Subwords of the longest piece of text and of its translation; what is longer is cut."""

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
        """Raise nothing: the languages are those of the model."""

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> Iterator[Translated]:
        """Yield a translation for each text, in order."""
        return in_chunks(texts, setting, self, lambda: self._load(setting).translate)

    def _load(self, setting: TranslateSetting) -> SentenceBatches:
        model = load_seq2seq(setting.model).to(device())
        subwords = load_subwords(setting.model, (setting.source, setting.target))
        longest = min(self.longest, subwords.longest)
        write = partial(generate, model, first=subwords.direction.first, beams=self.beams, longest=longest)

        def in_precision(rows: list[list[int]]) -> list[list[int]]:
            with scoring(model, setting.precision):
                return write(rows)

        return SentenceBatches(
            subwords=subwords,
            generate=in_precision,
            prompt=prompt_for(self.prompt, setting),
            target=setting.target,
            sentences=self.sentences,
            longest=longest,
            batch_subwords=max(1, self.batch_subwords // self.beams),
        )
