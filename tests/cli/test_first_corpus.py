"""isogloss init --from: a labelled file and the text of a target become a corpus and a recipe that plans."""

import csv
import json
import re
import tomllib
from pathlib import Path

import pytest

from isogloss.data.corpora.own import KNOWN
from isogloss.features.built_in_languages import examples
from isogloss.planning.plan import plan_recipe
from says import check_wording

PAGE = Path(__file__).parents[2] / "docs" / "use.md"


def pairs(language, count):
    return [example for example, _ in zip(examples("xnli", language, "train"), range(count), strict=False)]


def write_csv(path, rows, head=("review", "sentiment")):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def objects(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A labelled file and unlabelled text of a second language, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "reviews.csv", [(pair.first, pair.label) for pair in pairs("qaa", 60)])
    lines = [f"{pair.first}\n" for pair in pairs("qab", 20)]
    (tmp_path / "swahili.txt").write_text("".join(lines), encoding="utf-8")
    other_items = dict(KNOWN)
    KNOWN.clear()
    yield tmp_path
    KNOWN.clear()
    KNOWN.update(other_items)


INIT = ("init", "--from", "reviews.csv", "--target", "sw=swahili.txt")


def test_every_row_is_in_one_split_and_keeps_its_text_and_label(command, folder):
    result = command(*INIT)
    assert (result.status, result.out) == (0, "recipe.toml\n")
    rows = [
        row for split in ("train", "dev", "test") for row in objects(folder / f"reviews/en.{split}.jsonl")
    ]
    inputs = [(pair.first, pair.label) for pair in pairs("qaa", 60)]
    assert [(row["text"], row["label"]) for row in sorted(rows, key=lambda row: int(row["id"]))] == inputs
    assert [row["text"] for row in objects(folder / "reviews/sw.dev.jsonl")] == [
        pair.first for pair in pairs("qab", 20)
    ]
    assert "text in 'review', label in 'sentiment', language en" in result.err
    assert "swahili.txt: lines of text, language sw. Labels: none." in result.err


def test_a_target_without_labels_is_measured_and_not_scored(command, folder):
    command(*INIT)
    runs = plan_recipe("recipe.toml", out=folder / "runs").runs
    measures = {(run.diagnostic.name, run.languages, run.split) for run in runs if run.name == "measure"}
    assert measures == {("label-free", ("en", "sw"), "dev"), ("scores", ("en",), "test")}
    planned_result = command("run", "recipe.toml", "--out", "runs", "--dry-run")
    assert "isogloss: reviews sw:" in planned_result.err
    assert "reviews sw dev: no labels." in command("corpus", "check", "reviews/reviews.toml").out


def test_scores_of_a_target_without_labels_are_refused(command, folder):
    command(*INIT)
    change = 'measure=[{name="scores",split="dev",languages=["sw"]}]'
    message = command("run", "recipe.toml", "--out", "runs", "--dry-run", "--set", change).message
    assert "sw" in message


@pytest.mark.parametrize("method", ["bilingual", "target-only"])
def test_training_on_a_target_without_labels_is_refused(command, folder, method):
    command(*INIT)
    change = f'grid.method=[{{name="{method}"}}]'
    message = command("run", "recipe.toml", "--out", "runs", "--set", change).message
    assert f"'{method}'" in message


def test_rows_that_do_not_fit_are_listed_with_their_lines(command, folder):
    rows = [(pair.first, pair.label) for pair in pairs("qaa", 60)]
    write_csv(folder / "reviews.csv", [*rows[:5], ("no label", ""), *rows[5:], ("", "neutral")])
    result = command(*INIT)
    left_out = (folder / "reviews/left-out.txt").read_text(encoding="utf-8").splitlines()
    assert [line.partition(": ")[0] for line in left_out] == ["reviews.csv:7", "reviews.csv:63"]
    assert "Rows left out, which reviews/left-out.txt lists: 2." in result.err
    assert sum(len(objects(path)) for path in (folder / "reviews").glob("en.*.jsonl")) == 60


