"""choose: a choice with its regrets, the candidates of a language, JSON lines, and what it needs."""

import pytest

from tiny import TINY, tiny

MEASURED = """
[[measure]]
name = "label-free"
split = "dev"
examples = 8

[[measure]]
name = "scores"
examples = 8
"""


def test_choose_says_why_models_without_label_free_are_not_ranked(command, tiny_runs):
    result = command("choose", tiny_runs)
    assert result.status == 0
    assert f"{tiny_runs}: No ranking: no model was measured by label-free" in result.out
    assert '[[measure]] name = "label-free"' in result.out
    (row,) = command("choose", tiny_runs, "--json", "--language", "sw").lines
    assert row["note"].startswith("No ranking")


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_choose_prints_choices_regrets_and_candidates(command, tmp_path):
    recipe = tiny(tmp_path, TINY.partition('[[grid.method]]\nname = "bilingual"')[0] + MEASURED)
    result = command("run", recipe, "--out", tmp_path / "r", "--jobs", 1, "--no-report", "--quiet")
    assert (result.status, result.out, result.err) == (0, "", "")
    ended_result = command("choose", tmp_path / "r")
    assert "  records: 0/6" in ended_result.err and "  answers: 0/2" in ended_result.err
    table = ended_result.out
    assert table.splitlines()[0] == "wikiann ner, source qaa: the choice without labels"
    assert "don't know" in table and "chosen by" in table and "source score" in table
    assert "[" not in table.partition("chosen by")[2].partition("Points of")[0]
    rows = command("choose", tmp_path / "r", "--json", "--language", "qad").lines
    assert [row["language"] for row in rows] == ["qad"] and rows[0]["model"] in table
    assert {row["model"] for row in rows[0]["ranking"]} > {rows[0]["model"]}
    assert rows[0]["candidates"] == 2 and rows[0]["expected"] is None and rows[0]["regret"] >= 0
    assert set(rows[0]["ensemble"]) == {row["model"] for row in rows[0]["ranking"]}
    assert rows[0]["other_languages"] == 1 and 0 <= rows[0]["others"] <= 1
    output = command("choose", tmp_path / "r", "--language", "qab").out
    assert all(f"source-only, seed {seed}" in output for seed in (0, 1))
    rows = command("choose", tmp_path / "r", "--json", "--language", "qad,qab").lines
    assert sorted(row["language"] for row in rows) == ["qab", "qad"]
    assert "atc" in output and "agreement" in output
    assert "Known: qab, qad" in command("choose", tmp_path / "r", "--language", "sw", "--quiet").message


@pytest.mark.slow
def test_choose_ranks_source_languages_by_facts_and_texts(command):
    built_in = ("--corpus", "wikiann", "--language", "qad")
    rows = command("choose", "--source", "qaa,qab", *built_in, "--json").lines
    assert {row["language"] for row in rows} == {"qaa", "qab"} and rows[0]["rule"] > rows[1]["rule"]
    assert rows[0]["family"] is None and 0 < rows[1]["trigrams"] < rows[0]["trigrams"] < 1
    output = command("choose", "--source", "en,ar,hi", "--language", "sw").out
    assert "Source languages for Swahili (sw), the rule's choice first" in output
    assert output.index("English (en)") < output.index("Arabic (ar)")
    for words in (("--source", "en"), (), ("runs", "--source", "en", "--language", "sw")):
        assert "either" in command("choose", *words).message
    missing = command("choose", "--source", "qaa,qab", "--corpus", "wikian", "--language", "qad")
    assert "Did you mean 'wikiann'?" in missing.message


def test_the_choice_of_a_source_is_not_known_where_nothing_tells_candidates_apart(command):
    output = command("choose", "--source", "en,pl", "--language", "sr").out
    assert "Source languages for sr, don't know, as en and pl" in output
    rows = command("choose", "--source", "xx,en,fr", "--language", "sw", "--json").lines
    assert [row["language"] for row in rows] == ["en", "fr", "xx"]
    assert "en and fr" in rows[0]["doubt"]
    assert rows[2]["rule"] is None


def test_texts_of_a_described_corpus_rank_sources_too(command, tmp_path):
    for language, text in (("swh", "habari ya asubuhi"), ("yor", "ẹ káàárọ̀ o"), ("zul", "habari za leo")):
        folder = tmp_path / "sib200" / f"{language}_Latn"
        folder.mkdir(parents=True)
        (folder / "train.tsv").write_text(f"index_id\tcategory\ttext\n1\ttravel\t{text}\n", encoding="utf-8")
    candidates = ("--source", "yor_Latn,zul_Latn", "--language", "swh_Latn")
    rows = command("choose", *candidates, "--corpus", "sib200", "--data", tmp_path, "--json").lines
    assert [row["language"] for row in rows] == ["zu", "yo"]
    assert rows[0]["trigrams"] > rows[1]["trigrams"]


@pytest.mark.slow
def test_an_encoder_ranks_sources_by_their_nearest_words(command):
    words = ("choose", "--source", "qab,qaf,qaa", "--language", "qad", "--corpus", "ud")
    rows = command(*words, "--encoder", "shipped", "--json").lines
    assert [row["language"] for row in rows] == ["qaa", "qab", "qaf"]
    assert sum(row["neighbours"] for row in rows) == pytest.approx(1)
    assert rows[0]["behind"] == 0 and rows[0]["error"] is None and rows[1]["error"] > 0
    assert 0 < rows[0]["trigrams"] < 1
    output = command(*words, "--encoder", "shipped").out
    assert "Source languages for Dunar (qad), the nearest first" in output
    assert output.index("Ansa (qaa)") < output.index("Fileo (qaf)")


def test_an_encoder_without_a_corpus_or_sources_is_refused(command):
    message = command("choose", "--source", "en,ar", "--language", "sw", "--encoder", "shipped").message
    assert "shipped" in message and "--corpus" in message
    assert "either" in command("choose", "--language", "sw", "--encoder", "shipped").message
