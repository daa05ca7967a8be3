"""predict, evaluate and export: what they print, write and refuse."""

import json

import pytest

from isogloss.core.records import read_record
from says import check_wording


@pytest.fixture
def fine_tuned(tiny_runs):
    """The folder of a fine-tuned model."""
    return next(path.parent for path in sorted(tiny_runs.glob("*/model")))


def test_predict_labels_every_word_of_every_line(command, fine_tuned, tmp_path):
    text = "tuki mirne\n\nbaboza\n"
    (tmp_path / "text.txt").write_text(text)
    result = command("predict", fine_tuned, tmp_path / "text.txt")
    assert (result.status, result.err) == (0, "")
    lines = result.out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == text.splitlines()
    assert [len(line.partition("\t")[2].split()) for line in lines] == [2, 0, 1]
    assert command("predict", fine_tuned, "-", "--out", "-", stdin=text).out == result.out


def test_predict_writes_json_lines(command, fine_tuned):
    first_line, empty_line, last_line = command(
        "predict", fine_tuned, "-", "--json", "--language", "sw", stdin="tuki mirne\n\nbaboza"
    ).lines
    assert (first_line["line"], first_line["words"], len(first_line["labels"])) == (1, ["tuki", "mirne"], 2)
    assert empty_line == {"line": 2, "language": "sw", "words": [], "labels": []}
    assert last_line["line"] == 3


def test_predict_labels_pairs(command, pair_model):
    stdin = "tuki mirne\tbaboza\n\ntuki\ttuki\n"
    plain_lines = command("predict", pair_model, "-", stdin=stdin).out.splitlines()
    assert [line.split("\t")[:-1] for line in plain_lines] == [["tuki mirne", "baboza"], [], ["tuki", "tuki"]]
    assert {line.split("\t")[-1] for line in plain_lines if line} <= {"0", "1"}
    first_line, empty_line, _ = command("predict", pair_model, "-", "--json", "--scores", stdin=stdin).lines
    assert first_line["texts"] == ["tuki mirne", "baboza"]
    assert sum(first_line["scores"].values()) == pytest.approx(1, abs=1e-5)
    assert empty_line == {"line": 2, "texts": [], "label": None}


@pytest.mark.slow
def test_predict_writes_a_file_and_prints_its_name(command, fine_tuned, tmp_path):
    (tmp_path / "text.txt").write_text("tuki\r\nmirne")
    path = tmp_path / "deep" / "out.txt"
    result = command("predict", fine_tuned, tmp_path / "text.txt", "--out", path)
    assert (result.status, result.out, result.err) == (0, f"{path}\n", "")
    assert path.read_text() == command("predict", fine_tuned, tmp_path / "text.txt").out
    assert b"\r" not in path.read_bytes()
    machine = command("predict", fine_tuned, tmp_path / "text.txt", "--out", tmp_path / "json", "--json")
    assert machine.lines == [{"file": str(tmp_path / "json")}]
    again = command("predict", fine_tuned, tmp_path / "text.txt", "--out", path, "--quiet")
    assert again.out == ""


