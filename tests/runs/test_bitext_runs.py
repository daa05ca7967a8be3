"""Alignments, adjusted encoders and their trainings and measurements, computed from a recipe."""

import json
import tomllib
from pathlib import Path

import pytest

import isogloss
from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import DataError
from isogloss.data.files import disk_file
from isogloss.data.formats.word_links import read_pharaoh
from isogloss.data.sources import Sources
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.methods import CrossLingualAdjustment
from isogloss.features.adjustment.run import Adjust
from isogloss.features.alignment.run import LINKS, Align
from isogloss.features.alignment.single_run import BitextToAlign, align_bitext
from isogloss.features.alignment.subwords import in_subwords
from isogloss.features.statistical_alignment.fast_align import FastAlign
from isogloss.runs.execute import make
from isogloss.runs.run import RunContext
from isogloss.training.bitext import PairEncoding, read_bitext
from tiny import select_kind

RECIPE = """
title = "Adjust"
encoder = "shipped"

[align]
name = "given"

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext"
pairs = ["qaa-qad"]
examples = 24
batch_size = 8

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qad"]
seeds = [0]
examples = 16
dev_examples = 8
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 8 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "source-only"
auxiliary = { name = "alignment-loss", bitext = "bitext[dev]", pairs = 2 }
encoders = ["original"]

[[measure]]
name = "scores"
examples = 8

[[measure]]
name = "word-distance"
corpus = "bitext"
split = "dev"
examples = 20

[[measure]]
name = "cka"
corpus = "bitext"
examples = 20
"""


@pytest.mark.slow
def test_everything_a_recipe_asks_for_is_made(finished_study):
    assert finished_study.outcome.failed == {}
    assert len(select_kind("adjust", finished_study.records)) == 1
    assert len(select_kind("fine-tune", finished_study.records)) == 3
    words = [
        record
        for record in select_kind("measure", finished_study.records)
        if record.title.startswith("word-distance")
    ]
    assert len(words) == 2 + 3  # two encoders, and those within three models
    pairs = Sources().examples("bitext", "qaa-qad", "dev", examples=20)
    links = sum(len(pair.links) for pair in pairs)
    assert {row["related_pairs"] for record in words for row in record.rows if "auc" in row} == {links}


@pytest.mark.slow
def test_links_are_read_back_and_gold_is_scored(finished_study):
    (record,) = (
        alignment
        for alignment in select_kind("align", finished_study.records)
        if alignment.rows[0]["pairs"] == 24
    )
    assert record.rows[0]["aer"] == 0  # The links that were given are the gold ones.
    pairs = Sources().examples("bitext", "qaa-qad", "train", examples=24)
    aligned_pairs = list(read_pharaoh(disk_file(finished_study.out / record.id / LINKS), pairs))
    assert [pair.links for pair in aligned_pairs] == [tuple(sorted(pair.links)) for pair in pairs]


@pytest.mark.slow
def test_an_adjusted_encoder_is_an_ordinary_folder_that_isogloss_uses(finished_study):
    from transformers import AutoModel

    (record,) = select_kind("adjust", finished_study.records)
    model = AutoModel.from_pretrained(finished_study.out / record.id / "model")
    shipped_model = AutoModel.from_pretrained(Path(isogloss.__file__).parent / "shipped")
    moved_names = [
        name
        for name, parameter in model.named_parameters()
        if not parameter.equal(shipped_model.get_parameter(name).data)
    ]
    assert any("layer.3" in name for name in moved_names)


@pytest.mark.slow
def test_a_second_call_makes_nothing(finished_study):
    again = isogloss.run(
        finished_study.out.parent / "tiny.toml", out=finished_study.out, jobs=1, report=False
    )
    assert again.outcome.made == []


@pytest.mark.slow
def test_each_seed_reads_a_sample_of_its_own_with_the_links_of_the_whole(plan_changed, monkeypatch):
    table = {**tomllib.loads(RECIPE)["adjust"][0], "bitext": "bitext[dev]", "sample": "random"}
    tables = [{**table, "seed": [0, 1]}, {**table, "label": "smaller", "examples": 12}]
    plan = plan_changed(adjust=tables, align={}, grid__method=[{"name": "source-only"}], measure=[])
    context = RunContext(store=plan.store, sources=plan.sources)
    monkeypatch.setattr(CrossLingualAdjustment, "train", lambda _, setting: settings.append(setting))
    settings, (alignment,) = [], select_kind(Align, plan.runs)
    make(context, alignment)
    for run in select_kind(Adjust, plan.runs):
        with pytest.raises(AttributeError):  # No encoder was trained.
            make(context, run)
    all_pairs = alignment.read_links(context)
    samples = [setting.bitext["qaa-qad"] for setting in settings]
    assert [len(sample) for sample in samples] == [24, 24, 12]
    assert all([pair for pair in all_pairs if pair in sample] == sample for sample in samples)
    assert samples[0] != samples[1] and set(samples[2]) < set(samples[0]) != set(all_pairs[:24])


