"""Formats are known by name or first line, and output preserves the input and adds labels."""

import gzip
import json
import lzma

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.files import disk_file
from isogloss.using.formats import format_of
from used import KINDS, join_lines, read_and_write, text_file

CONLLU = "# sent_id = s\n1\tAnna\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No\n2\t.\t_\t_\t_\t_\t_\t_\t_\t_\n\n"


@pytest.mark.parametrize(
    ("task", "name", "text", "expected"),
    [
        ("upos", "a.conllu", "", "conllu"),
        ("upos", "a.conllu.gz", "", "conllu"),
        ("upos", "a.txt", "a\tb\n", "lines"),
        ("upos", "a.tsv.xz", "", "tsv"),
        ("upos", "a.jsonl", "", "jsonl"),
        ("upos", "a", CONLLU, "conllu"),
        ("upos", "a", "# not a comment of CoNLL-U\nwords\n", "lines"),
        ("upos", "a", "#\n" * 99, "lines"),
        ("upos", "a", "\n\nAnna\tB-PER\n", "tsv"),
        ("upos", "a", '{"words": []}\n', "jsonl"),
        ("upos", "a", "", "lines"),
        ("upos", "a", "Anna PROPN\nran VERB\n", "columns"),
        ("ner", "a.txt", "Anna\tB-PER\nran\tO\n", "columns"),
        ("ner", "a.conll", "# id 5 domain=dev\nAnna _ _ S-PER\n# _ _ O\n", "columns"),
        ("ner", "a", "-DOCSTART- -X- O O\n\nAnna NNP B-NP B-PER\n", "columns"),
        ("ner", "a", "Blood type\nO O\n", "lines"),
        ("ner", "a", "Vitamin B-12\n", "lines"),
        ("ner", "a", "Anna O\nran home O\n", "lines"),
        ("nli", "a.txt", "", "tsv"),
        ("nli", "a", "", "tsv"),
        ("nli", "a", '{"texts": ["a", "b"]}\n', "jsonl"),
        ("qa", "a.json", "", "squad"),
        ("qa", "a", '{\n"data"', "squad"),
        ("qa", "a", '{"data": []}\n', "squad"),
        ("qa", "a", '{"question": "", "context": ""}\n', "jsonl"),
    ],
)
def test_a_format_is_known_by_the_name_or_the_first_line(task, name, text, expected):
    chosen_field, file = format_of(text_file(text, name), KINDS[task], task)
    assert chosen_field.name == expected
    assert "".join(file.read()) == text


def test_a_format_the_task_has_not_is_refused():
    with pytest.raises(ConfigError, match=r"upos 'conlu'.*'conllu'\?"):
        format_of(text_file(""), KINDS["upos"], "upos", "conlu")
    with pytest.raises(ConfigError, match=r"a.conllu: .*conllu.*nli"):
        format_of(text_file("", "a.conllu"), KINDS["nli"], "nli")
    with pytest.raises(ConfigError, match=r"a.csv: .*csv.*upos"):
        format_of(text_file("word,tag\n", "a.csv"), KINDS["upos"], "upos")


@pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
def test_every_kind_reads_json_lines(kind):
    assert "jsonl" in {field.name for field in kind.formats}


def test_lines_get_a_tab_and_their_labels():
    folder = read_and_write("upos", "Anna  was\there\n\n . \n", [("A", "B", "C"), ("D",)], wanted="lines")
    assert folder == "Anna  was\there\tA B C\n\n . \tD\n"


def test_lines_get_probabilities_where_asked():
    assert read_and_write("upos", "a b\n", [("X", "Y")], scores=[(0.5, 1.0)]) == "a b\tX Y\t0.5000 1.0000\n"


def test_upos_goes_into_its_column_and_entities_into_the_last():
    upos = read_and_write("upos", CONLLU, [("PROPN", "PUNCT")])
    assert upos == CONLLU.replace("Anna\t_\t_", "Anna\t_\tPROPN").replace(".\t_\t_", ".\t_\tPUNCT")
    ner = read_and_write("ner", CONLLU, [("B-PER", "O")])
    lines = CONLLU.replace("SpaceAfter=No", "SpaceAfter=No|NER=B-PER").splitlines()
    assert ner == join_lines([*lines[:2], lines[2][:-1] + "NER=O", ""])


def test_probabilities_of_conllu_go_into_the_last_column():
    text = read_and_write("upos", CONLLU, [("PROPN", "PUNCT")], scores=[(0.25, 0.5)])
    assert [line.split("\t")[-1] for line in text.splitlines()[1:3]] == [
        "SpaceAfter=No|Score=0.2500",
        "Score=0.5000",
    ]


def test_files_of_conll_keep_their_comments_and_columns():
    text = "-DOCSTART- _ O\n\n# id 5\nAnna _ O\n# _ O\n\n# id 6\nhome _ O"
    folder = read_and_write("ner", text, [("B-PER", "O"), ("O",)], scores=[(1, 0.5), (1,)])
    assert folder == (
        "-DOCSTART- _ O\n\n# id 5\nAnna _ O B-PER 1.0000\n# _ O O 0.5000\n\n# id 6\nhome _ O O 1.0000\n"
    )
    words = [
        json.loads(line)["words"] for line in read_and_write("ner", text, "AB", as_json=True).splitlines()
    ]
    assert words == [["Anna", "#"], ["home"]]


