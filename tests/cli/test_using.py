"""predict, evaluate and export: what they print, write and refuse."""

import json

import pytest

from isogloss.core.records import read_record


@pytest.fixture
def fine_tuned(tiny_runs):
    """The folder of a fine-tuned model."""
    return next(path.parent for path in sorted(tiny_runs.glob("*/model")))


def test_predict_labels_every_word_of_every_line(command, fine_tuned, tmp_path):
    text = "tuki mirne\n\nbaboza\n"
    (tmp_path / "text.txt").write_text(text)
    ended = command("predict", fine_tuned, tmp_path / "text.txt")
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == text.splitlines()
    assert [len(line.partition("\t")[2].split()) for line in lines] == [2, 0, 1]
    assert command("predict", fine_tuned, "-", "--out", "-", stdin=text).out == ended.out


def test_predict_writes_json_lines(command, fine_tuned):
    first, empty, last = command(
        "predict", fine_tuned, "-", "--json", "--language", "sw", stdin="tuki mirne\n\nbaboza"
    ).lines
    assert (first["line"], first["words"], len(first["labels"])) == (1, ["tuki", "mirne"], 2)
    assert empty == {"line": 2, "language": "sw", "words": [], "labels": []}
    assert last["line"] == 3


def test_predict_labels_pairs(command, pair_model):
    stdin = "tuki mirne\tbaboza\n\ntuki\ttuki\n"
    plain = command("predict", pair_model, "-", stdin=stdin).out.splitlines()
    assert [line.split("\t")[:-1] for line in plain] == [["tuki mirne", "baboza"], [], ["tuki", "tuki"]]
    assert {line.split("\t")[-1] for line in plain if line} <= {"0", "1"}
    first, empty, _ = command("predict", pair_model, "-", "--json", "--scores", stdin=stdin).lines
    assert first["texts"] == ["tuki mirne", "baboza"]
    assert sum(first["scores"].values()) == pytest.approx(1, abs=1e-5)
    assert empty == {"line": 2, "texts": [], "label": None}


@pytest.mark.slow
def test_predict_writes_a_file_and_prints_its_name(command, fine_tuned, tmp_path):
    (tmp_path / "text.txt").write_text("tuki\r\nmirne")
    out = tmp_path / "deep" / "out.txt"
    ended = command("predict", fine_tuned, tmp_path / "text.txt", "--out", out)
    assert (ended.status, ended.out, ended.err) == (0, f"{out}\n", "")
    assert out.read_text() == command("predict", fine_tuned, tmp_path / "text.txt").out
    assert b"\r" not in out.read_bytes()
    machine = command("predict", fine_tuned, tmp_path / "text.txt", "--out", tmp_path / "json", "--json")
    assert machine.lines == [{"file": str(tmp_path / "json")}]
    again = command("predict", fine_tuned, tmp_path / "text.txt", "--out", out, "--quiet")
    assert again.out == ""


