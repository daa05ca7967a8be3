"""Pretraining: masked language modelling in several languages, with translation LM where there is bitext.

Devlin et al. (2019), Section 3.1; paper 4, Section 3.2; translation LM after Conneau & Lample (2019),
Section 3.3. The last weights are kept: perplexity on held-out text is noted, and chooses nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.runs import Architecture
from isogloss.core.seeds import derive
from isogloss.encoders import (
    FAMILIES,
    new_encoder,
    read_tokenizer,
    require,
    set_dropout,
    train_tokenizer,
    write_tokenizer,
)
from isogloss.tasks.masked_lm import Masking, Vocabulary, masked_lm_loss
from isogloss.tasks.text_stream import TextStream, is_stream, open_stream, subwords_of, write_stream
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.fit import Fitted, Observer, Watch, fit
from isogloss.training.optimizer import Schedule
from isogloss.training.perplexity import HeldOut, held_out_batches
from isogloss.training.processes import first_alone
from isogloss.training.setting import TextSetting
from isogloss.training.supervised import attention_for_training
from isogloss.training.text_batches import Drawing, Parallel, TextBatches

SHORTEST = 8
"""Subwords of the shortest rows that make sense: six of text, two special."""


@dataclass(frozen=True, kw_only=True)
class MaskedLanguageModelling:
    """Predict hidden subwords."""

    name: ClassVar[str] = "masked-language-modelling"

    steps: int = 10000
    """Updates."""

    batch_subwords: int = 4096
    """Subwords of one update, padding included."""

    block: int = 128
    """Subwords of one row of text, special ones included."""

    masked: float = 0.15
    """Share of the subwords that are predicted."""

    temperature: float = 1.43
    """T in size^(1/T), with which languages are drawn; 1 keeps their proportions, large is even."""

    mixed: bool = False
    """True: rows of one batch come from all languages; False: a batch holds one language (paper 4)."""

    translation: float = 0.0
    """Share of the updates that are translation LM."""

    vocabulary_lines: int = 200_000
    """Lines the vocabulary is trained on, the same number of each language."""

    learning_rate: float = 1e-3
    """Highest rate."""

    warmup: float = 0.1
    """Share of the steps with linear warm-up."""

    weight_decay: float = 0.01
    """AdamW's decay, on matrices only."""

    precision: str = "auto"
    """auto (measured once per machine), float32 or bfloat16."""

    checkpoint_every: int = 500
    """Steps between checkpoints; 0 for none."""

    evaluate_every: int | None = None
    """Steps of an epoch, after each of which the perplexity on held-out text is measured (paper 4: 10000);
    when left out, nothing is held out."""

    accumulation: int | None = None
    """Parts that the batch of one update is computed in, one after the other or in several processes: less
    memory, the same result within rounding; one when left out."""

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        allowed = {
            "steps": self.steps >= 1,
            "block": self.block >= SHORTEST,
            "batch_subwords": self.batch_subwords >= self.block,
            "masked": 0 < self.masked <= 1,
            "temperature": self.temperature > 0,
            "translation": 0 <= self.translation <= 1,
            "vocabulary_lines": self.vocabulary_lines >= 1,
            "evaluate_every": self.evaluate_every is None or self.evaluate_every >= 1,
            "accumulation": self.accumulation is None or self.accumulation >= 1,
        }
        for field, fine in allowed.items():
            if not fine:
                raise ConfigError(
                    f"{self.name}: {field} cannot be {getattr(self, field)}. Shares lie in 0 to 1, counts "
                    f"are positive, block is {SHORTEST} or more and batch_subwords at least block."
                )

    def check(self, architecture: Architecture) -> None:
        """Raise ModelError when the architecture's family cannot be trained like this."""
        if self.translation:
            what = "translation LM counts positions anew in the second text"
            require(FAMILIES[architecture.family], "new-positions", what=what)

    def train(self, setting: TextSetting) -> tuple[Any, Any, Fitted]:
        """Return the model with its masked-LM head, its tokenizer, and the rows of the training."""
        self._check(setting)
        with first_alone():
            tokenizer, streams, held_out = self._read(setting)
        translations = _translations(setting, tokenizer, self.block) if self.translation else []
        model = new_encoder(
            setting.architecture,
            tokenizer,
            seed=derive(setting.seed, "encoder"),
            attention=attention_for_training(),
        )
        family = FAMILIES[setting.architecture.family]
        masking = Masking(
            vocabulary=Vocabulary.of(tokenizer), share=self.masked, first_position=family.first_position
        )
        batches = TextBatches(
            drawing=self._drawing(),
            streams=streams,
            translations=translations,
            masking=masking,
            seed=derive(setting.seed, "text"),
        )
        watch = Watch(
            observers=self._observers(setting, model, masking, held_out),
            checkpoints=Checkpoints(setting.folder, self.checkpoint_every),
            tell=setting.tell,
            what="pretraining",
        )
        schedule = self._schedule()
        fitted = fit(model, batches, masked_lm_loss, schedule=schedule, seed=setting.seed, watch=watch)
        set_dropout(model.config, setting.architecture.dropout)
        return model, tokenizer, fitted

    def _drawing(self) -> Drawing:
        return Drawing(
            steps=self.steps,
            batch_subwords=self.batch_subwords,
            block=self.block,
            temperature=self.temperature,
            mixed=self.mixed,
            translation=self.translation,
        )

    def _observers(
        self, setting: TextSetting, model: Any, masking: Masking, streams: dict[str, TextStream]
    ) -> tuple[Observer, ...]:
        """Return who measures the perplexity after each epoch."""
        if self.evaluate_every is None:
            return ()
        seed, drawing = derive(setting.seed, "held out"), self._drawing()
        batches = {
            language: held_out_batches(stream, drawing, masking, seed=seed, language=language)
            for language, stream in streams.items()
        }
        held_out = HeldOut(batches=batches, every=self.evaluate_every, precision=self.precision)
        return (Observer(look=partial(held_out.notes, model), every=self.evaluate_every),)

    def _schedule(self) -> Schedule:
        return Schedule(
            learning_rate=self.learning_rate,
            warmup=self.warmup,
            weight_decay=self.weight_decay,
            beta2=0.98,
            epsilon=1e-6,
            precision=self.precision,
            accumulation=self.accumulation or 1,
        )

    def _check(self, setting: TextSetting) -> None:
        self.check(setting.architecture)
        if self.translation and setting.translations is None:
            raise DataError("translation LM needs bitext: name a corpus in the run's field 'bitext'.")
        if self.evaluate_every is not None and setting.held_out is None:
            raise DataError("evaluate_every needs held-out text, and none was given. Leave the field out.")
        positions = setting.architecture.positions
        if self.block > positions:
            raise ConfigError(
                f"{self.name}: rows of {self.block} subwords (block), but the architecture has only "
                f"{positions} positions. Raise positions or lower block."
            )

    def _read(self, setting: TextSetting) -> tuple[Any, dict[str, TextStream], dict[str, TextStream]]:
        """Read the text once: the first lines of each language make the vocabulary, all lines the streams.

        Gives the tokenizer, and the text that is trained on and that is held out, by language. What an
        interrupted run has read already is used as it is.
        """
        lines = {language: iter(setting.text(language)) for language in setting.languages}
        kept, family = setting.folder / "tokenizer" / "tokenizer.json", setting.architecture.family
        if kept.exists():
            tokenizer = read_tokenizer(kept, family=family)
        else:
            share = max(1, self.vocabulary_lines // len(lines))
            first = {language: list(islice(text, share)) for language, text in lines.items()}
            lines = {language: chain(first[language], text) for language, text in lines.items()}
            every = chain.from_iterable(first.values())
            tokenizer = train_tokenizer(every, family=family, size=setting.architecture.vocabulary)
            write_tokenizer(tokenizer, kept)
        held_out = {} if self.evaluate_every is None else _held_out(setting)
        return (
            tokenizer,
            {code: self._stream(setting.folder / "text" / code, lines[code], tokenizer) for code in lines},
            {
                code: self._stream(setting.folder / "held-out" / code, text, tokenizer)
                for code, text in held_out.items()
            },
        )

    def _stream(self, folder: Path, lines: Iterator[str], tokenizer: Any) -> TextStream:
        if is_stream(folder):
            return open_stream(folder)
        return write_stream(lines, tokenizer, folder, longest=self.block - 2)


def _held_out(setting: TextSetting) -> dict[str, Iterator[str]]:
    read = setting.held_out or (lambda _: iter(()))
    return {language: iter(read(language)) for language in setting.languages}


def _translations(setting: TextSetting, tokenizer: Any, block: int) -> list[Parallel]:
    """Read every language beside the first; rows of the same text become one row of several languages."""
    read = setting.translations or (lambda *_: iter(()))
    first, *others = setting.languages
    texts: dict[tuple[str, str], dict[str, str]] = {}
    for other in others:
        for pair in read(first, other):
            texts.setdefault((pair.id, pair.first), {first: pair.first})[other] = pair.second
    return [
        dict(zip(text, ids, strict=True)) for text, ids in _encoded(list(texts.values()), tokenizer, block)
    ]


def _encoded(
    texts: list[dict[str, str]], tokenizer: Any, block: int
) -> Iterator[tuple[dict[str, str], list[np.ndarray]]]:
    lines = chain.from_iterable(text.values() for text in texts)
    subwords = subwords_of(lines, tokenizer)
    for text in texts:
        yield text, [np.array(ids[: block - 2], dtype=np.int32) for ids in islice(subwords, len(text))]
