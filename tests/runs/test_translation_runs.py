"""Translators are trained and examples translated, kept, read back and trained on. Losses are counted."""

import json
import shutil
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

import isogloss
from isogloss.core.errors import RunError
from isogloss.core.identity import identity
from isogloss.core.records import read_record
from isogloss.core.run_parts import with_fields
from isogloss.data.sources import Sources
from isogloss.features.built_in_languages import translate_corpus
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.example_files import read_examples
from isogloss.features.translation.modelling import TranslationModelling
from isogloss.features.translation.run import EXAMPLES, TrainTranslator, Translate
from isogloss.features.translation.seq2seq import Seq2Seq
from isogloss.runs.execute import make
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import RunContext
from isogloss.store.store import Store
from isogloss.translators import setting as translating

TINY = with_fields(
    TranslationModelling(),
    steps=4,
    batch_subwords=256,
    layers=1,
    dim=32,
    heads=2,
    feed_forward=64,
    vocabulary=300,
    longest=40,
    dev_sentences=4,
    evaluations=1,
    precision="float32",
)
TRANSLATOR = TrainTranslator(
    bitext="bitext", pairs=("qaa-qab",), method=TINY, dev="bitext", examples=60, seed=1
)
RECIPE = """
title = "Translated"
encoder = "shipped"

[translate]
name = "seq2seq"
longest = 24

[translate.train]
bitext = "bitext"
pairs = ["qaa-qab"]
examples = 60
steps = 4
batch_subwords = 256
layers = 1
dim = 32
heads = 2
feed_forward = 64
vocabulary = 300
longest = 40

[grid]
corpus = ["xnli", "ud"]
task = ["nli", "upos"]
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 12
dev_examples = 6
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 4 }

[[grid.method]]
name = "translate-train"
labels = "teacher"

[[grid.method]]
name = "x-mixup"

[[measure]]
name = "scores"
inputs = "paired"
examples = 6

[[measure]]
name = "scores"
inputs = "translated"
tasks = ["nli"]
examples = 6
"""


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    return RunContext(store=Store(tmp_path_factory.mktemp("runs")), sources=Sources(), precision="float32")


@pytest.fixture(scope="module")
def trained_translator(context):
    return make(context, TRANSLATOR)


def run_translation(context, **fields):
    """Translate, with the built-in translator unless told otherwise. Give run, record and examples."""
    run = Translate(
        **{"corpus": "xnli", "languages": "qaa-qad", "translator": BuiltIn(), "examples": 30, **fields}
    )
    record = make(context, run)
    return run, record, run.read_examples(context)


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["xnli", "pawsx", "squad"])
def test_the_built_in_translator_makes_what_the_built_in_files_hold(context, corpus):
    answers = ("links",) if corpus == "squad" else None
    _, record, translation = run_translation(context, corpus=corpus, split="dev", answers=answers)
    ids = {example.id for example in Sources().examples(corpus, "qaa", "dev", examples=30)}
    files = [example for example in Sources().examples(corpus, "qaa-qad", "dev") if example.id in ids]
    assert translation == files
    (row,) = record.rows
    assert (row["examples"], row["translated"], row["lost"]) == (30, len(files), 30 - len(files))


def test_there_and_back_are_the_translations_of_translations(context):
    translation, _, _ = run_translation(context)
    _, _, result = run_translation(context, languages="qaa-qad-qaa", start=translation, examples=0)
    assert result == Sources().examples("xnli", "qaa-qad-qaa", "train", examples=30)


def test_tags_are_left_behind(context):
    _, _, translation = run_translation(context, corpus="wikiann")
    files = Sources().examples("wikiann", "qaa-qad", "train", examples=30)
    assert [sentence.words for sentence in translation] == [file.words for file in files]
    assert not any(sentence.tags for sentence in translation)


def test_tags_follow_the_links_of_the_translator_or_of_a_word_aligner(context):
    from isogloss.features.statistical_alignment.fast_align import FastAlign

    files = list(islice(translate_corpus("wikiann", "qaa-qad", "train"), 30))
    _, record, translation = run_translation(
        context, corpus="wikiann", translator=BuiltIn(noise=0.0), tags="links"
    )
    assert [(sentence.words, sentence.tags) for sentence in translation] == [
        (file.words, file.tags) for file in files
    ]
    assert record.rows[0]["tagged"] == 1.0
    ways = {"tags": "alignment", "aligner": FastAlign()}
    _, record, translation = run_translation(context, corpus="ud", **ways)
    assert 0.5 < record.rows[0]["tagged"] < 1
    assert len(translation) == 30


