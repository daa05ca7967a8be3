"""Measurements on raw text: planned for every encoder with a masked-LM head, refused before anything runs."""

import json
import shutil
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

import isogloss
from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.core.records import RECORD
from isogloss.data.result_files import read_tensors
from isogloss.data.sources import Sources
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.diagnostics.setting import Diagnostic
from isogloss.methods.plain import SourceOnly
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure, masked_lm_of, text_of
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import RunContext
from isogloss.store.store import Store
from says import says
from tiny import tiny

RECIPE = """
title = "Text"

[[measure]]
name = "counts-words"
corpus = "rawtext"
languages = ["qaa", "qab"]
examples = 4
"""


@dataclass(frozen=True)
class Counted:
    language: str
    words: int
    same: bool


@dataclass(frozen=True)
class CountsWords(Diagnostic):
    """Counts words, and keeps a tensor."""

    name: ClassVar[str] = "counts-words"
    subject: ClassVar[str] = "text"

    def measure(self, look):
        model, tokenizer = look.masked_lm(look.subjects[0])
        words = {
            language: sum(len(line.split()) for line in look.text(language)) for language in look.languages
        }
        kept_values = {"numbers": torch.arange(3), "halves": torch.ones(2, dtype=torch.bfloat16)}
        look.keep_tensors("kept", kept_values, {"languages": len(words)})
        scores = model.get_output_embeddings().weight.shape[0]
        return [
            Counted(language=language, words=count, same=scores == len(tokenizer))
            for language, count in words.items()
        ]


@pytest.fixture(autouse=True)
def _register_diagnostic(monkeypatch):
    monkeypatch.setitem(DIAGNOSTICS.places, "counts-words", f"{__name__}:CountsWords")


def test_every_encoder_is_looked_at_on_the_text_of_its_languages(plan, bert_folder):
    table = {
        "text": ["rawtext"],
        "languages": ["qab", "qac"],
        "architecture": {"layers": 1, "dim": 64, "heads": 1},
    }
    entries = ["shipped", {"pretrained": str(bert_folder)}, {"pretrain": table}]
    runs = [run for run in plan(encoder=entries) if isinstance(run, Measure)]
    assert [run.corpus for run in runs] == ["rawtext"] * 3
    assert {run.languages for run in runs} == {("qaa", "qab")}
    *_, own_plan = plan(
        RECIPE.replace('languages = ["qaa", "qab"]', "").replace('corpus = "rawtext"', ""),
        encoder={"pretrain": table},
    )
    assert (own_plan.corpus, own_plan.languages) == ("rawtext", ("qab", "qac"))


def test_one_language_is_enough(plan):
    (run,) = plan(RECIPE.replace(', "qab"', ""))
    assert run.languages == ("qaa",)


@pytest.mark.parametrize(
    ("old_name", "new_name", "error", "message"),
    [
        ('corpus = "rawtext"', "", ConfigError, r"measure\[0\]: counts-words"),
        (
            '"rawtext"',
            '"wikiann"',
            ConfigError,
            r"measure\[0\]: corpus: corpus 'wikiann'.*ner",
        ),
        ('"rawtext"', '"rawtxt"', ConfigError, "'rawtext'"),
        (
            '"qab"',
            '"fr"',
            DataError,
            r"measure\[0\]: corpus: fr:",
        ),
        (
            'languages = ["qaa", "qab"]',
            "",
            ConfigError,
            "counts-words.*0",
        ),
        ("examples = 4", "tasks = []", ConfigError, "tasks: .*counts-words"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_runs(plan, old_name, new_name, error, message):
    with pytest.raises(error, match=message):
        plan(RECIPE.replace(old_name, new_name))


def test_an_encoder_without_head_is_refused_before_anything_runs(plan, bert_folder, tmp_path):
    headless = shutil.copytree(bert_folder, tmp_path / "headless")
    config = json.loads((headless / "config.json").read_text())
    (headless / "config.json").write_text(json.dumps({**config, "architectures": ["BertModel"]}))
    with says(ModelError, "measure[0]:", "'headless'"):
        plan(encoder=str(headless))


def test_a_fine_tuned_model_has_no_masked_lm_head(tmp_path):
    context = RunContext(store=Store(tmp_path), sources=Sources())
    model = FineTune(
        encoder=Pretrained(source="shipped"), corpus="ud", task="upos", method=SourceOnly(), source=()
    )
    with pytest.raises(ModelError, match=r"source-only:.*masked-LM"):
        masked_lm_of(context, model)


def test_text_is_what_the_corpus_holds_and_each_call_begins_anew(plan, tmp_path):
    context = RunContext(store=Store(tmp_path), sources=Sources())
    (run,) = plan()
    lines = [example.text for example in Sources().examples("rawtext", "qaa", "dev", examples=4)]
    assert list(text_of(context, run, "qaa")) == list(text_of(context, run, "qaa")) == lines
    assert len(list(text_of(context, replace(run, examples=0), "qaa"))) > len(lines)


def test_text_on_disk_is_read_once_before_anything_runs(plan):
    assert [(row.language, row.examples) for row in plan()[0].splits_read] == [("qaa", 4), ("qab", 4)]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_measurement_leaves_rows_and_tensors(tmp_path):
    result = isogloss.run(tiny(tmp_path, RECIPE), out=tmp_path / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    (record,) = result.records
    assert [(row["language"], row["same"]) for row in record.rows] == [("qaa", True), ("qab", True)]
    assert all(row["words"] > 4 for row in record.rows)
    tensors, tensor = read_tensors(tmp_path / "runs" / record.id / "kept.safetensors")
    assert tensor == {"languages": 2}
    assert tensors["numbers"].tolist() == [0, 1, 2]
    assert tensors["halves"].tolist() == [1, 1]
    assert (tmp_path / "runs" / record.id / RECORD).exists()