def test_comments_of_tables_are_no_words():
    folder = read_and_write("ner", "# id 5\nAnna\tO\n#\tO\n\n", [("B-PER", "O")])
    assert folder == "# id 5\nAnna\tO\tB-PER\n#\tO\tO\n\n"


def test_words_with_spaces_inside_stay_one_word():
    folder = read_and_write("upos", "Việt Nam\nđẹp\n\n", [("PROPN", "ADJ")], wanted="tsv")
    assert folder == "Việt Nam\tPROPN\nđẹp\tADJ\n\n"


def test_a_word_a_line_keeps_its_other_columns():
    folder = read_and_write(
        "ner", "Anna\tO\nran\tO\n\n\nhome\tO", [("B-PER", "O"), ("O",)], scores=[(1, 1), (1,)]
    )
    assert folder == "Anna\tO\tB-PER\t1.0000\nran\tO\tO\t1.0000\n\n\nhome\tO\tO\t1.0000\n"
    with pytest.raises(DataError, match=r"input:2: .*'\\tO'.*0"):
        read_and_write("ner", "Anna\tO\n\tO\n", [])


def test_choices_get_the_index_of_an_option_and_its_probabilities():
    item = {"context": "a", "options": ["b", "c"], "prompt": "cause", "source": "x"}
    folder = read_and_write("multiple-choice", json.dumps(item), [0], scores=[{"0": 0.75, "1": 0.25}])
    assert json.loads(folder) == item | {"label": 0, "scores": {"0": 0.75, "1": 0.25}}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"context": "a"}', "input:1:"),
        (
            '{"context": "a", "options": ["b"]}',
            "input:1:",
        ),
        (
            '{"context": "a", "options": "bc"}',
            "input:1:",
        ),
        ('{"context": 3, "options": ["b", "c"]}', "input:1:"),
        ('{"context": "a", "question": null, "options": ["b", "c"]}', "input:1:"),
    ],
)
def test_a_choice_that_is_none_is_named_with_its_line(line, message):
    with pytest.raises(DataError, match=message):
        read_and_write("multiple-choice", line, [])
    with pytest.raises(DataError, match=r"context.*options.*question"):
        KINDS["multiple-choice"].example(("a", ["b", "c"]), "input 0", "")


def test_pairs_keep_their_columns_and_get_a_label():
    assert read_and_write("nli", "a\tb\n\nc\td\n", ["neutral"] * 2) == "a\tb\tneutral\n\nc\td\tneutral\n"
    assert read_and_write("nli", "a\tb\tgold\n", ["neutral"]) == "a\tb\tgold\tneutral\n"


def test_pairs_are_found_by_their_header():
    text = "id\tlabel\tsentence1\tsentence2\n7\t0\ta\tb\n"
    choice, file = format_of(text_file(text), KINDS["paraphrase"], "paraphrase")
    header, entry = choice.read(file, "")
    assert header.example is None
    assert (entry.example.first, entry.example.second) == ("a", "b")
    sure_links = [{"0": 0.25, "1": 0.75}]
    assert read_and_write("paraphrase", text, ["1"]) == text.replace("2\n", "2\tpredicted\n").replace(
        "b\n", "b\t1\n"
    )
    assert read_and_write("paraphrase", text, ["1"], scores=sure_links).splitlines() == [
        "id\tlabel\tsentence1\tsentence2\tpredicted\tscores",
        "7\t0\ta\tb\t1\t0=0.2500 1=0.7500",
    ]
    assert read_and_write("paraphrase", text.splitlines()[0], []) == text.splitlines()[0] + "\tpredicted\n"


@pytest.mark.parametrize("line", ["one", "a\t", "\tb", " \tb"])
def test_what_is_no_pair_is_refused_with_its_line(line):
    with pytest.raises(DataError, match="input:2:"):
        read_and_write("nli", f"a\tb\n{line}\n", ["neutral"] * 2)
    with pytest.raises(DataError, match=r"input:1: "):
        read_and_write("nli", f"{line}\n", ["neutral"])


def test_a_blank_text_among_other_columns_is_said():
    with pytest.raises(DataError, match="input:2:"):
        read_and_write("nli", "a\tb\t7\tx\nc\t \t7\tx\n", ["neutral"] * 2)


def test_rows_of_another_width_are_refused():
    with pytest.raises(DataError, match=r"input:2: .*'a\\tb'.*3"):
        read_and_write("nli", "a\tb\tc\na\tb\n", ["neutral"] * 2)


