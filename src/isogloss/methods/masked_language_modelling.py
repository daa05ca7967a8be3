"""Pretraining: masked language modelling in several languages, with translation LM where there is bitext.

Devlin et al. (2019), Section 3.1; languages drawn in proportion to size^(1/T) (paper 4, Section 3.2);
translation LM after Conneau & Lample (2019), Section 3.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
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
from isogloss.tasks.masked_lm import MaskedBatch, Masking, Vocabulary, masked_lm_loss
from isogloss.tasks.text_stream import TextStream, is_stream, open_stream, subwords_of, write_stream
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.drawn_conflict import Conflict, Observe, block_pool, observer
from isogloss.training.fit import Fitted, Watch, fit, precision_of
from isogloss.training.optimizer import Schedule
from isogloss.training.setting import TextSetting

CANDIDATES = 8
"""Translations drawn for each one used: a slice of similar length among them wastes little padding."""

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

    conflict: Conflict | None = None
    """Gradient conflict between the languages, watched on the way: every, batch and layers; else none is."""

    checkpoint_every: int = 500
    """Steps between checkpoints; 0 for none."""

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
        tokenizer, streams = self._read(setting)
        translations = _translations(setting, tokenizer, self.block) if self.translation else []
        model = new_encoder(setting.architecture, tokenizer, seed=derive(setting.seed, "encoder"))
        family = FAMILIES[setting.architecture.family]
        masking = Masking(
            vocabulary=Vocabulary.of(tokenizer), share=self.masked, first_position=family.first_position
        )
        batches = _TextBatches(self, streams, translations, masking, derive(setting.seed, "text"))
        checkpoints = Checkpoints(setting.folder, self.checkpoint_every)
        observe = self._observe(model, dict(zip(setting.languages, streams, strict=True)), masking, setting)
        watch = Watch(
            observe=observe,
            observe_at=self.conflict.steps(self.steps) if self.conflict else (),
            checkpoints=checkpoints,
            tell=setting.tell,
            what="pretraining",
        )
        schedule = self._schedule()
        fitted = fit(model, batches, masked_lm_loss, schedule=schedule, seed=setting.seed, watch=watch)
        set_dropout(model.config, setting.architecture.dropout)
        return model, tokenizer, fitted

    def _observe(
        self, model: Any, streams: dict[str, TextStream], masking: Masking, setting: TextSetting
    ) -> Observe | None:
        """Return what watches gradient conflict, on blocks of text as they are trained on."""
        if self.conflict is None:
            return None
        precision = precision_of(self.precision, Checkpoints(setting.folder, self.checkpoint_every))
        pool = block_pool(
            model, streams, masking, block=self.block, budget=self.batch_subwords, precision=precision
        )
        return observer(self.conflict, model, pool, seed=setting.seed)

    def _schedule(self) -> Schedule:
        return Schedule(
            learning_rate=self.learning_rate,
            warmup=self.warmup,
            weight_decay=self.weight_decay,
            beta2=0.98,
            epsilon=1e-6,
            precision=self.precision,
        )

    def _check(self, setting: TextSetting) -> None:
        self.check(setting.architecture)
        if self.translation and setting.translations is None:
            raise DataError("translation LM needs bitext: name a corpus in the run's field 'bitext'.")
        positions = setting.architecture.positions
        if self.block > positions:
            raise ConfigError(
                f"{self.name}: rows of {self.block} subwords (block), but the architecture has only "
                f"{positions} positions. Raise positions or lower block."
            )

    def _read(self, setting: TextSetting) -> tuple[Any, list[TextStream]]:
        """Read the text once: the first lines of each language make the vocabulary, all lines the streams.

        What an interrupted run has read already is used as it is.
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
        text = setting.folder / "text"
        return tokenizer, [
            self._stream(text / language, lines[language], tokenizer) for language in setting.languages
        ]

    def _stream(self, folder: Path, lines: Iterator[str], tokenizer: Any) -> TextStream:
        if is_stream(folder):
            return open_stream(folder)
        return write_stream(lines, tokenizer, folder, longest=self.block - 2)


Parallel = dict[str, np.ndarray]
"""One text in several languages, as subwords."""


@dataclass(frozen=True)
class _TextBatches:
    """Batch i: translation LM or text, drawn from (seed, i) alone."""

    method: MaskedLanguageModelling
    streams: list[TextStream]
    translations: list[Parallel]
    masking: Masking
    seed: int

    def __len__(self) -> int:
        return self.method.steps

    def __getitem__(self, step: int) -> MaskedBatch:
        seed = derive(self.seed, step)
        rng = np.random.Generator(np.random.PCG64(seed))
        parallel = bool(self.translations) and rng.random() < self.method.translation
        rows = self._pairs(rng) if parallel else self._blocks(rng)
        return self.masking.batch(rows, seed=seed)

    def _blocks(self, rng: np.random.Generator) -> list[list[np.ndarray]]:
        count = max(1, self.method.batch_subwords // self.method.block)
        sizes = np.array([len(stream) for stream in self.streams], dtype=np.float64)
        weights = sizes ** (1 / self.method.temperature)
        chosen = rng.choice(
            len(self.streams), size=count if self.method.mixed else 1, p=weights / weights.sum()
        )
        streams = [self.streams[number] for number in np.resize(chosen, count)]
        places = [int(rng.integers(len(stream.starts))) for stream in streams]
        length = self.method.block - 2
        return [[stream.block(place, length)] for stream, place in zip(streams, places, strict=True)]

    def _pairs(self, rng: np.random.Generator) -> list[list[np.ndarray]]:
        wanted = max(2, self.method.batch_subwords // 32)
        drawn = [self._pair(rng) for _ in range(CANDIDATES * wanted // 2)]
        drawn.sort(key=lambda pair: len(pair[0]) + len(pair[1]))
        start = int(rng.integers(len(drawn)))
        rows: list[list[np.ndarray]] = []
        widest = 0
        for pair in chain(drawn[start:], reversed(drawn[:start])):
            widest = max(widest, len(pair[0]) + len(pair[1]) + 3)
            if rows and (len(rows) + 1) * widest > self.method.batch_subwords:
                break
            rows.append(pair)
        return rows

    def _pair(self, rng: np.random.Generator) -> list[np.ndarray]:
        text = self.translations[int(rng.integers(len(self.translations)))]
        first, second = rng.choice(len(text), size=2, replace=False)
        sides = list(text.values())
        return [sides[first], sides[second]]


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