def test_equal_texts_are_in_one_split_and_counted(command, folder):
    rows = [(pair.first, pair.label) for pair in pairs("qaa", 60)]
    write_csv(folder / "reviews.csv", [*rows, *rows[:9], (rows[9][0], "other")])
    result = command(*INIT)
    assert "Rows that repeat a text, all in its split: 10 (1 with another label)." in result.err
    splits = [{row["text"] for row in objects(path)} for path in (folder / "reviews").glob("en.*.jsonl")]
    assert len(splits) == 3 and sum(len(item) for item in splits) == len(set.union(*splits))


def test_nothing_is_replaced_and_nothing_left_where_no_recipe_can_be_planned(command, folder):
    (folder / "reviews").mkdir()
    assert "reviews:" in command(*INIT).message
    (folder / "reviews").rmdir()
    contents_before = {path: path.read_bytes() for path in folder.iterdir()}
    check_wording(command(*INIT, "--method", "none").message, "init:", "recipe.toml:", "'none'")
    assert {path: path.read_bytes() for path in folder.iterdir()} == contents_before


def test_splits_that_an_earlier_call_left_are_used_if_they_are_the_same(command, folder):
    command(*INIT)
    (folder / "recipe.toml").unlink()  # As a call leaves it that was killed between the two.
    contents_before = {path: path.read_bytes() for path in (folder / "reviews").iterdir()}
    check_wording(command(*INIT, "--method", "none").message, "init:", "recipe.toml:", "'none'")
    command(*INIT)
    assert (folder / "recipe.toml").exists()
    assert {path: path.read_bytes() for path in (folder / "reviews").iterdir()} == contents_before
    refused_result = command(*INIT, "--force", "--split", "50,25,25")
    assert "reviews:" in refused_result.message
    assert {path: path.read_bytes() for path in (folder / "reviews").iterdir()} == contents_before


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("head", "columns", "found_columns"),
    [
        (("what", "sentiment"), (), "what, sentiment"),
        (("text", "review", "label"), (), "text, review, label"),
        (("text", "label", "topic"), (), "text, label, topic"),
        (("review", "sentiment"), ("--text", "revew"), "review, sentiment"),
        (("what", "why"), ("--text", "what", "--label", "why"), ""),
        (("what", "why"), ("--text", "0", "--label", "1"), ""),
    ],
)
def test_columns_are_found_by_the_header_where_it_is_sure(command, folder, head, columns, found_columns):
    rows = [(pair.first, pair.label, pair.label)[: len(head)] for pair in pairs("qaa", 60)]
    write_csv(folder / "reviews.csv", rows, head)
    result = command(*INIT, *columns)
    if found_columns:
        check_wording(result.message, "reviews.csv:", found_columns, "--from FILE.toml")
    else:
        assert result.status == 0, result


def test_targets_with_labels_are_scored(command, folder):
    rows = [json.dumps({"review": pair.first, "sentiment": pair.label}) for pair in pairs("qac", 20)]
    (folder / "hausa.jsonl").write_text("\n".join(rows), encoding="utf-8")
    assert command(*INIT, "--target", "ha=hausa.jsonl").status == 0
    assert [len(objects(folder / f"reviews/ha.{split}.jsonl")) for split in ("dev", "test")] == [10, 10]
    runs = plan_recipe("recipe.toml", out=folder / "runs").runs
    scored_languages = {
        run.languages for run in runs if run.name == "measure" and run.diagnostic.name == "scores"
    }
    assert scored_languages == {("en", "ha")}


def test_tagged_sentences_meet_lines_of_words(command, folder):
    sentences = [example for example, _ in zip(examples("wikiann", "qaa", "train"), range(40), strict=False)]
    blocks = [
        "".join(f"{w} {t}\n" for w, t in zip(sentence.words, sentence.tags, strict=True))
        for sentence in sentences
    ]
    (folder / "ner.conll").write_text("\n".join(blocks), encoding="utf-8")
    assert command("init", "--from", "ner.conll", "--source", "ha", "--target", "sw=swahili.txt").status == 0
    rows = objects(folder / "ner/ha.train.jsonl")
    assert rows[0]["words"] == list(sentences[int(rows[0]["id"])].words)
    assert "labels" not in objects(folder / "ner/sw.dev.jsonl")[0]
    runs = plan_recipe("recipe.toml", out=folder / "runs").runs
    assert {run.task for run in runs if run.name == "fine-tune"} == {"span-tagging"}


