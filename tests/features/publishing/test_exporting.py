"""An exported folder predicts the same without isogloss, is whole or not there, and replaces nothing else."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from isogloss.core.errors import ConfigError, RunError, StorageError
from isogloss.data.sources import Sources
from isogloss.encoders.subwords import split_words
from isogloss.features.publishing import exporting
from isogloss.features.publishing.exporting import card, export
from isogloss.using import load_model
from killed import RECIPE

WORDS = ["Anna", "happen", "seeing-things", "unhappenedly", "x", "Anna", "slow,", "casually", "."]


def first_pieces(pieces, words):
    """Return the piece each word begins with, as the words stand with spaces between them."""
    word_pieces, place = [], 0
    for word in words:
        word_pieces.append(next(piece for piece in pieces if piece["start"] == place))
        place += len(word) + 1
    return word_pieces


@pytest.mark.each_value
@pytest.mark.parametrize("task", ["upos", "ner"])
def test_a_pipeline_tags_words_as_isogloss_does(make_model, encoder_folder, tmp_path, task):
    from transformers import pipeline

    model = make_model(task, encoder_folder, limit=96)
    tag = pipeline("token-classification", model=str(export(model, tmp_path / "out")), ignore_labels=[])
    for words in (WORDS, WORDS[::-1], WORDS[3:]):
        pieces = first_pieces(tag([words], is_split_into_words=True)[0], words)
        (prediction,) = model.predict([model.kind.example(words, "0", "")], scores=True)
        assert len(pieces) == len(prediction.answer)
        if task == "upos":  # Entities are repaired besides, which no pipeline does.
            assert [piece["entity"] for piece in pieces] == list(prediction.answer)
            assert [piece["score"] for piece in pieces] == pytest.approx(prediction.scores, abs=1e-5)


def test_strange_characters_are_split_by_the_export_as_by_isogloss(make_model, encoder_folder, tmp_path):
    from transformers import AutoTokenizer

    model = make_model("nli", encoder_folder)
    theirs, ours = AutoTokenizer.from_pretrained(export(model, tmp_path / "out")), model.tokenizer
    for text in (
        "ｔｈｅ ｃａｔ，",
        "½ the ﬁ ①",
        "e\u0301 caf\u00e9",
        "the　cat\u200b sat",
        "...  …",
        "Việt\x00",
    ):
        assert dict(theirs(text)) == dict(ours(text))
        assert dict(theirs(text, "slow")) == dict(ours(text, "slow"))


def test_an_exported_tagger_splits_words_as_the_model_does(make_model, encoder_folder, tmp_path):
    model = make_model("upos", encoder_folder)
    again = load_model(export(model, tmp_path / "out"), precision="float32")
    for words in (WORDS, ["", " a"], ["Việt Nam", "\x00", "ﬁ"], []):
        assert split_words([words], again.tokenizer) == split_words([words], model.tokenizer)


def test_a_table_of_characters_is_kept(make_model, deberta_v2_folder, tmp_path):
    from tokenizers import normalizers
    from transformers import AutoTokenizer

    model = make_model("upos", deberta_v2_folder)
    backend = model.tokenizer.backend_tokenizer
    backend.normalizer = normalizers.Sequence([normalizers.Replace("x", "Anna"), backend.normalizer])
    theirs = AutoTokenizer.from_pretrained(export(model, tmp_path / "out"))
    assert theirs("x x")["input_ids"] == model.tokenizer("Anna Anna")["input_ids"]


def test_a_pipeline_with_first_gives_the_tags_of_plain_words(make_model, tmp_path):
    from transformers import pipeline

    model = make_model("upos", limit=96)
    tag = pipeline("token-classification", model=str(export(model, tmp_path / "out")), ignore_labels=[])
    words = [word for word in WORDS if word.isalpha()]
    groups = tag(" ".join(words), aggregation_strategy="first")
    tags = [group["entity_group"] for group in groups for _ in group["word"].split()]
    assert tags == list(model.predict([words])[0])


def test_a_pipeline_labels_pairs_as_isogloss_does(make_model, encoder_folder, tmp_path):
    from transformers import pipeline

    model = make_model("nli", encoder_folder)
    classify = pipeline("text-classification", model=str(export(model, tmp_path / "out")), top_k=None)
    texts = [("Anna saw", "slow"), ("happen " * 90, "casually."), ("x", "unhappen " * 40)]
    pairs = [model.kind.example(pair, "0", "") for pair in texts]
    for (first_text, second_text), prediction in zip(texts, model.predict(pairs, scores=True), strict=True):
        label_scores = classify({"text": first_text, "text_pair": second_text}, truncation=True)
        assert label_scores[0]["label"] == prediction.answer
        assert {row["label"]: row["score"] for row in label_scores} == pytest.approx(
            prediction.scores, abs=1e-5
        )


@pytest.mark.slow
def test_an_export_is_loaded_without_isogloss(make_model, tmp_path):
    folder = export(make_model(limit=96), tmp_path / "out")
    script = f"""
