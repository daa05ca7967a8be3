"""Runs: frozen values that say completely what is to be made, and what each needs to be made first.

A run's id is the hash of its content (``core.identity``). Methods, diagnostics and objectives are values
of higher floors; here they are only known to be frozen dataclasses with a ``name``.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from isogloss.core.run_parts import (
    NESTED,
    Count,
    Named,
    Positive,
    Rate,
    Share,
    Weight,
    Whole,
    nested_fields,
)

__all__ = ["Count", "Named", "Positive", "Rate", "Share", "Weight", "Whole"]
"""Beside all that is defined here: what fields are made of."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The shape of an encoder that is trained from scratch."""

    family: str = "bert"
    """Encoder family, as bert or xlm-roberta; `isogloss list encoders` names them all."""

    layers: Positive = 4
    """Transformer layers."""

    dim: Positive = 256
    """Width of the states; 64 to a head unless heads says otherwise."""

    heads: Positive = 4
    """Attention heads; must divide dim."""

    feed_forward: Positive = 1024
    """Width of the feed-forward layer (of each half where it is gated, as in modernbert)."""

    vocabulary: Positive = 12000
    """Subwords in the vocabulary that is trained on the text."""

    positions: Positive = 512
    """Longest input, in subwords."""

    dropout: Share = 0.1
    """Dropout of the encoder when it is fine-tuned; pretraining on this much text uses none."""


@dataclass(frozen=True, kw_only=True)
class Modules:
    """What each language of an encoder has for itself, beside what all share."""

    kind: Literal["feed-forward", "attention", "adapter", "shared-adapter"]
    """feed-forward or attention: every layer's, once for each language; adapter: a bottleneck for each
    language after every attention and feed-forward; shared-adapter: one for all (the control)."""

    reduction: Positive = 4
    """How many times narrower than the states an adapter's bottleneck is."""

    fallback: str = ""
    """Language whose modules read the languages that have none; without one these are refused."""


@dataclass(frozen=True, kw_only=True)
class Pretrain:
    """Make an encoder from text by masked language modelling."""

    name: ClassVar[str] = "pretrain"

    text: tuple[str, ...]
    """Corpora of raw text."""

    languages: tuple[str, ...]
    """Languages of the text."""

    architecture: Architecture = field(default_factory=Architecture)
    """The shape of the encoder."""

    method: Named
    """How: objective, length and optimisation (a value of the methods floor)."""

    bitext: str = ""
    """Corpus of translations for translation LM; none when empty."""

    lines: tuple[tuple[str, int], ...] | None = None
    """At most so many lines of a language, drawn at random from the seed: (("ru", 100000),); all of the
    others."""

    modules: Modules | None = None
    """What each language has for itself; without, all is shared."""

    seed: Whole = 0
    """Seed of initial weights, order, masks, and the lines drawn."""

    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """An encoder that exists already: the shipped one, a folder, or a name on the Hugging Face hub."""

    name: ClassVar[str] = "pretrained"

    source: str
    """shipped, a folder, or a hub name."""

    data: str = ""
    """Fingerprint of its files: other weights in the same folder are another encoder."""


@dataclass(frozen=True, kw_only=True)
class Align:
    """Make word alignments of bitext."""

    name: ClassVar[str] = "align"

    bitext: str
    """Corpus of translations."""

    languages: str
    """The pair, as in en-es; links are (word of the first, word of the second)."""

    aligner: Named
    """How (a value of the aligners' floor)."""

    encoder: "Encoder | None" = None
    """The encoder whose states are compared, where the aligner looks at states."""

    split: str = "train"
    """Split that is aligned; aligners that count words count those of the training split too."""

    alone: bool | None = None
    """Whether words are counted in that split alone, as the bitext has no other; none said where it has."""

    examples: Count = 0
    """Translations of the split, the first ones; 0 for all."""

    seed: Whole = 0
    """Seed of what the aligner draws."""

    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""


@dataclass(frozen=True, kw_only=True)
class Adjust:
    """Make an encoder from another one, so that translations come to lie together."""

    name: ClassVar[str] = "adjust"

    encoder: "Encoder"
    """The encoder it starts from."""

    method: Named
    """How: objective, length and optimisation (a value of the methods floor)."""

    aligned: tuple[Align, ...]
    """Bitext with word alignments, one for each pair of languages; the source language stands first."""

    seed: Whole = 0
    """Seed of the order and of dropout."""


@dataclass(frozen=True, kw_only=True)
class TrainTranslator:
    """Make a translation model from bitext, for both directions of every pair."""

    name: ClassVar[str] = "train-translator"

    bitext: str
    """Corpus of translations."""

    pairs: tuple[str, ...]
    """Pairs of languages, as in en-es."""

    method: Named
    """How: size, length and optimisation (a value of the methods floor)."""

    dev: str = ""
    """Corpus of translations whose dev split chooses among the weights on the way; none when empty."""

    examples: Count = 0
    """Translations of each pair, the first ones; 0 for all."""

    seed: Whole = 0
    """Seed of initial weights, order and dropout."""

    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""


