"""Runs that make encoders, and the word alignments that encoders are adjusted on.

A run is a frozen value that says completely what is to be made. Its id is the hash of its content
(``core.identity``): the names of classes and fields are part of it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from isogloss.aligners import Aligner
from isogloss.aligners.given import Given
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.run_parts import (
    Architecture,
    Count,
    Modules,
    NewSubwords,
    Positive,
    Replay,
    TrainedPart,
    Whole,
    precision_of,
)
from isogloss.data.corpus import Split
from isogloss.data.sources import Treebanks
from isogloss.encoders.hub import pinned_name
from isogloss.encoders.initial import TextAttention
from isogloss.methods import Adjustment, Pretraining


@dataclass(frozen=True, kw_only=True)
class SplitRead:
    """So many examples (0: all) of one split of a corpus."""

    corpus: str
    language: str
    split: Split
    treebanks: Treebanks = ()
    examples: int = 0


@dataclass(frozen=True, kw_only=True)
class Pretrain:
    """Make an encoder from text by masked language modelling: a new one, or one that is trained further."""

    name: ClassVar[str] = "pretrain"
    text: tuple[str, ...]
    """Corpora of raw text."""
    languages: tuple[str, ...]
    """Languages of the text."""
    start: "Encoder | None" = None
    """The encoder that is trained further; None for a new one."""
    architecture: Architecture | None = field(default_factory=Architecture)
    """The shape of a new encoder; None where it is that of the start."""
    method: Pretraining
    """How: objective, length and optimization."""
    bitext: str = ""
    """Corpus of translations for translation LM; none when empty."""
    lines: tuple[tuple[str, int], ...] | None = None
    """At most so many lines of a language, drawn at random from the seed: (("ru", 100000),); all of the
    others."""
    vocabulary: NewSubwords | None = None
    """Subwords that are added to the start; None for none."""
    aligned: "tuple[Align, ...] | None" = None
    """Bitext with word alignments that their embeddings are made from; None where they are not."""
    replay: Replay | None = None
    """Text in other languages that is mixed in where an encoder is trained further; None for none."""
    modules: Modules | None = None
    """What each language has for itself; without, all is shared (or as it is in the start)."""
    trained: TrainedPart | None = None
    """modules: those of the languages are trained, and all else stays as it is in the start; layers: all but
    the embeddings; None for all."""
    seed: Whole = 0
    """Seed of initial weights, order, masks, and the lines drawn."""
    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""
    splits_read: ClassVar[tuple[SplitRead, ...]] = ()
    """Text has no labels to check before a run starts."""

    def __post_init__(self) -> None:
        """Refuse two shapes, or none."""
        if (self.start is None) == (self.architecture is None):
            raise ConfigError(
                f"{self.name}: a new encoder has an architecture, and one that is trained further has "
                f"that of its start. Give either of them (with start, architecture=None)."
            )

    @property
    def languages_read(self) -> tuple[str, ...]:
        """Languages of all text, replayed text included."""
        return (*self.languages, *(self.replay.languages if self.replay else ()))

    def corpora(self, language: str) -> tuple[str, ...]:
        """Return the corpora that the text of a language is read from."""
        replayed = self.replay is not None and language in self.replay.languages
        return (self.replay.text if self.replay and replayed else ()) or self.text

    @property
    def base(self) -> "Encoder | None":
        """The encoder it is made from; None for a new one."""
        return self.start

    @property
    def original(self) -> "Pretrain":
        """The encoder itself: no adjustment made it."""
        return self

    @property
    def precision(self) -> str:
        """Precision asked for: auto, float32 or bfloat16."""
        return precision_of(self.method)

    @property
    def label(self) -> str:
        """Name in tables: the shape or the start, the languages, the beginning of the id."""
        shape, own = self.architecture, f", {self.modules.kind} modules" if self.modules else ""
        how = f"{self.trained} trained" if self.trained else "pretrained further"
        start = f"{self.start.label}, {how}" if self.start else ""
        size = f"{shape.family} {shape.layers}x{shape.dim}" if shape else start
        return f"{size} on {'+'.join(self.languages)}{own} ({identity(self)[:6]})"

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """The encoders that it makes, starts from or measures."""
        return (self,)

    @property
    def title(self) -> str:
        """What the run is, in a few words."""
        return f"encoder {self.label}"


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """An encoder that exists already: the shipped one, a folder, or a name on the Hugging Face hub."""

    name: ClassVar[str] = "pretrained"
    source: str
    """shipped, a folder, or a hub name."""
    data: str = ""
    """Fingerprint of its files: other weights in the same folder are another encoder."""
    revision: str | None = None
    """Commit of a hub name; None for a folder, and if it could not be looked up."""
    attention: TextAttention | None = None
    """Of a decoder: whether it reads with its mask or without; None for as its config.json says."""
    precision: ClassVar[str] = "auto"
    splits_read: ClassVar[tuple[SplitRead, ...]] = ()

    @property
    def pinned(self) -> str:
        """What it is loaded by where no folder of this machine holds it: a hub name with its commit."""
        return pinned_name(self.source, self.revision)

    @property
    def base(self) -> None:
        """The encoder it is made from, which is not known."""

    @property
    def original(self) -> "Pretrained":
        """The encoder itself: what it was made from is not known."""
        return self

    @property
    def label(self) -> str:
        """Name in tables: that of its folder or repository."""
        name = Path(self.source).name or self.source
        return f"{name}, {self.attention}" if self.attention else name

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """The encoders that it makes, starts from or measures."""
        return (self,)

    @property
    def title(self) -> str:
        """What the run is, in a few words."""
        return f"encoder {self.label}"


@dataclass(frozen=True, kw_only=True)
class Align:
    """Make word alignments of bitext."""

    name: ClassVar[str] = "align"
    bitext: str
    """Corpus of translations."""
    languages: str
    """The pair, as in en-es; links are (word of the first, word of the second)."""
    aligner: Aligner
    """How words are aligned."""
    encoder: "Encoder | None" = None
    """The encoder whose states are compared, where the aligner needs one."""
    tokenizer: "Encoder | None" = None
    """The encoder whose subwords are linked in place of words; None for words."""
    split: Split = "train"
    """Split that is aligned; aligners that count words count those of the training split too."""
    alone: bool | None = None
    """Whether words are counted in that split alone, as the bitext has no other; None where it has."""
    examples: Count = 0
    """Translations of the split, drawn at random; 0 for all."""
    seed: Whole = 0
    """Seed of what the aligner draws."""
    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""
    precision: ClassVar[str] = "auto"

    @property
    def splits(self) -> tuple[Split, ...]:
        """The splits aligned together: counting words takes more text than a dev set has."""
        alone = self.split == "train" or self.alone or not counts_words(self.aligner)
        return (self.split,) if alone else ("train", self.split)

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:
        """What is read before anything is made, to find broken lines."""
        sizes = {self.split: self.examples}
        return tuple(
            SplitRead(corpus=self.bitext, language=self.languages, split=one, examples=sizes.get(one, 0))
            for one in self.splits
        )

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """The encoders that it makes, starts from or measures."""
        return ()

    @property
    def title(self) -> str:
        """What the run is, in a few words."""
        what = ", subwords" if self.tokenizer else ""
        return f"{self.aligner.name}: {self.bitext} {self.languages}{what}"


def counts_words(aligner: Aligner) -> bool:
    """Return whether an aligner learns from how often words of the bitext meet: the more text, the better."""
    return not (aligner.needs_encoder or isinstance(aligner, Given))


@dataclass(frozen=True, kw_only=True)
class Adjust:
    """Make an encoder from another one by moving the states of translations together."""

    name: ClassVar[str] = "adjust"
    encoder: "Encoder"
    """The encoder it starts from."""
    method: Adjustment
    """How: objective, length and optimization."""
    aligned: tuple[Align, ...]
    """Bitext with word alignments, one for each pair of languages; the source language stands first."""
    sampled: Positive | None = None
    """Of each pair of languages so many translations, drawn at random from the seed; None for all that are
    aligned."""
    seed: Whole = 0
    """Seed of the sample, of the order and of dropout."""

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:
        """What it draws from; its bitext is read by the alignments."""
        return tuple(
            SplitRead(corpus=one.bitext, language=one.languages, split=one.split, examples=self.sampled)
            for one in self.aligned
            if self.sampled
        )

    @property
    def base(self) -> "Encoder":
        """The encoder it is made from."""
        return self.encoder

    @property
    def original(self) -> "Pretrain | Pretrained":
        """The encoder that was adjusted first."""
        return self.encoder.original

    @property
    def precision(self) -> str:
        """Precision asked for: auto, float32 or bfloat16."""
        return precision_of(self.method)

    @property
    def label(self) -> str:
        """Name in tables: the encoder adjusted, the method, the bitext, the beginning of the id."""
        pairs = "+".join(one.languages for one in self.aligned)
        count = self.sampled or self.aligned[0].examples
        size = f"{count} " if count else ""
        return f"{self.encoder.label}, {self.method.name} on {size}{pairs} ({identity(self)[:6]})"

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """The encoders that it makes, starts from or measures."""
        return (self,)

    @property
    def title(self) -> str:
        """What the run is, in a few words."""
        return f"encoder {self.label}"


Encoder = Pretrain | Pretrained | Adjust


def first_of(encoder: Encoder) -> Pretrain | Pretrained:
    """Return the encoder that all others on the way to this one were made from: it has none before it."""
    while encoder.base:
        encoder = encoder.base
    return encoder.original