def test_json_lines_keep_their_keys():
    text = '{"id": 7, "words": ["Việt Nam"]}\n\n{"text": "a b"}\n{"words": []}\n'
    lines = [json.loads(line) for line in read_and_write("upos", text, [("X",), ("Y", "Z")]).splitlines()]
    assert lines == [
        {"id": 7, "words": ["Việt Nam"], "labels": ["X"]},
        {"text": "a b", "words": ["a", "b"], "labels": ["Y", "Z"]},
        {"words": [], "labels": []},
    ]
    (pair,) = read_and_write("nli", '{"text": "a", "text_pair": "b"}\n', ["neutral"]).splitlines()
    assert json.loads(pair) == {"text": "a", "text_pair": "b", "texts": ["a", "b"], "label": "neutral"}


@pytest.mark.parametrize(
    ("task", "line", "message"),
    [
        ("upos", "{", "input:1: .*JSON"),
        ("upos", '{"words": ["\\ud800"]}', "input:1: .*JSON"),
        ("upos", "[]", r"input:1: .*'\[\]'.*JSON"),
        ("upos", '{"word": 1}', "input:1:"),
        ("upos", '{"words": [1]}', "input:1: .*1"),
        ("upos", '{"words": 3}', "input:1: .*3"),
        ("nli", "{}", "input:1: .*text_pair"),
        ("nli", '{"texts": "ab"}', "input:1:"),
        ("qa", '{"question": "?"}', "input:1:"),
        ("qa", '{"question": "?", "context": 1}', "input:1:"),
    ],
)
def test_a_broken_json_line_is_named(task, line, message):
    with pytest.raises(DataError, match=message):
        read_and_write(task, line + "\n", [], wanted="jsonl")


def test_squad_in_gives_answers_by_id():
    arguments = [{"id": "a", "question": "?"}, {"id": "b", "question": "?", "answers": []}]
    text = json.dumps({"data": [{"paragraphs": [{"context": "É", "qas": arguments}]}]})
    assert json.loads(read_and_write("qa", text, ["É", ""])) == {"a": "É", "b": ""}
    lines = read_and_write("qa", text, ["É", ""], as_json=True).splitlines()
    assert [json.loads(line) for line in lines] == [{"id": "a", "answer": "É"}, {"id": "b", "answer": ""}]
    assert read_and_write("qa", '{"data": []}', []) == "{}\n"


def test_squad_with_an_id_twice_is_refused():
    qas = [{"id": "a", "question": "?"}] * 2
    text = json.dumps({"data": [{"paragraphs": [{"context": "", "qas": qas}]}]})
    with pytest.raises(DataError, match="question a:"):
        read_and_write("qa", text, ["", ""])


def test_json_says_where_a_sentence_was_and_passes_comments_over():
    lines = read_and_write(
        "upos", "# c\n\n" + CONLLU, [("A", "B")], wanted="conllu", as_json=True
    ).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"line": 3, "id": "s", "words": ["Anna", "."], "labels": ["A", "B"]}
    ]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bytes])
def test_packed_files_marks_and_line_ends_are_read(tmp_path, pack):
    ending = {gzip.compress: ".gz", lzma.compress: ".xz"}.get(pack, "")
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(pack("\ufeffa b\r\nc\x00d\r\n".encode()))
    choice, file = format_of(disk_file(path), KINDS["upos"], "upos")
    assert [entry.example.words for entry in choice.read(file, "")] == [("a", "b"), ("c\x00d",)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"text": "caf\\u00e9", "n": 1e3, "x": 1.50}', ', "words": ["café"], "labels": ["X"]}'),
        ('  {"words":["a"],"id":7E0}', ', "labels": ["X"]}'),
        ('{"words": ["a"] }  ', ', "labels": ["X"]}'),
    ],
)
def test_a_json_line_keeps_its_characters_and_gets_new_keys_at_its_end(line, expected):
    folder = read_and_write("upos", line, [("X",)], wanted="jsonl")
    assert folder == f"{line.rstrip()[:-1]}{expected}\n"
    assert read_and_write("upos", line, [("X",)], wanted="jsonl", as_json=True) == folder


def test_a_json_line_that_has_the_key_is_written_anew_unless_it_says_the_same():
    line = '{"text": "a", "text_pair": "b", "n": 1e3, "label": "neutral"}'
    assert read_and_write("nli", line, ["neutral"]) == f'{line[:-1]}, "texts": ["a", "b"]}}\n'
    (other_line,) = read_and_write("nli", line, ["entailment"]).splitlines()
    assert (
        other_line
        == '{"text": "a", "text_pair": "b", "n": 1000.0, "label": "entailment", "texts": ["a", "b"]}'
    )


@given(st.text(alphabet='ab \t\n\r#1_.{}"\x00\x85\u2028é'), st.sampled_from(["upos", "nli", "qa"]))
def test_any_text_is_read_or_refused_with_its_file(text, task):
    for item in KINDS[task].formats:
        try:
            entries = list(item.read(text_file(text), ""))
        except DataError as error:
            assert str(error).startswith("input")
        else:
            if item.write is not None and task != "qa":
                assert (
                    list(item.write((entry, None) for entry in entries if entry.example is None)) is not None
                )