def test_pairs_and_descriptions_are_split_too(command, folder):
    write_csv(folder / "nli.tsv", [], ("a", "b", "label"))
    rows = "".join(f"{pair.first}\t{pair.second}\t{pair.label}\n" for pair in pairs("qaa", 40))
    for name in ("nli.tsv", "target.tsv"):
        (folder / name).write_text(f"a\tb\tlabel\n{rows}", encoding="utf-8")
    texts = ("--text", "a,b", "--target", "sw=target.tsv")
    assert command("init", "nli_recipe.toml", "--from", "nli.tsv", *texts).status == 0
    assert {"id", "first", "second", "label"} == set(objects(folder / "nli/en.dev.jsonl")[0])
    (folder / "semi.csv").write_text((folder / "reviews.csv").read_text().replace(",", ";"), encoding="utf-8")
    options = {"kind": "text", "files": "semi.csv", "separator": ";", "languages": ["en"]}
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in options.items())
    (folder / "own.toml").write_text(f'{text}columns = {{ text = "review", label = "sentiment" }}\n')
    assert command("init", "own_recipe.toml", "--from", "own.toml", "--target", "sw=swahili.txt").status == 0
    assert tomllib.loads((folder / "own/own.toml").read_text())["kind"] == "text"


@pytest.mark.slow
def test_four_commands_of_the_page_lead_from_a_file_to_predictions(command, folder):
    text = PAGE.read_text(encoding="utf-8").partition("## From a labelled file to predictions")[2]
    commands = re.findall(r"^isogloss (.*)$", text.partition("\n## ")[0], re.MULTILINE)
    assert [line.split()[0] for line in commands] == ["init", "run", "choose", "predict"]
    init, run, choose, predict = (line.split() for line in commands)
    assert command(*init).status == 0
    result = command(*run, "--jobs", 1, "--set", "grid.optimization={epochs=1}", "--json")
    assert result.status == 0
    (results,) = (line["summary"]["found"] for line in result.lines if line["event"] == "report")
    assert results.endswith("Without a score: Swahili (sw); the choice without labels ranks their models.")
    (row,) = command(*choose, "--json").lines
    assert (row["language"], row["expected"], row["others"]) == ("sw", None, None)
    assert len(row["ensemble"]) == row["candidates"] == 3
    texts = ("--corpus", "reviews/reviews.toml", "--language", "sw", "--split", "dev")
    message = command("evaluate", f"runs/{row['model']}", *texts).message
    check_wording(message, "reviews sw dev:", "isogloss predict")
    response = command(*(part.replace("ID", row["model"]) for part in predict))
    assert response.status == 0
    predicted_lines = (folder / predict[-1]).read_text(encoding="utf-8").splitlines()
    assert [line.partition("\t")[0] for line in predicted_lines] == [pair.first for pair in pairs("qab", 20)]
    assert {line.partition("\t")[2] for line in predicted_lines} <= {"contradiction", "entailment", "neutral"}


def write_two_languages(*, is_labelled: bool = True, head=("lang", "review", "sentiment"), language="swa"):
    rows = [("en", pair.first, pair.label) for pair in pairs("qaa", 60)]
    rows += [(language, pair.first, pair.label if is_labelled else "") for pair in pairs("qab", 20)]
    write_csv(Path("reviews.csv"), rows[::2] + rows[1::2], head)


