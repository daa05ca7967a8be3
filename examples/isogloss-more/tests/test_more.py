"""The parts keep the laws of isogloss.testing, and work together like parts of isogloss."""

import random
import tomllib
from pathlib import Path

import pytest
import torch
from isogloss_more.backwards import Backwards
from isogloss_more.claims import CODE_SWITCHING
from isogloss_more.code_switching import CodeSwitching, switch
from isogloss_more.confidence import ConfidencePenalty, mean_entropy
from isogloss_more.diagonal import Diagonal
from isogloss_more.entropy import Entropy
from isogloss_more.entropy_table import print_entropies
from isogloss_more.quality import WORD_QUALITY
from isogloss_more.quality_files import WMT_QUALITY
from isogloss_more.slashed import SLASHED_INPUT
from safetensors.torch import load_file
from transformers import ElectraConfig, ElectraModel

import isogloss
from isogloss.plugins import ConfigError, DataError, DiskFolder, Prediction
from isogloss.testing import (
    STUDY,
    check_aligner,
    check_claim,
    check_corpus,
    check_diagnostic,
    check_engine,
    check_method,
    check_task,
    check_translator,
)

ADJUST = {"name": "embedding-pull", "bitext": "bitext", "pairs": ["qaa-qab"], "examples": 50}
PRETRAIN = {
    "text": ["rawtext"],
    "languages": ["qaa", "qab"],
    "lines": {"qaa": 50, "qab": 50},
    "architecture": {"layers": 1, "dim": 16, "heads": 2, "feed_forward": 16, "vocabulary": 300},
    "method": {
        "name": "much-masking",
        **{"steps": 2, "batch_subwords": 64, "block": 32, "vocabulary_lines": 100},
    },
}


def study(*methods, **tables):
    """Return the study of the laws with further methods and tables."""
    grid = {**STUDY["grid"], "method": [{"name": "source-only"}, *methods]}
    return {**STUDY, "grid": grid, **tables}


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    """Return a data folder with rated translations."""
    for language in ("de", "ru"):
        folder = tmp_path / "data" / "wmt-quality" / f"en-{language}"
        folder.mkdir(parents=True)
        for split in ("train", "dev", "test"):
            for part, line in (("src", "one word"), ("mt", "ein wort"), ("tags", "OK BAD")):
                (folder / f"{split}.{part}").write_text(f"{line}\n" * 8)
    return tmp_path / "data"


def test_code_switching_keeps_the_laws(tmp_path):
    check_method(CodeSwitching(), tmp_path, neutral=CodeSwitching(share=0.0))


def test_a_corpus_of_tagged_text_is_described_by_its_suffix(tmp_path):
    (tmp_path / "sw.train.slashed").write_text("dunia/NOUN ni/AUX 1/2/NUM\n\nJua/NOUN\n")
    description = tmp_path / "tagged.toml"
    description.write_text('kind = "tagging"\nfiles = "{language}.{split}.slashed"\nlanguages = ["sw"]\n')
    first, second = isogloss.load_corpus(str(description), "sw", "train")
    assert (first.words, first.tags) == (("dunia", "ni", "1/2"), ("NOUN", "AUX", "NUM"))
    assert (second.words, second.tags) == (("Jua",), ("NOUN",))


def test_a_word_without_a_tag_is_an_error_with_its_line(tmp_path):
    (tmp_path / "sw.train.slashed").write_text("dunia/NOUN\nni\n")
    description = tmp_path / "untagged.toml"
    description.write_text('kind = "tagging"\nfiles = "{language}.{split}.slashed"\nlanguages = ["sw"]\n')
    with pytest.raises(DataError, match=r"sw\.train\.slashed:2"):
        isogloss.load_corpus(str(description), "sw", "train")


def test_predicted_tags_are_written_after_their_words(tmp_path):
    (tmp_path / "new.slashed").write_text("dunia ni\n\n")
    entries = list(SLASHED_INPUT.read(DiskFolder(tmp_path).find(["new.slashed"])[0], "sw"))
    answers = [Prediction(("NOUN", "AUX")), None]
    assert list(SLASHED_INPUT.write(zip(entries, answers, strict=True))) == ["dunia/NOUN ni/AUX", ""]