import sys
sys.modules["isogloss"] = None
from transformers import AutoModelForTokenClassification, AutoTokenizer
model = AutoModelForTokenClassification.from_pretrained({str(folder)!r})
tokenizer = AutoTokenizer.from_pretrained({str(folder)!r})
print(model.config.id2label[0], model.config.label2id["X"], tokenizer.model_max_length)
"""
    output = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert output.split() == ["ADJ", "16", "96"]


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
    tokenizer_config = json.loads((folder / "tokenizer_config.json").read_text())
    assert {"is_local", "local_files_only"}.isdisjoint(tokenizer_config)
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1
    texts = [path.read_text() for path in folder.iterdir() if path.suffix in (".json", ".md")]
    assert not any(str(tmp_path) in text or str(Path.cwd()) in text for text in texts)


def test_the_card_says_what_the_model_is(make_model, tmp_path):
    scores = ({"corpus": "ud", "language": "sw", "split": "test", "metric": "accuracy", "score": 0.5},)
    model = make_model(limit=96, scores=scores, target=("de", "qab"))
    text = (export(model, tmp_path / "out") / "README.md").read_text()
    assert text.startswith("---\ndatasets:\n- universal-dependencies/universal_dependencies\nlanguage:\n")
    assert "\nlanguage:\n- en\n- de\nlibrary_name: transformers\nlicense: other\n" in text
    assert "| ud | sw | test | accuracy | 0.5000 |  |  |" in text
    assert "English (en)" in text and "German (de), Bora" in text
    assert "mostly CC BY-SA" in text
    assert "longer than\n96 subwords" in text and "`stride=8`" in text
    assert "LIMIT" not in text and "OVERLAP" not in text and "  \n" not in text
    assert 'pipeline("token-classification"' in text


@pytest.mark.parametrize("encoder", ["bert", "llama"])
@pytest.mark.parametrize("task", ["upos", "nli", "text-classification"])
def test_the_lines_of_the_card_run(make_model, request, tmp_path, task, encoder):
    """Also for heads of isogloss, such as those on Llama. Inputs of single texts are given as texts."""
    model = make_model(task, request.getfixturevalue(f"{encoder}_folder"))
    text = (export(model, tmp_path / "out") / "README.md").read_text()
    script = text.partition("```python\n")[2].partition("```")[0].replace("FOLDER", str(tmp_path / "out"))
    assert len(script.splitlines()) == 3
    assert ("first text" in script) == (task == "nli")
    exec(script, {})


def test_the_card_of_a_choice_scores_options_as_isogloss_does(make_model, encoder_folder, tmp_path):
    model = make_model("multiple-choice", encoder_folder, limit=64)
    text = (export(model, tmp_path / "out") / "README.md").read_text()
    script = text.partition("```python\n")[2].partition("```")[0].replace("FOLDER", str(tmp_path / "out"))
    questions = [f"{ITEM['question']} {option}" for option in ITEM["options"]]
    script = script.replace('["what is asked an option", "what is asked another"]', repr(questions))
    script = script.replace('["the context"] * 2', repr([ITEM["context"]] * 3)).replace(
        "model(**", "found = model(**"
    )
    names: dict[str, object] = {}
    exec(script, names)
    (answer,) = model.predict([ITEM], scores=True)
    assert names["found"].tolist() == pytest.approx(list(answer.scores.values()), abs=1e-5)
    assert answer.scores[str(answer.answer)] == max(answer.scores.values())
    assert load_model(tmp_path / "out", precision="float32").predict([ITEM]) == [answer.answer]


@pytest.mark.nightly
@pytest.mark.slow
def test_a_parser_is_exported_whole_and_its_encoder_is_anyones(make_model, encoder_folder, tmp_path):
    from transformers import AutoModel

    model = make_model("parsing", encoder_folder)
    folder = export(model, tmp_path / "out")
    trees = model.predict([WORDS, ["Anna"] * 50])
    assert load_model(folder, precision="float32").predict([WORDS, ["Anna"] * 50]) == trees
    theirs = AutoModel.from_pretrained(folder).state_dict()
    ours = model.network.base_model.state_dict()
    assert all(torch.equal(theirs[name], weights) for name, weights in ours.items())
    text = (folder / "README.md").read_text()
    assert "encoder" in text and "isogloss.load_model" in text
    assert "pipeline_tag" not in text


def test_a_model_of_questions_loads_anywhere_and_answers_here(make_model, encoder_folder, tmp_path):
    from transformers import AutoModelForQuestionAnswering

    model = make_model("qa", encoder_folder, limit=64)
    folder = export(model, tmp_path / "out")
    questions = [("Anna saw", "happen slow casually " * 20), ("x", "")]
    answers = model.predict(questions)
    assert answers[0] and answers[0] in questions[0][1] and answers[1] == ""
    assert load_model(folder, precision="float32").predict(questions) == answers
    theirs = AutoModelForQuestionAnswering.from_pretrained(folder).state_dict()
    assert all(torch.equal(theirs[name], weight) for name, weight in model.network.state_dict().items())
    assert "transformers has no pipeline for questions since" in (folder / "README.md").read_text()


ITEM = {"context": "Anna saw", "question": "happen slow", "options": ["casually", "the cat", "Anna"]}
ASKED = {
    "upos": [WORDS],
    "nli": [("Anna saw", "happen slow")],
    "qa": [("Anna saw", "happen slow casually")],
    "multiple-choice": [ITEM],
}


@pytest.mark.each_value
@pytest.mark.parametrize("task", ASKED)
def test_heads_of_our_own_are_exported_and_read_here(make_model, headless_folder, tmp_path, task):
    model = make_model(task, headless_folder, limit=64)
    folder = export(model, tmp_path / "out")
    assert load_model(folder, precision="float32").predict(ASKED[task]) == model.predict(ASKED[task])
    text = (folder / "README.md").read_text()
    encoder = {"mt5": "MT5EncoderModel", "m2m_100": "M2M100Encoder"}.get(headless_folder.name, "AutoModel")
    assert f'`{encoder}.from_pretrained("FOLDER")`' in text
    assert "pipeline" not in text
    with pytest.raises(ConfigError, match="written"):
        export(model, tmp_path / "onnx", onnx=True)


def test_an_earlier_export_is_replaced_and_nothing_else_is(make_model, tmp_path):
    model, folder = make_model(), tmp_path / "out"
    folder.mkdir()
    export(model, folder)
    (folder / "left").touch()
    export(model, folder)
    assert not (folder / "left").exists()
    other_folder = tmp_path / "other"
    other_folder.mkdir()
    (other_folder / "thesis.txt").touch()
    with pytest.raises(StorageError, match="--force"):
        export(model, other_folder)
    assert (other_folder / "thesis.txt").exists()
    export(model, other_folder, force=True)
    assert not (other_folder / "thesis.txt").exists()
    with pytest.raises(StorageError, match="file"):
        export(model, folder / "README.md", force=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chat_template.jinja", "model.safetensors"])
def test_a_link_in_the_folder_of_a_run_is_not_followed(runs_of, tmp_path, name):
    runs = shutil.copytree(runs_of("undisturbed", RECIPE), tmp_path / "runs")
    kinds = {path.parent: json.loads(path.read_text())["kind"] for path in runs.glob("*/record.json")}
    run = next(run for run, kind in kinds.items() if kind == "fine-tune")
    secret = tmp_path / "secret"
    if (run / "model" / name).exists():
        (run / "model" / name).rename(secret)
    else:
        secret.write_text("a token")
    (run / "model" / name).symlink_to(secret)
    model = load_model(run)
    with pytest.raises(StorageError, match=f"{name}:"):
        model.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_runs_and_homes_are_never_replaced(make_model, tmp_path, monkeypatch):
    run, home, project = (tmp_path / name for name in ("runs/0123456789ab", "user/home", "project/here"))
    for folder in (run, home, project):
        folder.mkdir(parents=True)
        (folder / "x").touch()
    (run / "record.json").touch()
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    monkeypatch.chdir(project)
    (run / "model").mkdir()
    (run / "model/config.json").touch()
    (tmp_path / "studies/one/.claims").mkdir(parents=True)  # The folder of leases.
    of_runs = (run, run.parent, tmp_path, run / "model", tmp_path / "studies")
    for folder in (*of_runs, home, home.parent, tmp_path / "link", project, project.parent):
        with pytest.raises(StorageError, match="--force"):
            export(make_model(), folder, force=True)
    assert (run / "record.json").exists()
    for _ in range(2):
        export(make_model(), run / "exported")


def test_what_lies_in_an_earlier_export_is_not_replaced_unasked(make_model, tmp_path):
    model, folder = make_model(), tmp_path / "out"
    export(model, folder)
    (folder / ".git").mkdir()
    with pytest.raises(StorageError, match="--force"):
        export(model, folder)
    export(model, folder, force=True)
    assert not (folder / ".git").exists()
    (folder / "runs/0123456789ab").mkdir(parents=True)
    (folder / "runs/0123456789ab/record.json").touch()
    for force in (False, True):
        with pytest.raises(StorageError, match="--force"):
            export(model, folder, force=force)


def test_an_export_that_fails_leaves_what_was_there(make_model, tmp_path, monkeypatch):
    model, folder = make_model(), tmp_path / "out"
    export(model, folder)
    old_files = {path.name: path.read_bytes() for path in folder.iterdir()}

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(exporting, "card", interrupt)
    with pytest.raises(KeyboardInterrupt):
        export(model, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == old_files
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_onnx_without_what_it_needs_is_refused_before_anything_is_written(make_model, tmp_path, monkeypatch):
    from isogloss.features.publishing import onnx

    monkeypatch.setattr(onnx, "ONNX_PACKAGES", ("onnx", "onnx_is_not_there"))
    with pytest.raises(ConfigError, match=r"onnx_is_not_there.*\"isogloss\[onnx"):
        export(make_model(), tmp_path / "out", onnx=True)
    with pytest.raises(ConfigError, match="parsing"):
        export(make_model("parsing"), tmp_path / "out", onnx=True)
    assert list(tmp_path.iterdir()) == []


def shallow(folder, place, layers):
    """Copy an encoder with only its first layers, because an ONNX export takes time for each layer."""
    shutil.copytree(folder, place)
    config = json.loads((place / "config.json").read_text())
    config["num_hidden_layers"] = layers
    config["layer_types"] = config.get("layer_types", [])[:layers] or None
    (place / "config.json").write_text(json.dumps(config))
    weights = load_file(place / "model.safetensors")
    kept_weights = {name: weight for name, weight in weights.items() if not is_above(name, layers)}
    save_file(kept_weights, place / "model.safetensors", metadata={"format": "pt"})
    return place


def is_above(name, layers):
    """Return whether a weight belongs to a layer after the first ones."""
    match = re.search(r"\.layers?\.(\d+)\.", name)
    return bool(match) and int(match[1]) >= layers


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "encoder", "layers"),
    [("ner", "deberta_v2", 1), ("nli", "modernbert", 2), ("qa", "xlm_roberta", 1)],
)
def test_an_onnx_file_has_the_numbers_of_the_model_or_is_not_kept(
    make_model, encoder, request, tmp_path, task, layers, monkeypatch
):
    """ModernBERT's second layer is its first with local attention."""
    pytest.importorskip("onnxscript")
    onnxruntime = pytest.importorskip("onnxruntime")
    model = make_model(
        task, shallow(request.getfixturevalue(f"{encoder}_folder"), tmp_path / "shallow", layers)
    )
    folder = export(model, tmp_path / "out", onnx=True)
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), providers=["CPUExecutionProvider"])
    network = load_model(folder).network
    for texts in (["Anna"], ["Anna saw", "slow happen " * 9], ["x"] * 9):
        encoding = model.tokenizer(texts, padding=True, return_tensors="pt")
        with torch.inference_mode():
            output = network(**encoding)
        expected = [output.start_logits, output.end_logits] if task == "qa" else [output.logits]
        outputs = session.run(None, {name: tensor.numpy() for name, tensor in encoding.items()})
        for ours, theirs in zip(expected, outputs, strict=True):
            assert theirs == pytest.approx(ours.numpy(), abs=1e-4)
    assert "model.onnx" in (folder / "README.md").read_text()

    of_another = (folder / "model.onnx").read_bytes()
    monkeypatch.setattr(torch.onnx, "export", lambda _, __, path, **___: path.write_bytes(of_another))
    with torch.no_grad():
        list(model.network.parameters())[-1][-1] += 0.01  # The last bias alone: one output of the last kind.
    with pytest.raises(RunError, match=r"model.onnx: .*ONNX"):
        export(model, tmp_path / "wrong", onnx=True)
    assert not (tmp_path / "wrong").exists()