@pytest.mark.parametrize("labelled_rows", [True, False])
def test_a_file_of_several_languages_is_parted_by_its_column(command, folder, labelled_rows):
    write_two_languages(is_labelled=labelled_rows)
    result = command("init", "--from", "reviews.csv")
    assert result.status == 0, result
    names = {"sw.dev", "sw.test"} if labelled_rows else {"sw.dev"}
    data = {path.name.removesuffix(".jsonl"): objects(path) for path in (folder / "reviews").glob("*.jsonl")}
    assert data.keys() == {"en.train", "en.dev", "en.test", *names}
    assert {row["text"] for name in names for row in data[name]} == {pair.first for pair in pairs("qab", 20)}
    assert sum(len(data[f"en.{split}"]) for split in ("train", "dev", "test")) == 60
    assert "isogloss predict runs/ID reviews/sw.dev.jsonl --out LABELS" in result.err
    runs = plan_recipe("recipe.toml", out=folder / "runs").runs
    measures = {(run.diagnostic.name, run.languages, run.split) for run in runs if run.name == "measure"}
    expected = {("scores", ("en", "sw"), "test")} if labelled_rows else {("label-free", ("en", "sw"), "dev")}
    assert expected <= measures


def test_the_source_and_the_column_of_languages_may_be_named(command, folder):
    write_two_languages(head=("where", "review", "sentiment"))
    assert "(en)" in command("init", "--from", "reviews.csv").message
    texts = ("init", "--from", "reviews.csv", "--language-column", "where")
    assert "no column 'wher'. Did you mean 'where'?" in command(*texts[:-1], "wher").message
    assert "found targets de; expected languages" in command(*texts, "--target", "de").message
    assert command(*texts, "--source", "sw").status == 0
    recipe = tomllib.loads((folder / "recipe.toml").read_text())
    assert (recipe["grid"]["source"], recipe["grid"]["targets"]) == ("sw", ["en"])


def test_languages_that_are_no_codes_are_refused(command, folder):
    write_two_languages(language="Swahili")
    message = command("init", "--from", "reviews.csv").message
    assert "reviews.csv: column 'lang':" in message


@pytest.mark.nightly
@pytest.mark.slow
def test_a_table_of_two_languages_leads_to_predictions_of_an_ensemble(command, folder):
    write_two_languages(is_labelled=False)
    assert command("init", "--from", "reviews.csv", "--seeds", "2").status == 0
    texts = ("run", "recipe.toml", "--out", "runs", "--jobs", 1, "--set", "grid.optimization={epochs=1}")
    assert command(*texts).status == 0
    (row,) = command("choose", "runs", "--json").lines
    assert (row["language"], row["expected"]) == ("sw", None)
    runs = [f"runs/{model}" for model in row["ensemble"]]
    assert f"isogloss predict {' '.join(runs)} FILE" in command("choose", "runs").out
    assert command("predict", *runs, "reviews/sw.dev.jsonl", "--out", "sw.jsonl").status == 0
    labels = [line["label"] for line in objects(folder / "sw.jsonl")]
    assert len(labels) == 20
    assert set(labels) <= {"contradiction", "entailment", "neutral"}


def test_target_rows_with_labels_that_the_source_lacks_are_scored(command, folder):
    tree = "1\tx{0}\t_\t{1}\t_\t_\t0\troot\t_\t_\n\n"
    (folder / "te.conllu").write_text("".join(tree.format(index, "NOUN") for index in range(20)))
    upos = ("NOUN", "AUX")
    (folder / "mr.conllu").write_text("".join(tree.format(index, upos[index % 2]) for index in range(20)))
    result = command("init", "--from", "te.conllu", "--source", "te", "--target", "mr=mr.conllu")
    assert result.status == 0
    rows = [*objects(folder / "te/mr.dev.jsonl"), *objects(folder / "te/mr.test.jsonl")]
    assert sum(row["labels"] == ["AUX"] for row in rows) == 10
    assert "Labels that the source lacks, which are scored and never learned: AUX 10." in result.err


def test_names_marked_by_offsets_become_a_corpus_of_spans(command, folder):
    bodies = [{"text": f"Ana Li saw Oslo {index}.", "label": [[0, 6, "PER"]]} for index in range(20)]
    (folder / "ner.jsonl").write_text("".join(json.dumps(body) + "\n" for body in bodies))
    result = command("init", "--from", "ner.jsonl", "--target", "sw=swahili.txt")
    assert result.status == 0
    assert "spans by offsets as doccano or spaCy writes them" in result.err
    row = objects(folder / "ner/en.test.jsonl")[0]
    assert row["labels"][:2] == ["B-PER", "I-PER"]
    assert row["words"][-1] == "."