def test_a_file_that_is_read_is_never_replaced(command, fine_tuned, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("tuki\n")
    (tmp_path / "link.txt").symlink_to(text)
    (tmp_path / "hard.txt").hardlink_to(text)
    for out in (text, tmp_path / "link.txt", tmp_path / "hard.txt", tmp_path / "." / "text.txt"):
        said = command("predict", fine_tuned, text, "--out", out).message
        assert f"--out {out}:" in said and f"({text})" in said
        said = command("translate", "--text", text, "--from", "qaa", "--into", "qab", "--out", out).message
        assert said.startswith(f"--out {out}:")
    assert text.read_text() == "tuki\n"


def test_a_file_that_breaks_half_way_writes_nothing(command, fine_tuned, tmp_path):
    text = tmp_path / "text.conllu"
    text.write_text("1\ta" + "\t_" * 8 + "\n\n1\tb\n")
    said = command("predict", fine_tuned, text, "--out", tmp_path / "out").message
    assert said == f"{text}:3: 2 columns in '1\\tb'; expected 10, split by tabs. Correct the line."
    assert [path.name for path in tmp_path.iterdir()] == ["text.conllu"]


def test_predict_refuses_what_it_cannot_do(command, fine_tuned, tmp_path):
    (tmp_path / "text.txt").touch()
    text = tmp_path / "text.txt"
    assert "'text.txt'?" in command("predict", fine_tuned, tmp_path / "txt.txt").message
    assert "Give" in command("predict", fine_tuned, tmp_path / "nosuch.txt").message
    said = command("predict", fine_tuned, tmp_path).message
    assert said == f"{tmp_path}: this is a folder. Give a file, or - for standard input."
    said = command("predict", fine_tuned, text, "--out", tmp_path / "out.txt.gz").message
    assert "out.txt.gz: " in said
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
    ended = command(
        "evaluate", *runs, "--corpus", "wikiann", "--language", "qaa,qab", "--split", "dev", "--quiet"
    )
    assert (ended.status, ended.err) == (0, "")
    head, *rows = (line.split() for line in ended.out.strip().splitlines())
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
    said = "--treebank:"
    assert said in get_refusal("--language", "qaa", "--treebank", "qaa=y,x")
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
    joined = ("--corpus", "ud+udpos", "--language", "qaa", "--predictions", tmp_path / "out")
    message = command("evaluate", fine_tuned, *joined).message
    assert message.startswith("--predictions: corpus 'ud+udpos': cannot write test of qaa")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_export_prints_the_folder(command, fine_tuned, tmp_path):
    ended = command("export", fine_tuned, tmp_path / "out", "--quiet")
    assert (ended.status, ended.out, ended.err) == (0, f"{tmp_path / 'out'}\n", "")
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
    here, there = tmp_path / "text.txt", tmp_path / "text.qaa"
    here.write_text("gar zinormunil bimajen botonbon .\n\ngar zinormunil .\n")
    there.write_text("jado jotada babozasa botonbon .\n\njado jotada .\n")
    ended = command("predict", mixing, here, "--translations", there)
    assert (ended.status, ended.err) == (0, "")
    assert [line.partition("\t")[0] for line in ended.out.splitlines()] == here.read_text().splitlines()
    stdin = here.read_text()
    assert command("predict", mixing, "-", "--translations", there, stdin=stdin).out == ended.out
    both = command("predict", mixing, "-", "--translations", "-", stdin=stdin)
    assert "FILE" in both.message
    on_the_way = command("predict", mixing, here, "--translator", "built-in", "--language", "qab")
    assert (on_the_way.status, on_the_way.err) == (0, "")
    assert on_the_way.out.count("\t") == 2


@pytest.mark.slow
def test_predict_without_translations_warns_once_unless_quiet(command, mixing, tmp_path):
    stdin = "gar zinormunil .\n" * 300
    ended = command("predict", mixing, "-", stdin=stdin)
    assert (ended.status, ended.out.count("\n")) == (0, 300)
    assert ended.err.startswith("Warning:")
    assert ended.err.count("\n") == 1
    assert command("predict", mixing, "-", "--quiet", stdin=stdin).err == ""
    assert command("predict", mixing, "-", "--language", "qaa", stdin=stdin).err == ""
    empty = tmp_path / "empty.txt"
    empty.write_text("\n" * 300)
    some = command("predict", mixing, "-", "--translations", empty, stdin=stdin)
    assert "300 of 300 inputs have none" in some.err
    assert some.out == ended.out


@pytest.mark.slow
def test_predict_refuses_translations_that_do_not_fit(command, mixing, fine_tuned, tmp_path):
    here, there = tmp_path / "text.txt", tmp_path / "text.qaa"
    here.write_text("gar\n" * 5)
    there.write_text("jado\n" * 4)

    def get_refusal(run, *options):
        return command("predict", run, here, *options).message

    said = get_refusal(mixing, "--translations", there, "--out", tmp_path / "out")
    assert said.startswith(f"{there}:")
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt", "text.qaa"}
    assert "--translations: this model" in get_refusal(fine_tuned, "--translations", there)
    assert "Did you mean 'text.qaa'?" in get_refusal(mixing, "--translations", tmp_path / "text.qa")
    both = ("--translations", there, "--translator", "built-in", "--language", "qab")
    assert "translations" in get_refusal(mixing, *both)
    assert "--translator" in get_refusal(mixing, "--model", "x")
    assert "--language sw" in get_refusal(mixing, "--translator", "built-in")


@pytest.mark.nightly
@pytest.mark.slow
def test_evaluate_takes_inputs_as_recipes_do(command, mixing, fine_tuned):
    about = ("--corpus", "ud", "--language", "qab", "--split", "dev")
    paired = command("evaluate", mixing, *about, "--inputs", "paired", "--json")
    (row,) = paired.lines
    assert (paired.err, row["corpus"]) == ("", "ud paired")
    plain = command("evaluate", mixing, *about)
    assert plain.err.startswith("Warning: ") and "scored unmixed" in plain.err
    refused = command("evaluate", mixing, fine_tuned, *about, "--inputs", "paired").message
    assert "corpus 'ud' holds" in refused


@pytest.mark.slow
def test_export_takes_along_what_mixes(command, mixing, tmp_path):
    assert command("export", mixing, tmp_path / "out", "--quiet").status == 0
    assert (tmp_path / "out" / "mixup.json").is_file()
    stdin = "gar zinormunil .\n"
    (tmp_path / "there").write_text("jado jotada .\n")
    options = ("-", "--translations", tmp_path / "there", "--scores")
    one, other = (command("predict", run, *options, stdin=stdin).out for run in (mixing, tmp_path / "out"))
    assert one == other


@pytest.mark.slow
def test_a_push_is_tried_dry_and_refused_without_a_login(command, tiny_runs, tmp_path, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    run = min(tiny_runs.glob("*/model")).parent
    ended = command("push", run, "me/tagger", "--dry-run", "--private", "--quiet")
    first, *files = ended.out.splitlines()
    assert first == f"Would be uploaded to me/tagger (private, branch main) from {tmp_path / 'tagger'}:"
    assert [line.split(":")[0].strip() for line in files] == sorted(
        path.name for path in (tmp_path / "tagger").iterdir()
    )
    assert 'model="me/tagger"' in (tmp_path / "tagger" / "README.md").read_text()
    said = command("push", run, "me/tagger").message
    assert said.startswith("push:")
    assert command("push", run, "no name").message.startswith("push:")


@pytest.mark.nightly
@pytest.mark.slow
def test_several_models_predict_and_are_scored_as_their_mean(command, tiny_runs):
    models = [path.parent for path in sorted(tiny_runs.glob("*/model"))][:2]
    text = "tuki mirne\n"
    one, copies = (
        command("predict", *runs, "-", "--scores", stdin=text).out for runs in (models[:1], models[:1] * 3)
    )
    assert one == copies
    both = command("predict", *models, "-", "--scores", "--json", stdin=text).lines
    apart = [
        command("predict", model, "-", "--scores", "--json", stdin=text).lines[0]["scores"]
        for model in models
    ]
    assert len(both[0]["labels"]) == len(both[0]["scores"]) == len(apart[0]) == 2
    asked = ("--corpus", "wikiann", "--language", "qab", "--split", "dev", "--json")
    (scored,) = command("evaluate", *models, *asked, "--ensemble").lines
    alone = command("evaluate", *models, *asked).lines
    assert [row["run"] for row in alone] == [model.name for model in models]
    assert (scored["run"][:9], scored["method"]) == ("ensemble-", "mean of 2 models")
    assert 0 <= scored["score"] <= 1
    (same,) = command("evaluate", models[0], *asked, "--ensemble").lines
    assert same == alone[0]