def test_words_in_the_lexicon_are_replaced():
    words = ("The", "cat", "sleeps")
    lexicon = {"the": "el", "cat": "gato"}
    assert switch(words, lexicon, 1.0, random.Random(0)) == ("el", "gato", "sleeps")
    assert switch(words, lexicon, 0.0, random.Random(0)) == words


def test_entropy_equals_a_sum_by_hand():
    probabilities = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
    by_hand = [-sum(p * torch.log(torch.tensor(p)) for p in row) for row in probabilities.tolist()]
    assert float(mean_entropy(probabilities.log())) == pytest.approx(float(sum(by_hand)) / 2)


@pytest.mark.parametrize(
    "entry",
    [
        {"name": "source-only", "auxiliary": {"name": "confidence-penalty", "weight": 0.0}},
        {"name": "code-switching", "share": 0.0},
    ],
)
def test_neutral_settings_score_like_source_only(tmp_path, entry):
    frame = isogloss.run(study(entry), out=tmp_path, report=False).frame("scores")
    scores = frame[frame["main"]].groupby("language")["score"].agg(list)
    assert all(plain_score == neutral_score for plain_score, neutral_score in scores)


def test_a_penalty_raises_the_entropy_of_predictions(tmp_path):
    penalised = {"name": "source-only", "auxiliary": {"name": "confidence-penalty", "weight": 5.0}}
    tables = {"measure": [{"name": "entropy", "examples": 8}]}
    frame = isogloss.run(study(penalised, **tables), out=tmp_path, report=False).frame("entropy")
    is_penalised = frame["auxiliary"] == "confidence-penalty"
    assert frame["entropy"][is_penalised].mean() > frame["entropy"][~is_penalised].mean()
    assert ConfidencePenalty(weight=0.0).prepare(None, None, None, 1) is None


def test_only_biases_change(tmp_path):
    entry = {"name": "source-only", "peft": {"kind": "biases-only"}}
    result = isogloss.run(study(entry), out=tmp_path, report=False)
    written = [set(load_file(path)) for path in result.out.glob("*/model/*.safetensors")]
    smaller = min(written, key=len)
    assert {name for name in smaller if not name.endswith("bias")} == {"classifier.weight"}
    assert len(smaller) < len(max(written, key=len))


def is_model(folder: Path) -> bool:
    return '"fine-tune"' in (folder / "record.json").read_text()


def test_entropy_is_measured_printed_and_shown(tmp_path, capsys):
    rows = check_diagnostic(Entropy(), tmp_path)
    assert {row["language"] for row in rows} == {"qaa", "qab"}
    assert print_entropies([str(tmp_path / "first")]) == 0
    assert "qab" in capsys.readouterr().out
    assert print_entropies([]) == 2


def test_word_quality_keeps_the_laws(rated, tmp_path):
    check_corpus(WMT_QUALITY, rated, tmp_path / "copy", languages=["de", "ru"], splits=["train", "dev"])
    examples = list(WMT_QUALITY.read(DiskFolder(rated), "de", "train"))
    check_task(WORD_QUALITY, examples)


def test_a_rating_too_few_is_an_error_with_its_line(rated):
    (rated / "wmt-quality" / "en-de" / "train.tags").write_text("OK BAD\nOK\n" + "OK BAD\n" * 6)
    with pytest.raises(DataError, match=r"train\.tags:2: 1 ratings of 2 words"):
        list(WMT_QUALITY.read(DiskFolder(rated), "de", "train"))


def test_a_model_of_word_quality_is_trained_and_evaluated(rated, tmp_path):
    changes = {"corpus": "wmt-quality", "task": "word-quality", "source": "de", "targets": ["ru"]}
    recipe = {**STUDY, "grid": {**STUDY["grid"], **changes}, "measure": [{"name": "scores"}]}
    frame = isogloss.run(recipe, out=tmp_path / "runs", data=rated, report=False).frame("scores")
    assert set(frame["language"]) == {"de", "ru"}


