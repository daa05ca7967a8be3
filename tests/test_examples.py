"""The examples run, are short, and print what they promise."""

import importlib.util
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_an_example_is_short_and_says_how_to_run_it(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 50
    assert f"python examples/{path.name}" in text


@pytest.mark.nightly
@pytest.mark.slow
def test_zero_shot_prints_scores_and_the_gap(tmp_path, capsys):
    load("zero_shot").main(tmp_path, examples=32)
    scores = dict(
        re.findall(r"^(q\w\w): accuracy (\d\.\d+)$", output := capsys.readouterr().out, re.MULTILINE)
    )
    gap = float(re.search(r"transfer gap: (-?\d\.\d+)", output)[1])
    targets = [float(scores[language]) for language in ("qab", "qad", "qag")]
    assert gap == pytest.approx(float(scores["qaa"]) - sum(targets) / 3, abs=2e-3)
    assert len(output.splitlines()[-1].split()) == 4


@pytest.mark.nightly
@pytest.mark.slow
def test_path_begins_and_ends_at_the_models(tmp_path, capsys):
    import isogloss
    from isogloss.data.corpora.catalogue import CORPORA
    from isogloss.features.built_in_languages import BuiltInLanguages

    load("path").main(tmp_path, examples=32)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in lines] == ["0.00", "0.25", "0.50", "0.75", "1.00"]
    dev = list(CORPORA["ud"].read(BuiltInLanguages(), "qaa", "dev"))[:200]
    scores = {isogloss.load_model(path.parent).score(dev) for path in tmp_path.glob("*/model")}
    assert {float(line.split()[4]) for line in (lines[0], lines[-1])} == {round(score, 3) for score in scores}


def test_languages_shows_every_language_and_its_translation(capsys):
    from isogloss.features.built_in_languages import LANGUAGES

    load("languages").main()
    cards, tree, translations = capsys.readouterr().out.split("\n\n")
    assert len(cards.splitlines()) == len(translations.splitlines()) == len(LANGUAGES)
    assert tree.count("(root)") == 1
    assert [line.split()[0] for line in translations.splitlines()] == list(LANGUAGES)


@pytest.mark.nightly
@pytest.mark.slow
def test_x_mixup_in_trainer_trains_the_ratio(tmp_path):
    trainer = load("mixup_trainer").main(tmp_path, examples=16)
    assert trainer.state.global_step == 6
    assert all(weight.item() for weight in trainer.model.mixup.parameters())


@pytest.mark.nightly
@pytest.mark.slow
def test_continual_training_prints_how_far_words_are_apart(capsys):
    load("continual_loop").main(examples=64)
    layers = re.findall(r"^(\d) +(0\.\d+)$", capsys.readouterr().out, re.MULTILINE)
    assert [layer for layer, _ in layers] == ["0", "1", "2", "3", "4"]
    assert all(0.5 < float(auc) < 1 for _, auc in layers)


@pytest.mark.nightly
@pytest.mark.slow
def test_meta_learned_adapters_print_a_loss_of_each_language(capsys):
    load("meta_loop").main(steps=4)
    losses = re.findall(r"^(q\w\w): loss (\d\.\d+)$", capsys.readouterr().out, re.MULTILINE)
    assert [language for language, _ in losses] == ["qaa", "qad"]