@dataclass(frozen=True, kw_only=True)
class Translate:
    """Make translated examples, under the same ids, of a corpus's split."""

    name: ClassVar[str] = "translate"

    corpus: str
    """Corpus of any kind: with labels, of text, or of translations, whose first texts are translated."""

    languages: str
    """From and into: en-sw; en-sw-en goes back to where it came from."""

    split: str = "train"
    """Split that is translated."""

    translator: Named
    """How (a value of the translators' floor)."""

    model: TrainTranslator | Pretrained | None = None
    """The model, where the translator needs one."""

    start: "Translate | None" = None
    """The translation it goes on from, for one that goes back: it translates what that one wrote."""

    answers: tuple[str, ...] | None = None
    """Ways to find the answers to questions again, tried in order; with none at all questions are kept
    without answers, and translated without a look at them. None said where nothing has answers."""

    aligner: Named | None = None
    """Word aligner, where answers are found by alignment."""

    encoder: "Encoder | None" = None
    """The encoder whose states that aligner compares."""

    treebanks: tuple[tuple[str, str], ...] = ()
    """Treebank of a language where the corpus has several."""

    examples: Count = 0
    """Examples that are translated, the first ones; 0 for all."""

    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""


@dataclass(frozen=True, kw_only=True)
class Updates:
    """How weights are updated: AdamW with linear warm-up and decay, the same for every training."""

    learning_rate: Rate = 2e-5
    """Highest rate, reached after the warm-up; then linear decay to 0."""

    warmup: Share = 0.1
    """Share of the steps with linear warm-up."""

    weight_decay: Weight = 0.01
    """AdamW's decay, on matrices only."""

    beta2: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.999
    """Adam's second moment decay."""

    epsilon: Rate | None = None
    """Adam's ε; 1e-8 when left out."""

    clip: Weight = 1.0
    """Largest gradient norm; 0 switches clipping off."""

    accumulation: Positive | None = None
    """Parts that the batch of one update is computed in, one after the other or in several processes: less
    memory, the same result within rounding; one when left out."""

    precision: str = "auto"
    """auto (measured once per machine), float32 or bfloat16."""

    checkpoint_every: Count = 200
    """Steps between checkpoints; 0 for none."""


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """How a model is fine-tuned; the defaults are the seed paper's (Appendix A; its code used beta2 0.99)."""

    epochs: Positive = 5
    """Passes over the training data."""

    batch_size: Positive = 32
    """Sentences (or pairs) a step."""

    limit: Positive = 128
    """Longest input in subwords, special ones included; longer sentences become overlapping windows."""

    overlap: Count = 64
    """Subwords shared by neighbouring windows."""

    updates: Updates = field(default=Updates(), metadata=NESTED)
    """How weights are updated."""

    _nested = nested_fields()


@dataclass(frozen=True, kw_only=True)
class FineTune:
    """Make a model: an encoder, a corpus, languages, a method."""

    name: ClassVar[str] = "fine-tune"

    encoder: "Encoder"
    """The encoder it starts from."""

    corpus: str
    """Corpus with the labels."""

    task: str
    """Task of the corpus."""

    method: Named
    """How: source-only, target-only, bilingual …"""

    auxiliary: Named | None = None
    """A loss added to the method's own; none when left out."""

    source: tuple[str, ...]
    """Source languages; empty when the method does not look at them."""

    target: tuple[str, ...] = ()
    """Target languages the method trains on; empty when it sees none."""

    optimization: Optimization = field(default_factory=Optimization)
    """Steps, rates, lengths."""

    start: "FineTune | None" = None
    """The model it goes on from, head included; without one a new head is put on the encoder."""

    aligned: tuple[Align, ...] | None = None
    """Bitext with word alignments, one for each pair of languages, for methods that read some."""

    translated: tuple[Translate, ...] | None = None
    """Translations it reads, where they are made and not read from the corpus's files."""

    teacher: "FineTune | None" = None
    """The model that labels translations, for methods that need one."""

    treebanks: tuple[tuple[str, str], ...] = ()
    """Treebank of a language where the corpus has several: (("fr", "Sequoia"),)."""

    examples: Count = 0
    """Training examples of each language, the first ones of the file; 0 for all."""

    dev_examples: Count = 0
    """Development examples of each language that choose the epoch, the first ones; 0 for all."""

    seed: Whole = 0
    """Seed of the head's initial weights, the order of the data and dropout."""

    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Make rows of numbers: a diagnostic looks at models, encoders or other measurements."""

    name: ClassVar[str] = "measure"

    diagnostic: Named
    """What is measured."""

    subjects: tuple["Run", ...]
    """What it looks at, in the diagnostic's order."""

    languages: tuple[str, ...] = ()
    """Languages it looks at; for two-sided diagnostics the source first."""

    corpus: str = ""
    """Corpus it reads; empty when it reads none."""

    split: str = "dev"
    """Split it reads."""

    inputs: str | None = None
    """How target inputs come: as they are (none said), translated, or mixed with the source language."""

    aligned: tuple[Align, ...] | None = None
    """Word alignments of the bitext it reads, where it looks at words; one for each pair of languages."""

    translated: tuple[Translate, ...] | None = None
    """Translations it reads, where they are made and not read from the corpus's files."""

    treebanks: tuple[tuple[str, str], ...] = ()
    """Treebank of a language where the corpus has several."""

    examples: Count = 0
    """Examples of each language; 0 for all."""

    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""


Encoder = Pretrain | Pretrained | Adjust
Run = Pretrain | Pretrained | Align | Adjust | TrainTranslator | Translate | FineTune | Measure
