"""The minimal plug-in of each kind, with only the members that its protocol declares as abstract."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch.nn.functional import cross_entropy

from isogloss.core.rows.models import total
from isogloss.core.run_parts import TextTraining, Updates
from isogloss.data.corpus import About, CorpusDefaults, locate
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.encoders.added.sparse_deltas import write_sparse
from isogloss.encoders.families import family_of
from isogloss.encoders.family import unfrozen_parameters
from isogloss.encoders.loading import load_whole, load_with_new_head
from isogloss.encoders.subwords import scored_subwords, special_subwords, split_words
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.metrics.labels import label_contributions
from isogloss.reports.checks import Check
from isogloss.reports.verdicts import Claim
from isogloss.tasks.batch import EncodedRow, forward
from isogloss.tasks.tagging import merge_windows
from isogloss.training.fine_tuning import fine_tune
from isogloss.training.setting import (
    Adjustment,
    AdjustSetting,
    AuxiliaryLoss,
    Method,
    Peft,
    Prepared,
    Pretraining,
    Reads,
    Trained,
    language_pairs,
)
from isogloss.training.text_training import begin_pretraining, train_on_text


@dataclass(frozen=True)
class LeastMethod(Method):
    """Train on the source."""

    name: ClassVar[str] = "least-method"
    uses: ClassVar[tuple[str, ...]] = ("source",)

    def reads(self, source, target):
        return Reads(train=source, dev=source)

    def train(self, setting):
        return fine_tune(setting, self.reads(setting.source, setting.target))


@dataclass(frozen=True)
class BitextMethod(Method):
    """Train on the source, next to bitext."""

    name: ClassVar[str] = "bitext-method"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    bitext: str = ""
    """The corpus."""
    without_pairs: bool = False
    """Whether it declares no pairs."""

    def reads(self, source, target):
        pairs = () if self.without_pairs else language_pairs(source, target)
        return Reads(train=source, dev=source, bitext=self.bitext, pairs=pairs, original=True)

    def train(self, setting):
        if not all(setting.bitext.get(pair) for pair in self.reads(setting.source, setting.target).pairs):
            raise ValueError(f"no bitext: {list(setting.bitext)}")
        if not setting.original:
            raise ValueError("no original encoder")
        return fine_tune(setting, self.reads(setting.source, setting.target))


@dataclass(frozen=True)
class LeastLoss(AuxiliaryLoss):
    """Add nothing."""

    name: ClassVar[str] = "least-loss"
    uses: ClassVar[tuple[str, ...]] = ("source",)

    chooses: bool = False
    """Whether it declares dev sets, which it is not given."""

    def reads(self, source, target):
        return Reads(dev=source) if self.chooses else Reads()

    def prepare(self, setting, model, tokenizer, steps):
        return None


@dataclass(frozen=True)
class LeastPeft(Peft):
    """Train all weights, and call it a choice."""

    name: ClassVar[str] = "least-peft"

    def prepare(self, setting):
        return Prepared()

    def finish(self, model, base):
        trained_weights = {
            name: weight.detach().cpu().clone() for name, weight in unfrozen_parameters(model).items()
        }
        return partial(write_sparse, trained_weights, base)


@dataclass(frozen=True)
class LeastPretraining(Pretraining):
    """Train on text for a step."""

    name: ClassVar[str] = "least-pretraining"

    @property
    def training(self):
        return TextTraining(steps=1, batch_subwords=64, block=16, vocabulary_lines=200)

    @property
    def updates(self):
        return Updates()

    def check(self, family, modules, languages):
        pass

    def train(self, setting):
        return train_on_text(begin_pretraining(setting, self), setting, self)


@dataclass(frozen=True)
class LeastAdjustment(Adjustment):
    """Leave the encoder as it is."""

    name: ClassVar[str] = "least-adjustment"

    @property
    def needs_links(self):
        return False

    def train(self, setting: AdjustSetting):
        return Trained(load_whole(setting.start), load_tokenizer(setting.start), rows=[])


@dataclass(frozen=True)
class Count:
    model: str
    language: str
    examples: int


@dataclass(frozen=True)
class LeastDiagnostic(Diagnostic):
    """Count examples."""

    name: ClassVar[str] = "least-diagnostic"
    subject: ClassVar[str] = "model"

    def measure(self, setting: MeasureSetting):
        model = setting.subjects[0].id
        return [
            Count(model=model, language=language, examples=len(setting.evaluation(language).examples))
            for language in setting.languages
        ]


@dataclass(frozen=True)
class Rated:
    """Words with a grade each, under a name that no example of isogloss has."""

    id: str
    source: tuple[str, ...]
    said: tuple[str, ...]
    grades: tuple[str, ...]


@dataclass(frozen=True)
class LeastTask:
    """Grade words, given other words, with a separate class of examples."""

    name: str = "least-task"
    metric: str = "accuracy"
    labels_are: str = "word"
    one_answer: Any = None
    parts: str = "none"
    labels: tuple[str, ...] = ("bad", "good")
    limit: int = 32
    overlap: int = 0
    evaluates_full_length: bool = False

    def encode(self, examples, tokenizer, *, limit=32, overlap=0):
        opening, closing = special_subwords(tokenizer)
        sources = split_words([example.source for example in examples], tokenizer)
        targets = split_words([example.said for example in examples], tokenizer)
        rows = []
        for index, (example, source, target) in enumerate(zip(examples, sources, targets, strict=True)):
            start = len(source.subwords) + 2
            rows.append(
                EncodedRow(
                    example=index,
                    subwords=(opening, *source.subwords, closing, *target.subwords, closing),
                    positions=tuple(start + place for place in scored_subwords(target, tokenizer)),
                    words=tuple(range(len(example.said))),
                    gold=tuple(self.labels.index(grade) for grade in example.grades),
                )
            )
        return rows

    def head(self, source, *, seed, attention="sdpa"):
        kind = "AutoModelForTokenClassification"
        return load_with_new_head(source, kind, labels=self.labels, seed=seed, attention=attention)

    def scores(self, model, batch):
        states = forward(model.base_model, batch).last_hidden_state
        return family_of(model).tag_scores(model, states[batch.rows, batch.columns])

    def loss(self, model, batch):
        return cross_entropy(self.scores(model, batch).float(), batch.gold)

    def decode(self, examples, rows, scores):
        best_index = torch.cat(list(scores)).argmax(-1).tolist() if scores else []
        merged_table = merge_windows([len(example.said) for example in examples], rows, best_index)
        return [tuple(self.labels[index] for index in numbers) for numbers in merged_table]

    def gold(self, examples):
        return [example.grades for example in examples]

    def score(self, gold, predicted):
        return total(self.contributions(gold, predicted)["accuracy"])

    def contributions(self, gold, predicted):
        return {"accuracy": label_contributions(gold, predicted)}

    def majority(self, train_examples, test_examples):
        return self.score(self.gold(test_examples), [("bad",) * len(e.said) for e in test_examples])


TASK = LeastTask()


@dataclass(frozen=True)
class LeastCorpus(CorpusDefaults):
    """JSON lines."""

    name: str = "least-corpus"
    tasks: tuple[str, ...] = ("least-task",)
    about: ClassVar[About] = About()

    def path(self, language, split):
        return f"least/{split}-{language}.jsonl"

    def find(self, folder, language, split):
        layouts = {split: (f"least/{split}-{{language}}.jsonl",) for split in ("train", "dev", "test")}
        return list(locate(folder, self.name, layouts, language, split))

    def read(self, source, language, split) -> Iterator[Rated]:
        (file,) = self.files(source, language, split)
        for index, line in file.lines():
            words = {name: tuple(value) for name, value in json.loads(line).items()}
            yield Rated(id=str(index), **words)

    def write(self, examples: Iterable[Rated], language):
        for example in examples:
            yield json.dumps({"source": example.source, "said": example.said, "grades": example.grades})


CORPUS = LeastCorpus()


def always(measurements) -> Sequence[Check]:
    return [Check(about="nothing")]


CLAIM = Claim(id="L1", title="The least", where="here", says="Nothing.", rule="None.", test=always)