@pytest.mark.slow
def test_subwords_are_aligned_and_read_back_with_the_words_they_are_parts_of(plan_changed):
    changes = {"align": {}, "measure": [], "grid__method": [{"name": "source-only"}]}
    bitext_changes = {"adjust__0__bitext": "bitext[dev]", "adjust__0__word": "aligned-subwords"}
    plan = plan_changed(**changes, **bitext_changes)
    context, (run,) = RunContext(store=plan.store, sources=plan.sources), select_kind(Align, plan.runs)
    record = make(context, run)
    pairs = plan.sources.examples("bitext", "qaa-qad", "dev", examples=24)
    tokenizer = load_tokenizer(run.tokenizer.weights(context))
    cut = in_subwords(pairs, tokenizer)
    expected = FastAlign().align(AlignSetting(pairs=cut))
    read = run.read_links(context)
    assert [pair.links for pair in read] == [pair.links for pair in expected]
    assert [(pair.first, pair.words) for pair in read] == [(pair.first, pair.words) for pair in pairs]
    assert record.rows[0]["gold_pairs"] == 0  # Gold links are of words.
    encoded_bitext = read_bitext({"qaa-qad": read}, tokenizer, PairEncoding(word="aligned-subwords"))
    assert encoded_bitext.rows[0]["pulled"] == sum(len(pair.links) + 2 for pair in read)


@pytest.mark.slow
def test_bitext_is_aligned_by_itself_once(tmp_path):
    bitext = BitextToAlign(
        bitext="bitext", pairs=("qaa-qab", "qab-qaa"), aligner={"name": "given"}, split="dev", examples=5
    )
    progress_events = []
    forward_alignment, back_alignment = align_bitext(
        bitext, folder=tmp_path, on_progress=progress_events.append
    )
    assert (forward_alignment.row["pairs"], forward_alignment.row["aer"]) == (5, 0)
    forward_links = [sorted(line.split()) for line in forward_alignment.file.read_text().splitlines()]
    turned_links = [
        sorted("-".join(reversed(link.split("-"))) for link in line.split())
        for line in back_alignment.file.read_text().splitlines()
    ]
    assert forward_links == turned_links
    modification_time = forward_alignment.file.stat().st_mtime_ns
    assert align_bitext(bitext, folder=tmp_path)[0].file.stat().st_mtime_ns == modification_time


GOLD = {
    "enfr.src-tgt": "the house ||| la maison\nhouse ||| maison\nthe cat ||| le chat\n",
    "enfr.gold": "1-1 2-2\n1-1\n1-1 2-2\n",
}


@pytest.fixture
def gold(tmp_path):
    for name, text in GOLD.items():
        (tmp_path / "word-alignment").mkdir(exist_ok=True)
        (tmp_path / "word-alignment" / name).write_text(text)
    return tmp_path


def test_a_collection_of_gold_alone_is_aligned_by_itself_and_says_so(gold):
    bitext = BitextToAlign(
        bitext="bitext:word-alignment", pairs=("en-fr",), aligner={"name": "fast-align"}, split="test"
    )
    (alignment,) = align_bitext(bitext, folder=gold / "runs", data=str(gold))
    assert (alignment.row["pairs"], alignment.row["gold_pairs"]) == (3, 3)
    assert "words were counted in the 3 pairs of the test split alone" in " ".join(alignment.warnings)


def test_gold_links_of_a_split_need_no_training_split_and_none_with_links(gold):
    bitext = BitextToAlign(
        bitext="bitext:word-alignment", pairs=("en-fr",), aligner={"name": "given"}, split="test"
    )
    (alignment,) = align_bitext(bitext, folder=gold / "runs", data=str(gold))
    assert (alignment.row["aer"], alignment.warnings) == (0, ())
    for side, text in (("en", "the house\n"), ("fr", "la maison\n")):
        (gold / "word-alignment" / f"train.en-fr.{side}").write_text(text)
        (gold / "word-alignment" / f"test.en-fr.{side}").write_text(text)
    (gold / "word-alignment" / "test.en-fr.align").write_text("0-0 1-1\n")
    (alignment,) = align_bitext(bitext, folder=gold / "others", data=str(gold))
    assert (alignment.row["pairs"], alignment.row["aer"]) == (1, 0)


def test_a_split_that_is_not_there_is_still_refused(gold):
    bitext = BitextToAlign(
        bitext="bitext:word-alignment", pairs=("en-fr",), aligner={"name": "fast-align"}, split="dev"
    )
    with pytest.raises(DataError, match="bitext 'en-fr'"):
        align_bitext(bitext, folder=gold / "runs", data=str(gold))


def test_links_of_another_bitext_are_no_links(tmp_path):
    bitext = BitextToAlign(bitext="bitext", pairs=("qaa-qab",), aligner={"name": "given"}, examples=3)
    (alignment,) = align_bitext(bitext, folder=tmp_path)
    pairs = Sources().examples("bitext", "qaa-qab", "train", examples=4)
    with pytest.raises(DataError, match=r"3.*links.*4"):
        list(read_pharaoh(disk_file(alignment.file), pairs))


def test_the_record_of_an_alignment_says_what_was_aligned(tmp_path):
    bitext = BitextToAlign(bitext="bitext", pairs=("qaa-qab",), aligner={"name": "given"}, examples=3)
    (alignment,) = align_bitext(bitext, folder=tmp_path)
    record = json.loads((alignment.file.parent / "record.json").read_text())
    assert record["kind"] == "align"
    assert record["run"]["aligner"] == {"kind": "given"}
    assert record["run"]["languages"] == "qaa-qab"
    assert record["id"] == alignment.file.parent.name