def test_the_aligner_and_the_translator_keep_the_laws(tmp_path):
    check_aligner(Diagonal())
    check_translator(Backwards(), tmp_path)


def test_the_engine_makes_the_records_of_one_process(tmp_path):
    check_engine("here", tmp_path)


def test_a_store_in_the_home_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    first_result = isogloss.run(STUDY, out="home://study", report=False)
    assert (tmp_path / "study" / "plan.json").is_file()
    second = isogloss.run(STUDY, out="home://study", report=False)
    assert not second.outcome.made
    assert second.ids == first_result.ids
    assert isogloss.read("home://study").frame("scores").equals(first_result.frame("scores"))


def test_an_adjustment_and_a_pretraining_are_made(tmp_path):
    adjusted = isogloss.run(study(adjust=[ADJUST]), out=tmp_path / "adjusted", report=False)
    assert not adjusted.outcome.failed
    pretrained = isogloss.run(
        study(encoder={"pretrain": PRETRAIN}), out=tmp_path / "pretrained", report=False
    )
    assert not pretrained.outcome.failed


def test_an_electra_encoder_is_fine_tuned(tmp_path):
    folder = tmp_path / "electra"
    tokenizer = isogloss.load_encoder("shipped")[1]
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = ElectraConfig(
        vocab_size=len(tokenizer), embedding_size=16, pad_token_id=tokenizer.pad_token_id, **sizes
    )
    ElectraModel(config).save_pretrained(folder)
    result = isogloss.run({**STUDY, "encoder": str(folder)}, out=tmp_path / "runs", report=False)
    assert not result.outcome.failed


def test_parts_work_together_with_parts_of_isogloss(tmp_path):
    recipe = study(
        {"name": "code-switching", "auxiliary": {"name": "confidence-penalty"}, "peft": {"kind": "lora"}},
        {"name": "code-switching", "peft": {"kind": "biases-only"}, "label": "biases"},
        {"name": "translate-train"},
        align={"name": "diagonal"},
        translate={"name": "backwards"},
        adjust=[ADJUST],
        measure=[
            {"name": "scores", "examples": 8},
            {"name": "entropy", "examples": 8},
            {
                "name": "interpolation",
                "between": ["source-only", "biases"],
                "alphas": [0.0, 1.0],
                "examples": 8,
            },
        ],
    )
    result = isogloss.run(recipe, out=tmp_path / "runs", engine="here")
    assert not result.outcome.failed
    assert not [text for text in result.report.warnings if "plug-in" in text]
    page = result.report.html.read_text()
    assert "Entropy of predictions" in page
    check_claim(CODE_SWITCHING, tmp_path / "runs")
    resumed = isogloss.run(recipe, out=tmp_path / "runs", engine="serial")
    assert not resumed.outcome.made
    folder = next(
        folder for folder in result.out.iterdir() if (folder / "model").is_dir() and is_model(folder)
    )
    model = isogloss.load_model(folder)
    assert model.predict(["one two"])


def test_wrong_uses_name_the_part_and_what_to_do(tmp_path):
    classes = {**STUDY["grid"], "corpus": "xnli", "task": "nli", "method": [{"name": "code-switching"}]}
    with pytest.raises(ConfigError, match="code-switching: task nli labels no words"):
        isogloss.run({**STUDY, "grid": classes}, out=tmp_path, report=False)
    with pytest.raises(ConfigError, match="share"):
        isogloss.run(study({"name": "code-switching", "share": 1.5}), out=tmp_path, report=False)


def test_every_part_has_an_entry_point_and_a_row_in_the_readme():
    root = Path(__file__).parents[1]
    groups = tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"]
    readme = (root / "README.md").read_text()
    assert all(f"`{name}`" in readme for group in groups.values() for name in group)