def test_links_are_kept_when_asked_for_and_lead_back_too(context):
    from isogloss.features.statistical_alignment.fast_align import FastAlign

    plain_translation, _, unlinked_translation = run_translation(context, corpus="ud")
    translation, _, result = run_translation(context, corpus="ud", links="links")
    assert identity(translation) != identity(plain_translation)
    assert result == unlinked_translation
    assert all(pair.links is None for pair in unlinked_translation)
    assert b"links" not in (context.store.folder(plain_translation) / EXAMPLES).read_bytes()
    assert all(len(pair.links) > len(pair.words) / 2 for pair in result)
    back = {"corpus": "ud", "languages": "qaa-qad-qaa", "start": translation, "examples": 0, "links": "links"}
    for left, right in zip(result, run_translation(context, **back)[2], strict=True):
        assert {word for word, _ in right.links} <= set(range(len(left.words)))
        assert len(right.links) > len(right.words) / 2
    aligned_translation = run_translation(context, corpus="ud", links="alignment", aligner=FastAlign())[2]
    assert aligned_translation == unlinked_translation
    assert all(pair.links for pair in aligned_translation) and [
        pair.links for pair in aligned_translation
    ] != [pair.links for pair in result]


@pytest.mark.nightly
@pytest.mark.slow
def test_questions_whose_answer_is_lost_are_counted_and_told_of(context):
    noisy = {"corpus": "squad", "translator": BuiltIn(noise=0.4), "answers": ("links",)}
    _, record, translation = run_translation(context, **noisy)
    (row,) = record.rows
    assert row["lost"] == 30 - len(translation) > 0
    (warning,) = record.warnings
    assert f"labels of {row['lost']} of 30 examples were not found again" in warning
    _, record, kept_translation = run_translation(context, **{**noisy, "answers": ()})
    assert (len(kept_translation), record.warnings) == (30, ())
    assert not any(item.answers for item in kept_translation)