def test_a_file_that_is_read_is_never_replaced(command, fine_tuned, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("tuki\n")
    (tmp_path / "link.txt").symlink_to(text)
    (tmp_path / "hard.txt").hardlink_to(text)
    for folder in (text, tmp_path / "link.txt", tmp_path / "hard.txt", tmp_path / "." / "text.txt"):
        message = command("predict", fine_tuned, text, "--out", folder).message
        assert f"--out {folder}:" in message and f"({text})" in message
        message = command(
            "translate", "--text", text, "--from", "qaa", "--into", "qab", "--out", folder
        ).message
        assert message.startswith(f"--out {folder}:")
    assert text.read_text() == "tuki\n"


def test_a_file_that_breaks_half_way_writes_nothing(command, fine_tuned, tmp_path):
    text = tmp_path / "text.conllu"
    text.write_text("1\ta" + "\t_" * 8 + "\n\n1\tb\n")
    message = command("predict", fine_tuned, text, "--out", tmp_path / "out").message
    assert message.startswith(f"{text}:3: 2 columns in '1\\tb'; expected 10")
    assert [path.name for path in tmp_path.iterdir()] == ["text.conllu"]


def test_predict_refuses_what_it_cannot_do(command, fine_tuned, tmp_path):
    (tmp_path / "text.txt").touch()
    text = tmp_path / "text.txt"
    assert "'text.txt'?" in command("predict", fine_tuned, tmp_path / "txt.txt").message
    assert "Give" in command("predict", fine_tuned, tmp_path / "nosuch.txt").message
    message = command("predict", fine_tuned, tmp_path).message
    check_wording(message, f"{tmp_path}:")
    message = command("predict", fine_tuned, text, "--out", tmp_path / "out.txt.gz").message
    assert "out.txt.gz: " in message
    assert (
        "--format: no format of task ner 'squad'"
        in command("predict", fine_tuned, text, "--format", "squad").message
    )
    assert (
        "--language: 'Swahili' is no" in command("predict", fine_tuned, text, "--language", "Swahili").message
    )
    assert "ordinary" in command("predict", fine_tuned, text, "--out", tmp_path).message


@pytest.mark.slow
def test_evaluate_prints_every_measure_of_every_model(command, tiny_runs, fine_tuned):
    runs = sorted(path.parent for path in tiny_runs.glob("*/model"))[:2]
    result = command(
        "evaluate", *runs, "--corpus", "wikiann", "--language", "qaa,qab", "--split", "dev", "--quiet"
    )
    assert (result.status, result.err) == (0, "")
    head, *rows = (line.split() for line in result.out.strip().splitlines())
    assert head == ["run", "method", "language", "split", "examples", "span_f1", "word_f1", "baseline"]
    assert [(row[0], row[2]) for row in rows] == [
        (run.name, language) for run in runs for language in ("qaa", "qab")
    ]
    machine = command(
        "evaluate",
        *runs,
        "--corpus",
        "wikiann",
        "--language",
        "qaa",
        "--language",
        "qab",
        "--split",
        "dev",
        "--json",
    )
    assert [f"{line['score']:.4f}" for line in machine.lines] == [row[5] for row in rows]


def test_evaluate_refuses_what_it_cannot_read(command, fine_tuned):
    def get_refusal(*arguments):
        return command("evaluate", fine_tuned, *arguments, "--corpus", "wikiann").message

    assert "--treebank:" in get_refusal("--language", "qaa", "--treebank", "fr")
    assert get_refusal("--language", "qaa", "--treebank", "qab=x").startswith("--treebank qab:")
    text = "--treebank:"
    assert text in get_refusal("--language", "qaa", "--treebank", "qaa=y,x")
    assert get_refusal("--language", "qaa", "--treebank", "qaa=x, qaa=y").startswith("--treebank qaa:")
    twice = ("--treebank", "qaa=x", "--treebank", "qaa=y")
    assert get_refusal("--language", "qaa", *twice).startswith("--treebank qaa:")
    assert "treebanks" in get_refusal("--language", "qaa", "--treebank", "qaa=x")
    assert "--language qaa,qab" in get_refusal("qab", "--language", "qaa")
    assert "missing option '--language'" in get_refusal()
    assert get_refusal("--language", ",").startswith("--language:")


def test_predictions_that_no_file_can_take_are_refused_before_anything_is_scored(
    command, fine_tuned, tmp_path
):
    joined_texts = ("--corpus", "ud+udpos", "--language", "qaa", "--predictions", tmp_path / "out")
    message = command("evaluate", fine_tuned, *joined_texts).message
    assert message.startswith("--predictions: corpus 'ud+udpos': cannot write test of qaa")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_export_prints_the_folder(command, fine_tuned, tmp_path):
    result = command("export", fine_tuned, tmp_path / "out", "--quiet")
    assert (result.status, result.out, result.err) == (0, f"{tmp_path / 'out'}\n", "")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["isogloss"]["run"] == read_record(fine_tuned).id
    loud = command("export", tmp_path / "out", tmp_path / "again")
    assert loud.err.splitlines() == [f"Loading {tmp_path / 'out'}", "Writing"]
    (tmp_path / "again" / "config.json").unlink()
    assert "no earlier export and not empty" in command("export", fine_tuned, tmp_path / "again").message
    assert command("export", fine_tuned, tmp_path / "again", "--force", "--quiet").status == 0


@pytest.fixture
def mixing(mixup_runs):
    """The folder of a model that mixes inputs with their translations into qaa."""
    return next(path.parents[1] for path in mixup_runs.glob("*/model/mixup.json"))


@pytest.mark.nightly
@pytest.mark.slow
def test_predict_mixes_a_file_with_its_translations(command, mixing, tmp_path):
    path = tmp_path / "text.txt"
    folder = tmp_path / "text.qaa"
    path.write_text("gar zinormunil bimajen botonbon .\n\ngar zinormunil .\n")
    folder.write_text("jado jotada babozasa botonbon .\n\njado jotada .\n")
    result = command("predict", mixing, path, "--translations", folder)
    assert (result.status, result.err) == (0, "")
    assert [line.partition("\t")[0] for line in result.out.splitlines()] == path.read_text().splitlines()
    stdin = path.read_text()
    assert command("predict", mixing, "-", "--translations", folder, stdin=stdin).out == result.out
    results = command("predict", mixing, "-", "--translations", "-", stdin=stdin)
    assert "FILE" in results.message
    way_result = command("predict", mixing, path, "--translator", "built-in", "--language", "qab")
    assert (way_result.status, way_result.err) == (0, "")
    assert way_result.out.count("\t") == 2


@pytest.mark.nightly
@pytest.mark.slow
def test_predict_without_translations_warns_once_unless_quiet(command, mixing, tmp_path):
    stdin = "gar zinormunil .\n" * 300
    result = command("predict", mixing, "-", stdin=stdin)
    assert (result.status, result.out.count("\n")) == (0, 300)
    assert result.err.startswith("Warning:")
    assert result.err.count("\n") == 1
    assert command("predict", mixing, "-", "--quiet", stdin=stdin).err == ""
    assert command("predict", mixing, "-", "--language", "qaa", stdin=stdin).err == ""
    empty_path = tmp_path / "empty.txt"
    empty_path.write_text("\n" * 300)
    items = command("predict", mixing, "-", "--translations", empty_path, stdin=stdin)
    assert "300 of 300 inputs have none" in items.err
    assert items.out == result.out


@pytest.mark.slow
def test_predict_refuses_translations_that_do_not_fit(command, mixing, fine_tuned, tmp_path):
    path = tmp_path / "text.txt"
    folder = tmp_path / "text.qaa"
    path.write_text("gar\n" * 5)
    folder.write_text("jado\n" * 4)

    def get_refusal(run, *options):
        return command("predict", run, path, *options).message

    refusal = get_refusal(mixing, "--translations", folder, "--out", tmp_path / "out")
    assert refusal.startswith(f"{folder}:")
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "text.qaa"}
    assert "--translations: this model" in get_refusal(fine_tuned, "--translations", folder)
    assert "Did you mean 'text.qaa'?" in get_refusal(mixing, "--translations", tmp_path / "text.qa")
    texts = ("--translations", folder, "--translator", "built-in", "--language", "qab")
    assert "translations" in get_refusal(mixing, *texts)
    assert "--translator" in get_refusal(mixing, "--model", "x")
    assert "--language sw" in get_refusal(mixing, "--translator", "built-in")