def test_an_exported_model_mixes_as_before_to_the_bit(make_mixing, tmp_path):
    model = load_model(export(make_mixing(source=("qaa",)), tmp_path / "first"), precision="float32")
    folder = export(model, tmp_path / "out")
    again = load_model(folder, precision="float32")
    gold, translations = (
        Sources().examples("ud", language, "dev", examples=20) for language in ("qab", "qab-qaa")
    )
    scores, exported_scores = (
        mixing_model.prepare(gold, translations=translations).scores(mixing_model.network)
        for mixing_model in (model, again)
    )
    plain_scores = again.prepare(gold).scores(again.network)
    assert all(map(torch.equal, scores, exported_scores))
    assert not all(map(torch.equal, exported_scores, plain_scores))
    assert again.mixup == model.mixup
    assert torch.equal(again.mixup.ratio_module.weight, model.mixup.ratio_module.weight)
    assert {path.name for path in folder.iterdir()} == {
        *("README.md", "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
        *("mixup.json", "mixup.safetensors"),
    }


def test_without_isogloss_an_exported_model_that_mixes_reads_unmixed(make_mixing, tmp_path):
    from transformers import pipeline

    model = make_mixing(limit=96)
    tag = pipeline("token-classification", model=str(export(model, tmp_path / "out")), ignore_labels=[])
    pieces = first_pieces(tag([WORDS], is_split_into_words=True)[0], WORDS)
    (prediction,) = model.predict([model.kind.example(WORDS, "0", "")], scores=True)
    assert [piece["entity"] for piece in pieces] == list(prediction.answer)
    assert [piece["score"] for piece in pieces] == pytest.approx(prediction.scores, abs=1e-5)


def test_the_card_says_which_inference_is_free_of_code(make_mixing, make_model):
    text = card(make_mixing("nli"), onnx=True)
    assert "**Unmixed**, without isogloss: as above." in text
    assert "isogloss predict FOLDER FILE --translations TRANSLATIONS" in text
    assert "`model.onnx` is the model without mixing" in text
    assert "translation into English (en):\nin layer 2" in text
    assert "mixup.json" in text
    assert "The answers to both are averaged." in text
    assert "The text's own answer counts." in card(make_mixing("qa"), onnx=False)
    assert "ixed" not in card(make_model("nli"), onnx=True)


@pytest.mark.nightly
@pytest.mark.slow
def test_links_as_in_the_cache_of_the_hubs_client_are_exported(pair_model, tmp_path):
    exported_folder = load_model(pair_model).export(tmp_path / "exported")
    blobs, snapshot = tmp_path / "models--me--x" / "blobs", tmp_path / "models--me--x" / "snapshots" / "0"
    shutil.copytree(exported_folder, blobs)
    snapshot.mkdir(parents=True)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    again = load_model(snapshot).export(tmp_path / "again")
    assert {path.name for path in again.iterdir()} == {path.name for path in exported_folder.iterdir()}
    assert not any(path.is_symlink() for path in again.iterdir())
