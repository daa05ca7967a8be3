"""An exported folder predicts the same without isogloss, is whole or not there, and replaces nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError, RunError, StorageError
from isogloss.using import exporting, load_model
from isogloss.using.exporting import export

WORDS = ["Anna", "happen", "seeing-things", "unhappenedly", "x", "Anna", "slow,", "casually", "."]


@pytest.fixture
def families(bert_folder, xlm_roberta_folder):
    return {"bert": bert_folder, "xlm-roberta": xlm_roberta_folder}


def first_pieces(pieces, words):
    """Return the piece each word begins with, as the words stand with spaces between them."""
    found, place = [], 0
    for word in words:
        found.append(next(one for one in pieces if one["start"] == place))
        place += len(word) + 1
    return found


@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
@pytest.mark.parametrize("task", ["upos", "ner"])
def test_a_pipeline_tags_words_as_isogloss_does(make_model, families, tmp_path, family, task):
    from transformers import pipeline

    model = make_model(task, families[family], limit=96)
    tag = pipeline("token-classification", model=str(export(model, tmp_path / "out")), ignore_labels=[])
    for words in (WORDS, WORDS[::-1], WORDS[3:]):
        pieces = first_pieces(tag([words], is_split_into_words=True)[0], words)
        (one,) = model.predictions([model.kind.example(words, "0", "")], scores=True)
        if task == "upos":  # Entities are repaired besides, which no pipeline does.
            assert [piece["entity"] for piece in pieces] == list(one.answer)
            assert [piece["score"] for piece in pieces] == pytest.approx(one.scores, abs=1e-5)


def test_a_pipeline_with_first_gives_the_tags_of_plain_words(make_model, tmp_path):
    from transformers import pipeline

    model = make_model("upos", limit=96)
    tag = pipeline("token-classification", model=str(export(model, tmp_path / "out")), ignore_labels=[])
    words = [word for word in WORDS if word.isalpha()]
    groups = tag(" ".join(words), aggregation_strategy="first")
    tags = [group["entity_group"] for group in groups for _ in group["word"].split()]
    assert tags == list(model.predict([words])[0])


@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_a_pipeline_labels_pairs_as_isogloss_does(make_model, families, tmp_path, family):
    from transformers import pipeline

    model = make_model("nli", families[family])
    classify = pipeline("text-classification", model=str(export(model, tmp_path / "out")), top_k=None)
    texts = [("Anna saw", "slow"), ("happen " * 90, "casually."), ("x", "unhappen " * 40)]
    pairs = [model.kind.example(pair, "0", "") for pair in texts]
    for (first, second), one in zip(texts, model.predictions(pairs, scores=True), strict=True):
        said = classify({"text": first, "text_pair": second}, truncation=True)
        assert said[0]["label"] == one.answer
        assert {each["label"]: each["score"] for each in said} == pytest.approx(one.scores, abs=1e-5)


@pytest.mark.slow
def test_an_export_is_loaded_without_isogloss(make_model, tmp_path):
    folder = export(make_model(limit=96), tmp_path / "out")
    code = f"""
