"""Laws for parts of other packages: built-in parts keep them, and a part that breaks one is reported."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
from torch.nn.functional import cross_entropy

from isogloss import testing
from isogloss.aligners import ALIGNERS
from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpus import About
from isogloss.data.formats.word_links import Aligned
from isogloss.data.projection.example_texts import Translated
from isogloss.features.choosing.label_free import LabelFree
from isogloss.functional.models import load_corpus
from isogloss.methods.plain import SourceOnly
from isogloss.reports.checks import HELPS, check_of
from isogloss.reports.verdicts import Claim
from isogloss.tasks import TASKS
from isogloss.testing import (
    LawBroken,
    check_aligner,
    check_claim,
    check_corpus,
    check_diagnostic,
    check_engine,
    check_method,
    check_task,
    check_translator,
)
from isogloss.training.fine_tuning import fine_tune, plain_training
from isogloss.translators import TRANSLATORS

SENTENCES = load_corpus("ud", "qaa", "dev", examples=4)
CALLS = Counter[str]()


@dataclass(frozen=True, kw_only=True)
class Moody(SourceOnly):
    """Train with a new seed each time."""

    name: ClassVar[str] = "moody"

    def train(self, setting):
        CALLS["trained"] += 1
        return fine_tune(replace(setting, seed=CALLS["trained"]), self.reads(setting.source, setting.target))


@dataclass(frozen=True, kw_only=True)
class Smoothed(SourceOnly):
    """Spread a share of each label over all labels."""

    name: ClassVar[str] = "smoothed"
    smoothing: float = 0.1

    def train(self, setting):
        def loss(model, batch):
            scores = setting.task.scores(model, batch).float()
            return cross_entropy(scores, batch.gold, label_smoothing=self.smoothing)

        def smooth_loss(*arguments):
            training = plain_training(*arguments)
            return replace(training, loss=loss) if self.smoothing else training

        return fine_tune(setting, self.reads(setting.source, setting.target), prepare=smooth_loss)


@dataclass(frozen=True, kw_only=True)
class Careless(LabelFree):
    """Measure something else each time."""

    name: ClassVar[str] = "careless"

    def measure(self, setting):
        CALLS["measured"] += 1
        return [replace(row, value=float(CALLS["measured"])) for row in super().measure(setting)]


@dataclass(frozen=True, kw_only=True)
class Silent(LabelFree):
    """Measure nothing."""

    name: ClassVar[str] = "silent"

    def measure(self, setting):
        return []


@pytest.mark.slow
def test_a_method_keeps_the_laws(tmp_path):
    check_method(Smoothed(), tmp_path, neutral=Smoothed(smoothing=0.0))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_method_that_depends_on_chance_is_reported(tmp_path):
    with pytest.raises(LawBroken, match="trained"):
        check_method(Moody(), tmp_path)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_setting_that_is_not_neutral_is_reported(tmp_path):
    with pytest.raises(LawBroken, match="weights"):
        check_method(Smoothed(smoothing=0.5), tmp_path, neutral=Smoothed(smoothing=0.5))


@pytest.mark.slow
def test_a_built_in_diagnostic_keeps_the_laws_and_returns_its_rows(tmp_path):
    rows = check_diagnostic(LabelFree(), tmp_path)
    assert {"signal", "value"} <= rows[0].keys()


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("diagnostic", "law"), [(Careless(), "measured"), (Silent(), "nothing")])
def test_a_diagnostic_that_breaks_a_law_is_reported(tmp_path, diagnostic, law):
    with pytest.raises(LawBroken, match=law):
        check_diagnostic(diagnostic, tmp_path)


def decode_by_place(self, examples, rows, scores):
    return [("NOUN",) * len(rows[index].words) for index, _ in enumerate(examples)]


def score_half(self, gold, predictions):
    return 0.5


@pytest.mark.parametrize(
    ("members", "law"),
    [
        ({"score": score_half}, "0.5"),
        ({"decode": decode_by_place}, "order"),
        ({"encode": lambda self, examples, tokenizer, **limits: []}, "examples"),
    ],
)
def test_a_task_that_breaks_a_law_is_reported(members, law):
    changes = type("Changed", (type(TASKS["upos"]),), members)(**vars(TASKS["upos"]))
    with pytest.raises(LawBroken, match=law):
        check_task(changes, SENTENCES)


def test_a_built_in_task_keeps_the_laws():
    check_task(TASKS["upos"], SENTENCES)


REVIEWS = LabelledCorpus(
    name="reviews",
    kind="tagging",
    tasks=("word-sentiment",),
    about=About("Reviews.", licence="CC0"),
    labels=("bad", "good"),
    layouts={"train": ("reviews-{language}.tsv",)},
)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "reviews-sw.tsv").write_text("nzuri\tgood\nsana\tgood\n\nmbaya\tbad\n")
    return folder


def test_a_corpus_reads_what_it_writes(tmp_path, data):
    corpus = replace(REVIEWS, written="reviews-{language}.tsv")
    check_corpus(corpus, data, tmp_path / "written", languages=["sw"], splits=["train"])


def test_a_corpus_that_does_not_find_what_it_writes_is_reported(tmp_path, data):
    with pytest.raises(LawBroken, match=r"sw.*reviews/train-sw\.tsv"):
        check_corpus(REVIEWS, data, tmp_path / "written", languages=["sw"], splits=["train"])


class Outside:
    """Link words that are not there."""

    def align(self, setting):
        return [Aligned(links=((0, 99),)) for _ in setting.pairs]


def test_an_aligner_keeps_the_laws_or_is_reported():
    check_aligner(ALIGNERS["fast-align"]())
    with pytest.raises(LawBroken, match="0, 99"):
        check_aligner(Outside())


class Forgetful:
    """Translate all texts but the last."""

    def check(self, source, target):
        pass

    def translate(self, texts, setting):
        yield from [Translated(text) for text in texts][:-1]


def test_a_translator_keeps_the_laws_or_is_reported(tmp_path):
    check_translator(TRANSLATORS["built-in"](unknown="copy"), tmp_path / "built-in")
    with pytest.raises(LawBroken, match=r"translations: .*5.*4"):
        check_translator(Forgetful(), tmp_path / "forgetful")


def first_is_best(measurements):
    """A rule that depends on the order of rows."""
    scores = measurements.frame("scores")["score"]
    return [check_of([scores.iloc[0] - scores.iloc[-1]] * 3, "first − last", HELPS)] if len(scores) else []


def mean_is_positive(measurements):
    scores = measurements.frame("scores")
    return [check_of(scores["score"].sort_values(), "mean", HELPS)] if len(scores) else []


@pytest.mark.nightly
@pytest.mark.slow
def test_an_engine_keeps_the_laws_and_a_claim_is_judged_on_its_runs(tmp_path):
    check_engine("processes", tmp_path, jobs=2)
    options = {"id": "X1", "where": "", "says": "", "rule": "", "title": "X"}
    check_claim(Claim(test=mean_is_positive, **options), tmp_path / "serial")
    with pytest.raises(LawBroken, match=r"X1.*order"):
        check_claim(Claim(test=first_is_best, **options), tmp_path / "serial")


def test_every_law_is_tested_here():
    checks = {name for name in testing.__all__ if name.startswith("check_")}
    assert checks <= set(globals())
