"""Laws of every diagnostic: declared rows about its subjects, the same twice, and untouched models."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from peft import LoraConfig

from in_translation import sentences
from isogloss.core.rows import ROWS, as_row
from isogloss.core.rows.models import ScoreRow
from isogloss.core.run_parts import Optimization, Updates
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.encoders.mixup import Mixup
from isogloss.features.language_fusion.method import save_fusion
from isogloss.features.peft.peft_adapters import add_adapters, module_names
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation, pair_with_translations
from measuring import WORDS, equal, load, measure_setting, subject, translations, weights

OPTIONS = {
    "interpolation": {"alphas": (0.0, 0.5)},
    "plane": {"alphas": (0.0, 1.0)},
    "mixup-sweep": {"ratios": (0.0, 1.0)},
    "gradient-conflict": {"batch": 2, "draws": 1},
    "task-gradient-conflict": {"batch": 4, "draws": 1},
    "language-gates": {"draws": 1, "steps": 1, "batch_subwords": 64, "block": 16},
    "word-distance": {"dimensions": (5,)},
}
"""Settings that make a measurement quick, or give it all kinds of rows."""

SUBJECTS = {
    "model",
    "cell",
    "scores",
    "seeds",
    "encoder",
    "states",
    "parallel",
    "comparable",
    "words",
    "examples",
    "text",
}
LINES = [" ".join(WORDS[index : index + 4]) for index in range(16)]


def setting_of(diagnostic, folder):
    """Return a setting that every diagnostic can read, and the models in it."""
    task = TASKS["upos"]
    optimization = Optimization(limit=32, overlap=8, updates=Updates(precision="float32"))
    models = [task.head(folder, seed=seed) for seed in range(3)]
    masked_lm, tokenizer = load(folder)
    count = len(diagnostic.between) if diagnostic.subject == "cell" else 1

    def read(language):
        return evaluation(task, sentences(language, 12), tokenizer, optimization, language=language)

    mixup = Mixup(layer=1, ratio=0.5, learned=False)

    def pair_language(language):
        return pair_with_translations(
            read(language), sentences("en", 12), tokenizer, optimization, mixup=mixup
        )

    pairs = translations(LINES, LINES[::-1], links=((0, 0), (1, 1)))
    scores = {"model": "m", "split": "dev", "metric": "accuracy", "main": True, "examples": 9}
    rows = [as_row(ScoreRow(**scores, language=language, score=0.5)) for language in ("en", "de")]
    setting = replace(
        measure_setting(models[:count], read, bitext=lambda _: pairs),
        encoder=lambda _: (masked_lm, tokenizer),
        masked_lm=lambda _: (masked_lm, tokenizer),
        text=lambda _: iter(LINES),
        examples=lambda language: sentences(language, 12),
        tuning_evaluation=read,
        translated_evaluation=lambda _: read("en"),
        paired=pair_language,
        mixup=lambda _: mixup,
        precision="float32",
    )
    if diagnostic.subject in ("scores", "seeds"):
        setting = replace(setting, subjects=(subject(rows=rows),))
    return setting, [*models, masked_lm]


def with_fusion(setting, folder, work):
    """Return a setting whose model has LoRA that fuses languages."""
    model = TASKS["upos"].head(folder, seed=0)
    config = LoraConfig(r=2, target_modules=module_names(model, ("query", "value")), init_lora_weights=False)
    add_adapters(model, config, seed=0)
    save_fusion("add", work)
    (subject_without_files,) = setting.subjects
    subjects = (replace(subject_without_files, folder=work),)
    return replace(setting, subjects=subjects, load_factors=lambda _: model)


@pytest.fixture(scope="module", params=DIAGNOSTICS)
def measurement(request, bert_folder, tmp_path_factory):
    diagnostic = DIAGNOSTICS[request.param](**OPTIONS.get(request.param, {}))
    setting, models = setting_of(diagnostic, bert_folder)
    if diagnostic.name == "language-fusion":
        setting = with_fusion(setting, bert_folder, tmp_path_factory.mktemp("fusion"))
    weights_before = [weights(model) for model in models]
    rows = [diagnostic.measure(setting) for _ in range(2)]
    return SimpleNamespace(
        diagnostic=diagnostic,
        setting=setting,
        models=models,
        before=weights_before,
        rows=rows[0],
        again=rows[1],
    )


def test_rows_are_of_the_declared_kinds_and_about_the_subjects(measurement):
    assert {type(row) for row in measurement.rows} == set(ROWS[measurement.diagnostic.name])
    ids = {example.id for example in measurement.setting.subjects} | {"m"}
    names = [as_row(row) for row in measurement.rows]
    rows = {row[name] for row in names for name in ("model", "models", "origin", "start") if name in row}
    assert rows
    assert rows <= ids


def test_measuring_again_gives_equal_rows(measurement):
    assert [str(value) for value in measurement.rows] == [
        str(value) for value in measurement.again
    ]  # nan is nan


def test_models_are_left_as_they_were(measurement):
    assert len(measurement.models) == 4
    for model, state_before in zip(measurement.models, measurement.before, strict=True):
        assert equal(weights(model), state_before)
        assert all(weight.grad is None for weight in model.parameters())


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_the_table_names_its_diagnostics(name):
    kind = DIAGNOSTICS[name]
    assert kind.name == name
    assert kind.subject in SUBJECTS
    assert kind.version >= 1
