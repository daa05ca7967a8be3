"""Alignments, adjusted encoders and their trainings and measurements, computed from a recipe."""

import json
import tomllib
from pathlib import Path

import pytest

import isogloss
from isogloss.aligners.fast_align import FastAlign
from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import DataError
from isogloss.data.files import disk_file
from isogloss.data.formats.word_links import read_pharaoh
from isogloss.data.sources import Sources
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.engine.single import BitextToAlign, align_bitext
from isogloss.methods.adjustments import CrossLingualAdjustment
from isogloss.runs.adjust import Adjust
from isogloss.runs.align import LINKS, Align
from isogloss.runs.execute import make
from isogloss.runs.run import RunContext
from isogloss.training.bitext import PairEncoding, in_subwords, read_bitext
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
        one for one in select_kind("measure", finished_study.records) if one.title.startswith("word-distance")
    ]
    assert len(words) == 2 + 3  # two encoders, and those within three models
    pairs = Sources().examples("bitext", "qaa-qad", "dev", examples=20)
    links = sum(len(pair.links) for pair in pairs)
    assert {row["related_pairs"] for one in words for row in one.rows if "auc" in row} == {links}


@pytest.mark.slow
def test_links_are_read_back_and_gold_is_scored(finished_study):
    (record,) = (one for one in select_kind("align", finished_study.records) if one.rows[0]["pairs"] == 24)
    assert record.rows[0]["aer"] == 0  # The links that were given are the gold ones.
    pairs = Sources().examples("bitext", "qaa-qad", "train", examples=24)
    found = list(read_pharaoh(disk_file(finished_study.out / record.id / LINKS), pairs))
    assert [one.links for one in found] == [tuple(sorted(pair.links)) for pair in pairs]


@pytest.mark.slow
def test_an_adjusted_encoder_is_an_ordinary_folder_that_isogloss_uses(finished_study):
    from transformers import AutoModel

    (record,) = select_kind("adjust", finished_study.records)
    model = AutoModel.from_pretrained(finished_study.out / record.id / "model")
    shipped = AutoModel.from_pretrained(Path(isogloss.__file__).parent / "shipped")
    moved = [
        name for name, one in model.named_parameters() if not one.equal(shipped.get_parameter(name).data)
    ]
    assert any("layer.3" in name for name in moved)


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
    found = plan_changed(adjust=tables, align={}, grid__method=[{"name": "source-only"}], measure=[])
    context = RunContext(store=found.store, sources=found.sources)
    monkeypatch.setattr(CrossLingualAdjustment, "train", lambda _, setting: settings.append(setting))
    settings, (aligned,) = [], select_kind(Align, found.runs)
    make(context, aligned)
    for run in select_kind(Adjust, found.runs):
        with pytest.raises(AttributeError):  # No encoder was trained.
            make(context, run)
    whole = aligned.read_links(context)
    samples = [setting.bitext["qaa-qad"] for setting in settings]
    assert [len(sample) for sample in samples] == [24, 24, 12]
    assert all([one for one in whole if one in sample] == sample for sample in samples)
    assert samples[0] != samples[1] and set(samples[2]) < set(samples[0]) != set(whole[:24])


@pytest.mark.slow
def test_subwords_are_aligned_and_read_back_with_the_words_they_are_parts_of(plan_changed):
    changes = {"align": {}, "measure": [], "grid__method": [{"name": "source-only"}]}
    how = {"adjust__0__bitext": "bitext[dev]", "adjust__0__word": "aligned-subwords"}
    found = plan_changed(**changes, **how)
    context, (run,) = RunContext(store=found.store, sources=found.sources), select_kind(Align, found.runs)
    record = make(context, run)
    pairs = found.sources.examples("bitext", "qaa-qad", "dev", examples=24)
    tokenizer = load_tokenizer(run.tokenizer.weights(context))
    cut = in_subwords(pairs, tokenizer)
    expected = FastAlign().align(AlignSetting(pairs=cut))
    read = run.read_links(context)
    assert [one.links for one in read] == [one.links for one in expected]
    assert [(one.first, one.words) for one in read] == [(one.first, one.words) for one in pairs]
    assert record.rows[0]["gold_pairs"] == 0  # Gold links are of words.
    encoded = read_bitext({"qaa-qad": read}, tokenizer, PairEncoding(word="aligned-subwords"))
    assert encoded.rows[0]["pulled"] == sum(len(one.links) + 2 for one in read)


