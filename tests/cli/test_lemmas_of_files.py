"""Lemmas in addition to tags, from files of CoNLL-U to predictions in their column."""

from string import ascii_lowercase

import pytest

from isogloss.core.records import read_record
from isogloss.tasks import find_task

DESCRIBED = 'kind = "tagging"\nfiles = "{language}.{split}.conllu"\ncolumns = { label = "%s" }\n'
RECIPE = """
title = "Lemmas in addition to tags"
encoder = "shipped"

[grid]
corpus = "verse-parts.toml"
source = "en"
targets = ["de"]
seeds = [0]
optimization = { epochs = 1, batch_size = 8, checkpoint_every = 0 }

[[grid.method]]
name = "source-only"
auxiliary = { name = "multi-task", tasks = ["lemmas:verse-lemmas.toml"] }
"""


LINES = (
    "1\tDogs\tdog\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_",
    "2\tgo\tgo\tVERB\t_\tTense=Pres\t0\troot\t_\t_",
    "3-4\tcan't\t_\t_\t_\t_\t_\t_\t_\t_",
    "3\tcan\tcan\tAUX\t_\tTense=Pres\t2\taux\t_\t_",
    "4\tn't\tnot\tPART\t_\t_\t2\tadvmod\t_\tSpaceAfter=No",
    "4.1\tgo\tgo\tVERB\t_\t_\t_\t_\t2:conj\t_",
    "",
)


@pytest.fixture
def folder(tmp_path):
    """Files of treebanks, with the features of words and with their lemmas."""
    for language in ("de", "en"):
        for split in ("train", "dev", "test"):
            (tmp_path / f"{language}.{split}.conllu").write_text(
                "\n".join(LINES * 8) + "\n", encoding="utf-8"
            )
    (tmp_path / "verse-lemmas.toml").write_text(DESCRIBED % "LEMMA", encoding="utf-8")
    (tmp_path / "verse-parts.toml").write_text(DESCRIBED % "FEATS", encoding="utf-8")
    (tmp_path / "further.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def test_the_check_of_a_corpus_counts_rules(folder, command):
    checked_result = command("corpus", "check", folder / "verse-lemmas.toml")
    assert checked_result.status == 0 and "lemmas, read as conllu" in checked_result.out
    assert "Labels: 4 rules from word to lemma" in checked_result.out and "lower | -1 8" in checked_result.out
    assert "lemmas" in checked_result.out


def test_init_describes_the_lemmas_of_a_file(folder, command):
    text = "\n".join("\n".join(LINES).replace("og", letter) for letter in ascii_lowercase)
    (folder / "words.conllu").write_text(text, encoding="utf-8")
    result = command(
        *("init", folder / "mine.toml", "--from", folder / "words.conllu", "--label", "LEMMA"),
        *("--source", "en", "--target", f"de={folder / 'words.conllu'}"),
    )
    assert result.status == 0, result.err
    (described_path,) = folder.glob("words/words.toml")
    assert 'predicts = "lemma"' in described_path.read_text(encoding="utf-8")
    assert "lower | 52" in result.out + result.err
    planned_result = command("run", folder / "mine.toml", "--dry-run")
    assert planned_result.status == 0 and "lemmas" in planned_result.out
    assert command("run", folder / "further.toml", "--dry-run").out.endswith("\n1 run: 0 done, 1 to make\n")
    refused_result = command(
        *("init", folder / "other.toml", "--from", folder / "en.dev.conllu", "--label", "LEMA"),
        *("--source", "en", "--target", f"de={folder / 'words.conllu'}"),
    )
    assert "Did you mean 'LEMMA'" in refused_result.message


@pytest.mark.nightly
@pytest.mark.slow
def test_lemmas_are_learned_in_addition_to_tags_and_predicted_into_their_column(folder, command):
    assert command("run", folder / "further.toml", "--out", folder / "runs", "--no-report").status == 0
    (head,) = (folder / "runs").glob("*/model/tasks/lemmas")
    (row,) = [row for row in read_record(head.parents[2]).rows if "further_task" in row]
    assert (row["further_task"], row["further_corpus"], row["metric"]) == (
        "lemmas",
        "verse-lemmas",
        "accuracy",
    )
    gold = folder / "de.test.conllu"
    predicted_output = command("predict", head, gold, "--scores").out
    read, parts = (
        [line.split("\t") for line in text.splitlines()] for text in (gold.read_text(), predicted_output)
    )
    assert len(read) == len(parts)
    assert all(
        line[:2] + line[3:9] == other_part[:2] + other_part[3:9]
        for line, other_part in zip(read, parts, strict=True)
    )
    words = [line for line in parts if line[0].isdigit()]
    assert len(words) == 32 and all("Score=" in line[9] and line[2] != "_" for line in words)
    (evaluated_line,) = command(
        *("evaluate", head, "--corpus", folder / "verse-lemmas.toml", "--language", "de", "--json"),
    ).lines
    right = sum(
        line[2] == other_part[2] for line, other_part in zip(read, parts, strict=True) if line[0].isdigit()
    )
    assert (
        evaluated_line["score"] == pytest.approx(right / 32)
        and evaluated_line["task"] == find_task("lemmas").name
    )


def test_lemmas_are_not_translated(folder, command):
    refused_result = command(
        *(
            "translate",
            folder / "verse-lemmas.toml",
            "--from",
            "en",
            "--into",
            "de",
            "--out",
            folder / "translated",
        ),
        *("--translator", "built-in"),
    )
    assert "lemmas" in refused_result.message
