"""Models that a plain Trainer made are scored, compared, put on a path, and trained further in a recipe."""

from pathlib import Path

import pytest
import torch

import isogloss
from isogloss.core.errors import ConfigError, ModelError
from isogloss.data.sources import Sources
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.planning.plan import plan_recipe
from tiny import select_kind

LABELS = ("entailment", "neutral", "contradiction")
RECIPE = """
title = "Somebody else's models"
encoder = "shipped"

[grid]
corpus = "xnli"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 16
dev_examples = 8
optimization = { epochs = 1, batch_size = 8, checkpoint_every = 0, precision = "float32" }

[[grid.method]]
name = "given"
label = "first"
model = "FOLDER/first-{seed}"

[[grid.method]]
name = "given"
label = "second"
model = "FOLDER/second"

[[grid.method]]
name = "few-shot"
start = "first"
shots = 4

[[measure]]
name = "scores"
examples = 40

[[measure]]
name = "cka"
corpus = "xnli"
examples = 20
methods = ["first"]

[[measure]]
name = "interpolation"
between = ["first", "second"]
alphas = [0.0, 0.5, 1.0]
examples = 40
"""


def trained_elsewhere(encoder: Path, folder: Path, seed: int, labels: tuple[str, ...]) -> None:
    """Fine-tune on pairs as a script with transformers' Trainer does."""
    from transformers import AutoModelForSequenceClassification, Trainer, TrainingArguments, set_seed

    set_seed(seed)
    names = {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}
    model = AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=3, **names)
    tokenizer = load_tokenizer(str(encoder))
    pairs = Sources().examples("xnli", "qaa", "train", examples=64)
    rows = [
        {
            **tokenizer(pair.first, pair.second, truncation=True, max_length=64),
            "labels": [name.casefold() for name in labels].index(pair.label),
        }
        for pair in pairs
    ]
    arguments = TrainingArguments(
        output_dir=str(folder / "work"),
        num_train_epochs=2,
        learning_rate=3e-3,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        seed=seed,
    )
    Trainer(model=model, args=arguments, train_dataset=rows, processing_class=tokenizer).train()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def recipe(bert_folder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("given")
    trained_elsewhere(bert_folder, folder / "first-0", 0, LABELS)
    trained_elsewhere(bert_folder, folder / "second", 1, tuple(label.upper() for label in reversed(LABELS)))
    path = folder / "given.toml"
    path.write_text(RECIPE.replace("FOLDER", str(folder)), encoding="utf-8")
    return path


def accuracy_of(folder: Path, language: str) -> float:
    """Score a model with nothing but transformers."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    pairs = Sources().examples("xnli", language, "dev", examples=40)
    encoding = tokenizer(
        [pair.first for pair in pairs], [pair.second for pair in pairs], padding=True, return_tensors="pt"
    )
    with torch.inference_mode():
        best_index = model(**encoding).logits.argmax(-1).tolist()
    names = [model.config.id2label[index].casefold() for index in best_index]
    return sum(name == pair.label for name, pair in zip(names, pairs, strict=True)) / len(pairs)


@pytest.mark.slow
def test_models_of_a_trainer_have_their_scores_and_a_path(recipe):
    result = isogloss.run(recipe, out=recipe.parent / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    first_run, second, few_runs = select_kind("fine-tune", result.records)
    assert (first_run.title, few_runs.title) == (
        "given (model=first-0): xnli nli qaa, seed 0",
        "few-shot (shots=4) after given (model=first-0): xnli nli qaa+qab, seed 0",
    )
    expected = {
        (record.id, language): accuracy_of(recipe.parent / folder, language)
        for record, folder in ((first_run, "first-0"), (second, "second"))
        for language in ("qaa", "qab")
    }
    assert len(set(expected.values())) > 1
    measured_runs = select_kind("measure", result.records)
    scores = {
        (measured_run.needs[0], row["language"]): row["score"]
        for measured_run in measured_runs
        if measured_run.title.startswith("scores: given")
        for row in measured_run.rows
        if row["main"]
    }
    assert scores == pytest.approx(expected)
    (path,) = (
        measured_run for measured_run in measured_runs if measured_run.title.startswith("interpolation")
    )
    ends = {
        (row["start"] if row["alpha"] == 0 else row["end"], row["language"]): row["score"]
        for row in path.rows
        if row["alpha"] != 0.5
    }
    assert ends == pytest.approx(expected)
    assert any(measured_run.title.startswith("cka: given") for measured_run in measured_runs)


@pytest.fixture
def headless(bert_folder, tmp_path, monkeypatch) -> str:
    """The recipe with folders of encoders that lack a head."""
    for name in ("first-0", "first-1", "second"):
        (tmp_path / name).symlink_to(bert_folder)
    monkeypatch.chdir(tmp_path)
    return RECIPE.replace("FOLDER", ".")


@pytest.mark.nightly
@pytest.mark.slow
def test_a_model_without_the_head_fails_and_says_why(headless, tmp_path):
    text = headless.partition('[[grid.method]]\nname = "few-shot"')[0]
    (tmp_path / "r.toml").write_text(text + '[[measure]]\nname = "scores"\nexamples = 8\n')
    failed_fields = isogloss.run(
        tmp_path / "r.toml", out=tmp_path / "runs", jobs=1, report=False
    ).outcome.failed
    own_reasons = [reason for reason in failed_fields.values() if not reason.startswith("needs run")]
    assert (len(failed_fields), len(own_reasons)) == (2, 1)  # One folder under two names is one model.
    assert "task nli " in own_reasons[0]
    assert "entailment, neutral, contradiction" in own_reasons[0]


@pytest.mark.parametrize(
    ("old_name", "new_name", "error", "message"),
    [
        ("first-{seed}", "firsd-{seed}", ModelError, r"'first-\d'\?"),
        ("seeds = [0]", "seeds = [0, 1]", ConfigError, "'./second'.*2"),
        ('model = "./second"', "", ConfigError, "takes"),
        ('model = "./second"', 'model = "x"\nstart = "first"', ConfigError, "nothing"),
    ],
)
def test_what_cannot_be_given_is_refused_in_the_plan(headless, tmp_path, old_name, new_name, error, message):
    (tmp_path / "r.toml").write_text(headless.replace(old_name, new_name))
    with pytest.raises(error, match=message):
        plan_recipe(str(tmp_path / "r.toml"))