@pytest.mark.slow
def test_bitext_is_aligned_by_itself_once(tmp_path):
    wanted = BitextToAlign(
        bitext="bitext", pairs=("qaa-qab", "qab-qaa"), aligner={"name": "given"}, split="dev", examples=5
    )
    told = []
    first, back = align_bitext(wanted, folder=tmp_path, on_progress=told.append)
    assert (first.row["pairs"], first.row["aer"]) == (5, 0)
    there = [sorted(line.split()) for line in first.file.read_text().splitlines()]
    turned = [
        sorted("-".join(reversed(link.split("-"))) for link in line.split())
        for line in back.file.read_text().splitlines()
    ]
    assert there == turned
    before = first.file.stat().st_mtime_ns
    assert align_bitext(wanted, folder=tmp_path)[0].file.stat().st_mtime_ns == before


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
    wanted = BitextToAlign(
        bitext="bitext:word-alignment", pairs=("en-fr",), aligner={"name": "fast-align"}, split="test"
    )
    (made,) = align_bitext(wanted, folder=gold / "runs", data=str(gold))
    assert (made.row["pairs"], made.row["gold_pairs"]) == (3, 3)
    assert "words were counted in the 3 pairs of the test split alone" in " ".join(made.warnings)


def test_gold_links_of_a_split_need_no_training_split_and_none_with_links(gold):
    wanted = BitextToAlign(
        bitext="bitext:word-alignment", pairs=("en-fr",), aligner={"name": "given"}, split="test"
    )
    (made,) = align_bitext(wanted, folder=gold / "runs", data=str(gold))
    assert (made.row["aer"], made.warnings) == (0, ())
    for side, text in (("en", "the house\n"), ("fr", "la maison\n")):
        (gold / "word-alignment" / f"train.en-fr.{side}").write_text(text)
        (gold / "word-alignment" / f"test.en-fr.{side}").write_text(text)
    (gold / "word-alignment" / "test.en-fr.align").write_text("0-0 1-1\n")
    (made,) = align_bitext(wanted, folder=gold / "others", data=str(gold))
    assert (made.row["pairs"], made.row["aer"]) == (1, 0)


def test_a_split_that_is_not_there_is_still_refused(gold):
    wanted = BitextToAlign(
        bitext="bitext:word-alignment", pairs=("en-fr",), aligner={"name": "fast-align"}, split="dev"
    )
    with pytest.raises(DataError, match="bitext 'en-fr'"):
        align_bitext(wanted, folder=gold / "runs", data=str(gold))


def test_links_of_another_bitext_are_no_links(tmp_path):
    wanted = BitextToAlign(bitext="bitext", pairs=("qaa-qab",), aligner={"name": "given"}, examples=3)
    (made,) = align_bitext(wanted, folder=tmp_path)
    pairs = Sources().examples("bitext", "qaa-qab", "train", examples=4)
    with pytest.raises(DataError, match=r"3.*links.*4"):
        list(read_pharaoh(disk_file(made.file), pairs))


def test_the_record_of_an_alignment_says_what_was_aligned(tmp_path):
    wanted = BitextToAlign(bitext="bitext", pairs=("qaa-qab",), aligner={"name": "given"}, examples=3)
    (made,) = align_bitext(wanted, folder=tmp_path)
    record = json.loads((made.file.parent / "record.json").read_text())
    assert record["kind"] == "align"
    assert record["run"]["aligner"] == {"kind": "given"}
    assert record["run"]["languages"] == "qaa-qab"
    assert record["id"] == made.file.parent.name