@pytest.mark.nightly
@pytest.mark.slow
def test_evaluate_takes_inputs_as_recipes_do(command, mixing, fine_tuned):
    texts = ("--corpus", "ud", "--language", "qab", "--split", "dev")
    paired_result = command("evaluate", mixing, *texts, "--inputs", "paired", "--json")
    (row,) = paired_result.lines
    assert (paired_result.err, row["corpus"]) == ("", "ud paired")
    plain_result = command("evaluate", mixing, *texts)
    assert plain_result.err.startswith("Warning: ") and "scored unmixed" in plain_result.err
    refused_message = command("evaluate", mixing, fine_tuned, *texts, "--inputs", "paired").message
    assert "corpus 'ud' holds" in refused_message


@pytest.mark.nightly
@pytest.mark.slow
def test_export_takes_along_what_mixes(command, mixing, tmp_path):
    assert command("export", mixing, tmp_path / "out", "--quiet").status == 0
    assert (tmp_path / "out" / "mixup.json").is_file()
    stdin = "gar zinormunil .\n"
    (tmp_path / "there").write_text("jado jotada .\n")
    options = ("-", "--translations", tmp_path / "there", "--scores")
    output, other_output = (
        command("predict", run, *options, stdin=stdin).out for run in (mixing, tmp_path / "out")
    )
    assert output == other_output


@pytest.mark.slow
def test_a_push_is_tried_dry_and_refused_without_a_login(command, tiny_runs, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    run = min(tiny_runs.glob("*/model")).parent
    result = command("push", run, "me/tagger", "--dry-run", "--private", "--quiet")
    first_line, *files = result.out.splitlines()
    assert first_line == f"Would be uploaded to me/tagger (private, branch main) from {tmp_path / 'tagger'}:"
    assert [line.split(":")[0].strip() for line in files] == sorted(
        path.name for path in (tmp_path / "tagger").iterdir()
    )
    assert 'model="me/tagger"' in (tmp_path / "tagger" / "README.md").read_text()
    message = command("push", run, "me/tagger").message
    assert message.startswith("push:")
    assert command("push", run, "no name").message.startswith("push:")


@pytest.mark.nightly
@pytest.mark.slow
def test_several_models_predict_and_are_scored_as_their_mean(command, tiny_runs):
    models = [path.parent for path in sorted(tiny_runs.glob("*/model"))][:2]
    text = "tuki mirne\n"
    output, copies = (
        command("predict", *runs, "-", "--scores", stdin=text).out for runs in (models[:1], models[:1] * 3)
    )
    assert output == copies
    lines = command("predict", *models, "-", "--scores", "--json", stdin=text).lines
    distance = [
        command("predict", model, "-", "--scores", "--json", stdin=text).lines[0]["scores"]
        for model in models
    ]
    assert len(lines[0]["labels"]) == len(lines[0]["scores"]) == len(distance[0]) == 2
    texts = ("--corpus", "wikiann", "--language", "qab", "--split", "dev", "--json")
    (scored_line,) = command("evaluate", *models, *texts, "--ensemble").lines
    single_lines = command("evaluate", *models, *texts).lines
    assert [row["run"] for row in single_lines] == [model.name for model in models]
    assert (scored_line["run"][:9], scored_line["method"]) == ("ensemble-", "mean of 2 models")
    assert 0 <= scored_line["score"] <= 1
    (same_line,) = command("evaluate", models[0], *texts, "--ensemble").lines
    assert same_line == single_lines[0]