@pytest.mark.nightly
@pytest.mark.slow
def test_answers_are_found_by_a_word_aligner(context):
    from isogloss.features.statistical_alignment.fast_align import FastAlign

    _, record, translation = run_translation(
        context, corpus="squad", answers=("alignment",), aligner=FastAlign()
    )
    assert 0 < len(translation) == 30 - record.rows[0]["lost"]
    assert all(
        question.passage[start:].startswith(text)
        for question in translation
        for start, text in question.answers
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_nothing_found_at_all_is_said_with_what_to_do(context):
    run = Translate(
        corpus="squad", languages="qaa-qad", translator=BuiltIn(noise=1.0), answers=("alone",), examples=3
    )
    with pytest.raises(RunError, match=r"3.*translate\.answers"):
        make(context, run)
    assert not context.store.is_finished(run)


@pytest.mark.nightly
@pytest.mark.slow
def test_texts_that_are_cut_are_counted_and_told_of(context, trained_translator):
    run = Translate(
        corpus="squad",
        languages="qaa-qab",
        translator=Seq2Seq(longest=8),
        model=TRANSLATOR,
        answers=(),
        examples=1,
    )
    record = make(context, run)
    assert record.rows[0]["cuts"] > 0
    assert f" {record.rows[0]['cuts']} places" in record.warnings[0]


def test_a_trained_translator_is_an_ordinary_folder_with_its_scores(context, trained_translator):
    from transformers import AutoModelForSeq2SeqLM

    scores = [row["language"] for row in trained_translator.rows if row.get("metric") == "chrf"]
    assert scores == ["qaa-qab", "qab-qaa"]
    assert [row["pairs"] for row in trained_translator.rows if "pairs" in row] == [
        60 - trained_translator.rows[0]["left_out"]
    ]
    model = AutoModelForSeq2SeqLM.from_pretrained(context.store.model(TRANSLATOR))
    assert model.config.model_type == "marian"


@pytest.mark.nightly
@pytest.mark.slow
def test_bitext_is_scored_by_its_own_translations(context, trained_translator):
    from isogloss.features.translation.scores import chrf

    fields = {"corpus": "bitext", "split": "test", "examples": 12}
    learned_value = {"languages": "qab-qaa", "translator": Seq2Seq(), "model": TRANSLATOR}
    _, poor, translation = run_translation(context, **fields, **learned_value)
    originals = Sources().examples("bitext", "qab-qaa", "test", examples=12)
    assert [pair.first for pair in translation] == [original.first for original in originals]
    assert poor.rows[0]["score"] == chrf(
        [original.second for original in originals], [pair.second for pair in translation]
    )
    _, good_translation, _ = run_translation(
        context, **fields, languages="qab-qaa", translator=BuiltIn(noise=0.0)
    )
    assert good_translation.rows[0]["score"] > 0.8 > 0.3 > poor.rows[0]["score"]


@pytest.mark.nightly
@pytest.mark.slow
def test_an_interrupted_translation_goes_on_where_it_was(context, trained_translator, monkeypatch, tmp_path):
    monkeypatch.setattr(translating, "TEXTS_PER_CHUNK", 4)
    run = Translate(
        corpus="xnli", languages="qaa-qab", translator=Seq2Seq(longest=24), model=TRANSLATOR, examples=6
    )
    atomic_file = translating.atomic_file
    names = []

    @contextmanager
    def stop(folder, name):
        with atomic_file(folder, name) as file:
            yield file
        names.append(name)
        if len(names) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(translating, "atomic_file", stop)
    with pytest.raises(KeyboardInterrupt):
        make(context, run)
    assert not context.store.is_finished(run)
    assert not (context.store.folder(run) / EXAMPLES).exists()
    state_before = list(names)
    make(context, run)
    assert names[:2] == state_before
    assert len(names) == len(set(names)) == 3  # Twelve texts; the first eight were not translated again.
    other_run_context = RunContext(store=Store(tmp_path), sources=context.sources, precision="float32")
    shutil.copytree(context.store.folder(TRANSLATOR), other_run_context.store.folder(TRANSLATOR))
    make(other_run_context, run)
    assert (context.store.folder(run) / EXAMPLES).read_bytes() == (
        other_run_context.store.folder(run) / EXAMPLES
    ).read_bytes()
    assert sorted(path.name for path in context.store.folder(run).iterdir()) == [
        "checksums.json",
        EXAMPLES,
        "made.json",
        "record.json",
    ]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_model_that_is_there_is_known_by_its_files(context, trained_translator, tmp_path):
    from isogloss.features.translation.models import translation_model
    from isogloss.runs.pretrained import model_folders

    folder = context.store.folder(TRANSLATOR)
    names = translation_model(str(folder))
    assert names == translation_model(str(folder / "model"))
    assert names.source == folder.name
    assert str(tmp_path) not in json.dumps([names.source, names.data])
    sources = Sources("", model_folders([str(folder)], translation_model))
    fields = {"corpus": "xnli", "languages": "qaa-qab", "translator": Seq2Seq(longest=24), "examples": 2}
    other_run_context = RunContext(store=Store(tmp_path), sources=sources, precision="float32")
    _, _, translation = run_translation(
        other_run_context, **fields, model=Pretrained(source=names.source, data=names.data)
    )
    _, _, theirs = run_translation(context, **fields, model=TRANSLATOR)
    assert translation == theirs


@pytest.mark.slow
def test_a_recipe_trains_a_translator_translates_and_learns_from_it(tmp_path):
    (tmp_path / "translated.toml").write_text(RECIPE)
    result = isogloss.run(tmp_path / "translated.toml", out=tmp_path / "runs", jobs=1, report=False)
    assert result.outcome.failed == {}
    kinds = [record.kind for record in result.records]
    assert kinds.count(TrainTranslator.name) == 1
    assert kinds.count(Translate.name) == 2 * 3
    for record in result.records:
        if record.kind == Translate.name:
            assert len(list(read_examples(result.out / record.id / EXAMPLES))) == record.rows[0]["examples"]
        if record.kind == "measure":
            assert "by seq2seq (longest=24" in record.title or "trained" in record.title
            assert {row["examples"] for row in record.rows} == {6}
    tables = result.report.html.parent / "tables"
    assert len((tables / "translations.csv").read_text(encoding="utf-8").splitlines()) == 1 + 2 * 3
    again = isogloss.run(tmp_path / "translated.toml", out=result.out, jobs=1, report=False)
    assert again.outcome.made == []
    assert read_record(Path(result.out) / result.records[0].id).id == result.records[0].id