import sys
sys.modules["isogloss"] = None
from transformers import AutoModelForTokenClassification, AutoTokenizer
model = AutoModelForTokenClassification.from_pretrained({str(folder)!r})
tokenizer = AutoTokenizer.from_pretrained({str(folder)!r})
print(model.config.id2label[0], model.config.label2id["X"], tokenizer.model_max_length)
"""
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said.split() == ["ADJ", "16", "96"]


def test_an_export_holds_no_pickle_and_nothing_of_this_machine(make_model, tmp_path):
    model = make_model("nli")
    model.predict([("Anna", "saw")])  # leaves its lengths in the tokenizer
    folder = export(model, tmp_path / "out")
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    }
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    assert tokenizer["truncation"] is tokenizer["padding"] is None
    told = json.loads((folder / "tokenizer_config.json").read_text())
    assert {"is_local", "local_files_only"}.isdisjoint(told)
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
    texts = [path.read_text() for path in folder.iterdir() if path.suffix in (".json", ".md")]
    assert not any(str(tmp_path) in text or str(Path.cwd()) in text for text in texts)


def test_the_card_says_what_the_model_is(make_model, tmp_path):
    scores = ({"corpus": "ud", "language": "sw", "split": "test", "metric": "accuracy", "score": 0.5},)
    model = make_model(limit=96, scores=scores, target=("de", "qab"))
    text = (export(model, tmp_path / "out") / "README.md").read_text()
    assert text.startswith(
        "---\nlibrary_name: transformers\npipeline_tag: token-classification\nlanguage:\n- en\n- de\n"
    )
    assert "| ud | sw | test | accuracy | 0.5000 |  |  |" in text
    assert "English (en)" in text and "German (de), qab" in text
    assert "mostly CC BY-SA" in text
    assert "longer than\n96 subwords" in text and "`stride=8`" in text
    assert "LIMIT" not in text and "OVERLAP" not in text and "  \n" not in text
    assert 'pipeline("token-classification"' in text


@pytest.mark.parametrize("task", ["upos", "nli"])
def test_the_lines_of_the_card_run(make_model, tmp_path, task, monkeypatch):
    text = (export(make_model(task), tmp_path / "out") / "README.md").read_text()
    code = text.partition("```python\n")[2].partition("```")[0].replace("FOLDER", str(tmp_path / "out"))
    assert len(code.splitlines()) == 3
    exec(code, {})


@pytest.mark.parametrize("task", ["qa", "parsing"])
def test_heads_without_a_pipeline_have_words_of_their_own(task):
    from isogloss.using.card import LOADING
    from isogloss.using.kinds import KINDS

    auto_class = KINDS[task].auto_class if task in KINDS else ""
    assert "isogloss.load_model" in LOADING[auto_class]
    assert "from_pretrained" in LOADING[auto_class]


def test_an_earlier_export_is_replaced_and_nothing_else_is(make_model, tmp_path):
    model, folder = make_model(), tmp_path / "out"
    folder.mkdir()
    export(model, folder)
    (folder / "left").touch()
    export(model, folder)
    assert not (folder / "left").exists()
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").touch()
    with pytest.raises(StorageError, match=r"no earlier export and not empty \(thesis.txt …\).* --force"):
        export(model, other)
    assert (other / "thesis.txt").exists()
    export(model, other, force=True)
    assert not (other / "thesis.txt").exists()
    with pytest.raises(StorageError, match="this is a file"):
        export(model, folder / "README.md", force=True)


def test_runs_and_homes_are_never_replaced(make_model, tiny_runs, tmp_path, monkeypatch):
    (tmp_path / "x").touch()
    monkeypatch.chdir(tmp_path)
    run = next(path.parent for path in tiny_runs.glob("*/model"))
    for folder in (tiny_runs, run, tmp_path, tmp_path.parent):
        with pytest.raises(StorageError, match="not even --force replaces them"):
            export(make_model(), folder, force=True)
    assert (run / "record.json").exists()


def test_an_export_that_fails_leaves_what_was_there(make_model, tmp_path, monkeypatch):
    model, folder = make_model(), tmp_path / "out"
    export(model, folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def broken(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "card", broken)
    with pytest.raises(KeyboardInterrupt):
        export(model, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_onnx_without_what_it_needs_is_refused_before_anything_is_written(make_model, tmp_path, monkeypatch):
    from isogloss.using import onnx_file

    monkeypatch.setattr(onnx_file, "NEEDED", ("onnx", "onnx_is_not_there"))
    with pytest.raises(
        ConfigError, match=r"onnx_is_not_there not installed. Install: pip install \"isogloss\[onnx"
    ):
        export(make_model(), tmp_path / "out", onnx=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
@pytest.mark.parametrize("task", ["ner", "nli"])
def test_an_onnx_file_gives_the_numbers_of_the_model(make_model, families, tmp_path, family, task):
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    import torch

    model = make_model(task, families[family])
    folder = export(model, tmp_path / "out", onnx=True)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    network = load_model(folder).network
    for texts in (["Anna"], ["Anna saw", "slow happen " * 9], ["x"] * 9):
        given = model.tokenizer(texts, padding=True, return_tensors="pt")
        with torch.inference_mode():
            expected = network(**given).logits
        (found,) = session.run(None, {name: tensor.numpy() for name, tensor in given.items()})
        assert found == pytest.approx(expected.numpy(), abs=1e-4)
    assert "model.onnx" in (folder / "README.md").read_text()


@pytest.mark.slow
def test_a_wrong_onnx_file_never_gets_its_name(make_model, tmp_path, monkeypatch):
    pytest.importorskip("onnxscript")
    from isogloss.using import onnx_file

    monkeypatch.setattr(onnx_file, "LARGEST_DIFFERENCE", 0.0)
    with pytest.raises(
        RunError, match=r"model.onnx: the numbers of the ONNX file differ from the model's by up"
    ):
        export(make_model(), tmp_path / "out", onnx=True)
    assert list(tmp_path.iterdir()) == []
