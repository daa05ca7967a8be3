"""isogloss corpus check: a described corpus read whole, in numbers, in JSON, and what does not fit in it."""

import pytest

GOOD = "label\ttext\nloc\ta b\nper\tc d\n"


@pytest.fixture
def description(tmp_path):
    for split in ("train", "test"):
        (tmp_path / f"sw-{split}.tsv").write_text(GOOD, encoding="utf-8")
    path = tmp_path / "topics.toml"
    path.write_text('kind = "text"\nfiles = "{language}-{split}.tsv"\n', encoding="utf-8")
    return path


def test_a_corpus_that_fits_is_told_in_numbers(command, description):
    result = command("corpus", "check", description)
    assert (result.status, result.err) == (0, "")
    assert "topics: text, text-classification, read as tsv. Labels: loc, per." in result.out
    assert "loc 1, per 1" in result.out
    train, test = command("corpus", "check", description, "--json").lines
    assert (train["language"], train["split"], train["examples"]) == ("sw", "train", 2)
    assert (test["labels"], test["trained"], test["first"]) == ({"loc": 1, "per": 1}, 2, "a b")


def test_choices_are_told_by_the_place_of_the_right_option(command, tmp_path):
    rows = [
        '{"context": "a", "options": ["b", "c", "d"], "label": 2}',
        '{"context": "e", "options": ["f", "g"], "label": 0}',
    ]
    (tmp_path / "sw.jsonl").write_text("\n".join(rows), encoding="utf-8")
    path = tmp_path / "picks.toml"
    path.write_text('kind = "choice"\nfiles = "{language}.jsonl"\n', encoding="utf-8")
    result = command("corpus", "check", path)
    assert (result.status, result.err) == (0, "")
    assert "picks: choice, multiple-choice, read as jsonl. Labels: options, counted from 0." in result.out
    (line,) = command("corpus", "check", path, "--json").lines
    assert (line["labels"], line["first"]) == ({"2": 1, "0": 1}, "a\tb\tc\td")


def test_rows_that_do_not_fit_are_named_and_end_it_badly(command, description):
    (description.parent / "sw-test.tsv").write_text(GOOD + "lock\te\nloc\t \n", encoding="utf-8")
    with description.open("a", encoding="utf-8") as file:
        file.write('labels = ["loc", "per"]\n')
    result = command("corpus", "check", description)
    assert result.status != 0
    assert "sw-test.tsv:4: label 'lock'; expected one of loc, per" in result.err
    assert "sw-test.tsv:5:" in result.err
    assert "topics.toml: 2 rows" in result.err
    assert command("corpus", "check", description.with_name("none.toml")).status != 0


def test_labels_that_steer_a_terminal_are_told_without_that(command, description):
    rows = "label\ttext\n\x1b]0;pwn\x07z\ta b\n"
    for split in ("train", "test"):
        (description.parent / f"sw-{split}.tsv").write_text(rows, encoding="utf-8")
    result = command("corpus", "check", description)
    assert result.status == 0
    assert "Labels: ]0;pwnz." in result.out
    assert "\x1b" not in result.out


def test_a_quiet_check_says_nothing(command, description):
    result = command("corpus", "check", description, "--quiet")
    assert (result.status, result.out, result.err) == (0, "", "")


def test_a_shipped_description_is_checked_by_its_name(command, tmp_path):
    (tmp_path / "sib200" / "swh_Latn").mkdir(parents=True)
    row = "index_id\tcategory\ttext\n1\tscience/technology\tNi jua.\n"
    (tmp_path / "sib200" / "swh_Latn" / "test.tsv").write_text(row)
    result = command("corpus", "check", "sib200", "--data", tmp_path)
    assert (result.status, result.err) == (0, "")
    assert "sib200: text, text-classification, read as csv." in result.out
    assert (
        "Fetch it: isogloss fetch sib200"
        in command("corpus", "check", "sib200", "--data", tmp_path / "sib200").message
    )


def test_gold_alignments_in_a_folder_of_ones_own_are_found_as_the_error_says(command, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "enfr.src-tgt").write_text("a b ||| c d\ne ||| f\n")
    (tmp_path / "mine" / "enfr.gold").write_text("1-1 2p2\n1-1\n")
    texts = ("align", "bitext:mine", "en-fr", "--data", tmp_path, "--out", tmp_path / "out", "--json")
    message = command(*texts, "--split", "test").message
    assert "(--split train)" in message
    assert "(en-fr.test.tsv)" in message
    (row,) = command(*texts, "--split", "train").lines
    assert (row["split"], row["pairs"], row["gold_pairs"]) == ("train", 2, 2)
    (tmp_path / "mine").rename(tmp_path / "word-alignment")
    texts = ("align", "bitext:word-alignment", *texts[2:])
    (row,) = command(*texts, "--split", "test").lines
    assert (row["split"], row["gold_pairs"], row["aer"]) == ("test", 2, 0)


def test_a_described_corpus_is_translated_and_aligned(command, tmp_path):
    from isogloss.features.built_in_languages import examples, translations

    texts = [
        " ".join(example.words)
        for example, _ in zip(examples("wikiann", "qaa", "train"), range(6), strict=False)
    ]
    (tmp_path / "qaa.tsv").write_text(
        "text\tlabel\n" + "".join(f"{text}\tx\n" for text in texts), encoding="utf-8"
    )
    (tmp_path / "texts.toml").write_text('kind = "text"\nfiles = "{language}.tsv"\n', encoding="utf-8")
    arguments = (
        "--from",
        "qaa",
        "--into",
        "qab",
        "--translator",
        "built-in",
        "--out",
        tmp_path / "out",
        "--json",
    )
    (row,) = command("translate", tmp_path / "texts.toml", *arguments).lines
    assert (row["corpus"], row["translated"]) == ("texts", 6)
    pairs = zip(translations("qaa", "qab", "train"), range(8), strict=False)
    rows = "".join(f"{pair.first}\t{pair.second}\n" for pair, _ in pairs)
    (tmp_path / "qaa-qab.tsv").write_text("first\tsecond\n" + rows, encoding="utf-8")
    (tmp_path / "both.toml").write_text('kind = "bitext"\nfiles = "{language}.tsv"\n', encoding="utf-8")
    (row,) = command("align", tmp_path / "both.toml", "qaa-qab", "--out", tmp_path / "out", "--json").lines
    assert (row["bitext"], row["pairs"]) == ("both", 8)
