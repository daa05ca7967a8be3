"""Laws of all translators that use a model: a line for a line, whatever the batch, the order or a restart."""

import json
import warnings
from pathlib import Path

import pytest

import tiny_models
from isogloss.core.errors import ConfigError, ModelError
from isogloss.features.translation import pieces as translating
from isogloss.translators import TRANSLATORS
from isogloss.translators.setting import TranslateSetting

TEXTS = [
    "the cat sat on the mat",
    "what happened",
    "",
    "a dog ran over the hills. Anna saw it in Rome! Cat sat",
    "  \t ",
    "yesterday",
    "the cat sat on the mat",
]
LONG = " ".join(["the cat sat on the mat and it rained there, slowly"] * 4)

pytestmark = pytest.mark.parametrize("name", ["seq2seq", "ctranslate2"])


@pytest.fixture(autouse=True)
def _require_translator(name: str) -> None:
    if name == "ctranslate2":
        pytest.importorskip("ctranslate2")


def test_every_text_gives_one_line_and_an_empty_one_an_empty_one(translate, name) -> None:
    translation = translate(TEXTS, name)
    assert [bool(item.text) for item in translation] == [bool(text.strip()) for text in TEXTS]
    assert not any("\n" in item.text or "\r" in item.text for item in translation)
    assert translation[0] == translation[6]
    assert len({item.text for item in translation}) > 2


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("beams", [1, 3])
def test_a_translation_does_not_depend_on_the_texts_beside_it(translate, name, beams) -> None:
    joint_translations = translate([*TEXTS, LONG], name, beams=beams)
    single_translation = translate([*TEXTS, LONG], name, beams=beams, batch_subwords=1)
    backwards = translate([*TEXTS, LONG][::-1], name, beams=beams, batch_subwords=64)
    assert joint_translations == single_translation == backwards[::-1]


def test_a_precision_that_only_torch_knows_here_translates_too(translate, name) -> None:
    """Some processors lack CTranslate2's 16-bit numbers."""
    assert len(translate(TEXTS, name, precision="bfloat16")) == len(TEXTS)


def test_a_text_of_several_lines_is_translated_into_one(translate, name) -> None:
    assert translate(["what\nhappened\r\n there"], name) == translate(["what happened there"], name)


def test_sentences_are_translated_one_by_one(translate, name) -> None:
    whole_translation, *parts = translate(
        [TEXTS[3], "a dog ran over the hills.", "Anna saw it in Rome!", "Cat sat"], name
    )
    assert whole_translation.text == " ".join(part.text for part in parts)
    assert whole_translation.cuts == 0


def test_an_overlong_text_is_cut_and_counted(translate, name) -> None:
    translation = translate([LONG, "what happened"], name)
    assert [item.cuts > 0 for item in translation] == [True, False]
    assert translate(["cat" * 100], name)[0].cuts > 0


@pytest.mark.slow
def test_a_restart_gives_what_an_uninterrupted_translation_gives(
    translate, name, tmp_path, monkeypatch, marian_folder
) -> None:
    monkeypatch.setattr(translating, "TEXTS_PER_CHUNK", 2)
    whole_translation = translate(TEXTS, name, folder=tmp_path / "whole")
    cut_short = tmp_path / "cut"
    setting = TranslateSetting(
        source="en", target="es", model=str(marian_folder), folder=cut_short, precision="float32"
    )
    begun = TRANSLATORS[name]().translate(TEXTS, setting)
    assert [next(begun) for _ in range(3)] == whole_translation[:3]
    begun.close()
    kept_times = {path: path.stat().st_mtime_ns for path in cut_short.glob("chunk-*")}
    assert len(kept_times) == 2
    assert translate(TEXTS, name, folder=cut_short) == whole_translation
    assert {path: path.stat().st_mtime_ns for path in kept_times} == kept_times
    names = {path.name: path.read_bytes() for path in cut_short.glob("chunk-*")}
    assert names == {path.name: path.read_bytes() for path in (tmp_path / "whole").glob("chunk-*")}


def test_the_language_asked_for_decides(translate, name, tmp_path) -> None:
    marian_models = tiny_models.marian(tmp_path / "model", languages=("es", "fr"))
    first_translation, second = (
        translate(TEXTS, name, model=marian_models, target=target) for target in ("es", "fr")
    )
    assert first_translation != second
    with pytest.raises(ModelError, match=r"'de'.*>>de<<, >>deu<<"):
        translate(TEXTS, name, model=marian_models, target="de")


@pytest.mark.parametrize("codes", [("eng_Latn", "spa_Latn"), ("__en__", "__es__")])
def test_models_told_on_both_sides_translate(translate, name, codes, tmp_path) -> None:
    model = tiny_models.m2m(tmp_path / "model", codes)
    translation = translate(TEXTS, name, model=model)
    assert [bool(item.text) for item in translation] == [bool(text.strip()) for text in TEXTS]
    assert not any(language in item.text for item in translation for language in codes)
    theirs = translate(TEXTS, "seq2seq", model=model)
    assert sum(left == right for left, right in zip(translation, theirs, strict=True)) >= len(TEXTS) - 1


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_models_with_marians_own_tokenizer_translate(translate, name, tmp_path) -> None:
    pytest.importorskip("sentencepiece")
    model = tiny_models.slow_marian(tmp_path / "made")
    translation = translate(TEXTS, name, model=model)
    assert [bool(item.text) for item in translation] == [bool(text.strip()) for text in TEXTS]
    theirs = translate(TEXTS, "seq2seq", model=model)
    assert sum(left == right for left, right in zip(translation, theirs, strict=True)) >= len(TEXTS) - 1


def test_what_transformers_remarks_on_does_not_reach_the_terminal(translate, name, tmp_path, capfd) -> None:
    pytest.importorskip("sentencepiece")
    model = tiny_models.slow_marian(tmp_path / "made")
    file = model / "generation_config.json"  # As in Opus-MT: its length and ours differ.
    file.write_text(json.dumps({**json.loads(file.read_text()), "max_length": 512, "num_beams": 4}))
    capfd.readouterr()
    with warnings.catch_warnings(record=True) as error:
        warnings.simplefilter("always")
        translate(TEXTS, name, model=model)
    assert [str(result.message) for result in error] == []
    assert capfd.readouterr() == ("", "")


def test_counts_that_cannot_be_are_refused(name) -> None:
    with pytest.raises(ConfigError, match=f"{name}: .*0.*1"):
        TRANSLATORS[name](beams=0)
    with pytest.raises(ConfigError, match=r"longest.*3.*8"):
        TRANSLATORS[name](longest=3)


def test_a_folder_without_weights_or_tokenizer_is_refused(translate, name, marian_folder, tmp_path) -> None:
    import shutil

    model = Path(shutil.copytree(marian_folder, tmp_path / "model"))
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    with pytest.raises(ModelError, match="AutoModelForSeq2SeqLM"):
        translate(["what"], name, model=model)
    (model / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="no tokenizer"):
        translate(["what"], name, model=model)
