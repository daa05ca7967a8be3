"""Described corpora: every format comes to the same examples; what does not fit is named with its line."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.described import DescribedCorpus, inventory
from isogloss.data.examples import Choice, LabelledText, SentencePair, TaggedSentence, TextLine, Translation
from isogloss.data.files import DiskFolder, File
from isogloss.data.forms import FORMS, SUFFIXES
from isogloss.data.sources import Sources
from isogloss.data.tables import rows
from isogloss.experiments.described_contents import looked_through
from isogloss.experiments.descriptions import described, known_as

TEXTS = [("Hujambo dunia", "salamu"), ('He said "no", twice', "kauli"), ("Jua, mwezi; nyota", "anga")]


def write(folder: Path, body: str, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    (folder / "own.toml").write_text(body, encoding="utf-8")
    return folder / "own.toml"


def parquet(path: Path, table: list[dict[str, object]]) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow
    from pyarrow.parquet import write_table

    write_table(pyarrow.Table.from_pylist(table), path)


def read(path: Path, language: str = "sw", split: str = "train") -> list[object]:
    return list(described(path).read(None, language, split))


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


TSV = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in TEXTS)
CSV = "label,text\n" + "".join(f"{quoted(label)},{quoted(text)}\n" for text, label in TEXTS)
SEMICOLONS = "".join(f"{quoted(text)};{label}\n" for text, label in TEXTS)
JSONL = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in TEXTS)


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("train-sw_DOT_tsv", TSV, ""),
        ("train-sw_DOT_csv", CSV, ""),
        ("train-sw_DOT_jsonl", JSONL, ""),
        ("train-sw_DOT_csv", SEMICOLONS, 'separator = ";"\ncolumns = { text = 0, label = -1 }\n'),
        ("train-sw_DOT_tsv", TSV.partition("\n")[2], "columns = { text = 0, label = 1 }\n"),
        (
            "train-sw_DOT_tsv",
            TSV.replace("text\tlabel", "id\tsaid", 1),
            'columns = { text = "id", label = "said" }\n',
        ),
    ],
)
def test_every_format_comes_to_the_same_examples(tmp_path, name, text, more):
    suffix = name.rpartition("_DOT_")[2]
    path = write(
        tmp_path, f'kind = "text"\nfiles = "{{split}}-{{language}}.{suffix}"\n{more}', **{name: text}
    )
    assert read(path) == [
        LabelledText(id=str(number), text=said, label=label) for number, (said, label) in enumerate(TEXTS)
    ]
    assert described(path).labels == ("anga", "kauli", "salamu")


def test_parquet_is_read_and_numbers_are_labels_in_their_order(tmp_path):
    table = [{"text": text, "label": number} for number, (text, _) in enumerate(TEXTS)]
    parquet(tmp_path / "train-sw.parquet", table)
    path = write(tmp_path, 'kind = "text"\nfiles = "{split}-{language}.parquet"\nlabels = ["a", "b", "c"]\n')
    assert [one.label for one in read(path)] == ["a", "b", "c"]
    (tmp_path / "train-sw.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match="no parquet file, or a damaged one"):
        read(path)


CONLL = "-DOCSTART- -X- O\n\n# sent_id = 1\nAnna B-PER\n# O\n\nLagos B-LOC\njana B-DATE\n\n"


def test_words_and_tags_of_conll(tmp_path):
    path = write(tmp_path, 'kind = "tagging"\nfiles = "{language}/{split}.txt"\n', sw__train_DOT_txt=CONLL)
    corpus = described(path)
    assert corpus.labels == ("O", "B-DATE", "I-DATE", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert corpus.tasks == ("span-tagging",)
    assert read(path) == [
        TaggedSentence(id="0", words=("Anna", "#"), tags=("B-PER", "O")),
        TaggedSentence(id="1", words=("Lagos", "jana"), tags=("B-LOC", "B-DATE")),
    ]


def test_bio_is_made_from_the_types_that_are_given_in_their_order(tmp_path):
    body = 'kind = "tagging"\nlabels = ["PER", "ORG", "LOC", "DATE"]\nfiles = "{language}/{split}.txt"\n'
    corpus = described(write(tmp_path, body, sw__train_DOT_txt=CONLL))
    types = ("PER", "ORG", "LOC", "DATE")
    assert corpus.labels == ("O", *(f"{mark}-{one}" for one in types for mark in "BI"))


@given(st.lists(st.sampled_from(["PER", "LOC", "X"]), unique=True, min_size=1))
def test_an_inventory_has_every_tag_that_was_seen_once(types):
    tags = [f"B-{one}" for one in types]
    assert set(tags) < set(inventory(["O", *tags], ()))
    assert len(set(inventory(tags, types))) == 1 + 2 * len(types)
    assert inventory(types, ()) == tuple(sorted(types))
    assert inventory(types, [*types, "UNSEEN"]) == (*types, "UNSEEN")


def test_pairs_translations_and_raw_text(tmp_path):
    pairs = "first\tsecond\tlabel\na b\tc\tyes\nd\te\t-\nf\tg\tno\n"
    body = 'kind = "pair"\nfiles = "{split}-{language}.tsv"\nskip = ["-"]\n'
    path = write(tmp_path, body, **{"train-sw_DOT_tsv": pairs})
    assert read(path) == [
        SentencePair(id="0", first="a b", second="c", label="yes"),
        SentencePair(id="2", first="f", second="g", label="no"),
    ]
    body = 'kind = "bitext"\nfiles = "{language}.tsv"\nlanguages = ["en-sw"]\n'
    body += "columns = { first = 0, second = 1 }\n"
    path = write(tmp_path, body, **{"en-sw_DOT_tsv": "sun\tjua\n"})
    assert read(path, "en-sw") == [Translation(id="0", first="sun", second="jua")]
    path = write(tmp_path, 'kind = "raw"\nfiles = "{language}.jsonl"\n', sw_DOT_jsonl='{"text": "jua"}\n')
    assert read(path) == [TextLine(id="0", text="jua")]


def test_where_chooses_the_rows_of_a_split_and_of_a_language(tmp_path):
    lines = [("sw", "train", "a"), ("sw", "valid", "b"), ("en", "train", "c"), ("sw", "train", "d")]
    table = "lang\tpart\ttext\tlabel\n" + "".join("\t".join([*one, "x"]) + "\n" for one in lines)
    body = 'kind = "text"\nfiles = "all.tsv"\nsplits = { train = "train", dev = "valid" }\n'
    body += 'languages = { sw = "sw", en = "en" }\nwhere = { lang = "{language}", part = "{split}" }\n'
    path = write(tmp_path, body, all_DOT_tsv=table)
    assert [(one.id, one.text) for one in read(path)] == [("0", "a"), ("3", "d")]
    assert [(one.id, one.text) for one in read(path, split="dev")] == [("1", "b")]
    assert [one.text for one in read(path, "en")] == ["c"]
    with pytest.raises(DataError, match=r"all\.tsv:1: the split is empty"):
        read(path, "en", "dev")
    with pytest.raises(DataError, match="It names no test file"):
        read(path, split="test")
    plain = write(tmp_path, body.replace('part = "{split}"', 'part = "valid"'))
    assert [one.text for one in read(plain)] == ["b"]
    with pytest.raises(DataError, match="It names no dev file"):
        read(plain, split="dev")


def test_a_column_to_choose_by_that_is_not_there_is_named(tmp_path):
    body = 'kind = "text"\nfiles = "{language}.EXT"\nlabels = ["x"]\nwhere = { prt = "{split}" }\n'
    path = write(tmp_path, body.replace("EXT", "jsonl"), sw_DOT_jsonl='{"part": "train", "text": "a"}\n')
    with pytest.raises(
        DataError, match=r"sw\.jsonl:1: no column 'prt' for where; expected one of part, text"
    ):
        read(path)
    path = write(tmp_path, body.replace("EXT", "tsv"), sw_DOT_tsv="part\ttext\tlabel\ntrain\ta\tx\n")
    with pytest.raises(DataError, match=r"sw\.tsv:1: a header without 'prt' Did you mean 'part'"):
        read(path)


CONLLU = """# sent_id = 1
1-2\tdel\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\tSP\t_\t2\tcase\t_\t_
2\tel\tel\tDET\tDA\tGender=Masc|Number=Sing\t0\troot\t_\t_
2.1\tvino\tvenir\tVERB\tVM\t_\t_\t_\t_\t_

1\tSí\tsí\tINTJ\tI\t_\t0\troot\t_\t_

"""


@pytest.mark.parametrize(
    ("columns", "tags"),
    [
        ("", [("ADP", "DET"), ("INTJ",)]),
        ('columns = { label = "XPOS" }', [("SP", "DA"), ("I",)]),
        ("columns = { label = 5 }", [("_", "Gender=Masc|Number=Sing"), ("_",)]),
    ],
)
def test_a_column_of_conllu_is_read_without_ranges_empty_nodes_and_comments(tmp_path, columns, tags):
    body = f'kind = "tagging"\nfiles = "{{language}}.conllu"\n{columns}\n'
    path = write(tmp_path, body, es_DOT_conllu=CONLLU)
    assert read(path, "es") == [
        TaggedSentence(id=str(number), words=words, tags=own)
        for number, (words, own) in enumerate(zip((("de", "el"), ("Sí",)), tags, strict=True))
    ]
    assert described(path).labels == tuple(sorted({tag for own in tags for tag in own}))
    with pytest.raises(DataError, match=r"es\.conllu:5: 3 columns in '2"):
        read(write(tmp_path, body, es_DOT_conllu=CONLLU.replace("2.1\tvino\tvenir\t", "2\tx\ty\n")), "es")


def test_a_json_list_is_read_object_by_object(tmp_path):
    body = 'kind = "text"\nfiles = "{language}.json"\nformat = "json"\nlabels = ["x", "y"]\n'
    good = '[\n  {"text": "a, ]", "label": 1},\n  {"text": "b",\n   "label": "x"}\n]\n'
    read_back = [("0", "a, ]", "y"), ("1", "b", "x")]
    assert [
        (one.id, one.text, one.label) for one in read(write(tmp_path, body, sw_DOT_json=good))
    ] == read_back
    for broken, said in (
        (good.replace('"x"', '"z"'), r"sw\.json:3: label 'z'"),
        (good.replace('"b",', '"b"'), r"sw\.json:3: .*delimiter.*expected a list of JSON objects"),
        (good.replace("\n]", ",\n 7]"), r"sw\.json:5: '7"),
        (good.replace("\n]", ""), r"sw\.json:3: no list, or one that does not end"),
        (good + "{}", r"sw\.json:3: no list, or one that does not end"),
        ('{"text": "a"}', r"sw\.json:1: no list"),
    ):
        with pytest.raises(DataError, match=said):
            read(write(tmp_path, body, sw_DOT_json=broken))


LINES = 'kind = "bitext"\nfiles = "{split}.{language}"\nformat = "lines"\n'


def test_any_two_files_of_lines_are_bitext(tmp_path):
    files = {
        "test_DOT_en": "sun\nmoon\n",
        "test_DOT_sw": "jua\nmwezi\n",
        "test_DOT_deu_Latn": "Sonne\nMond\n",
    }
    path = write(tmp_path, LINES, **files)
    assert read(path, "en-sw", "test") == [
        Translation(id="0", first="sun", second="jua"),
        Translation(id="1", first="moon", second="mwezi"),
    ]
    assert [one.second for one in read(path, "sw-de", "test")] == ["Sonne", "Mond"]
    found = [(one.language, one.examples) for one in looked_through(described(path))]
    assert found == [("de-en", 2), ("en-sw", 2)]


def test_what_is_no_bitext_of_lines_is_said(tmp_path):
    path = write(tmp_path, LINES, test_DOT_en="sun\nmoon\n", test_DOT_sw="jua\n", test_DOT_de="Sonne\n \n")
    with pytest.raises(
        DataError, match=r"test\.sw:1: the last line; expected as many lines as .*test\.en has"
    ):
        read(path, "en-sw", "test")
    with pytest.raises(DataError, match=r"test\.de:2: second is ' '; expected a text that is not blank"):
        read(path, "en-de", "test")
    with pytest.raises(ConfigError, match="'en' is no pair of languages"):
        read(path, "en", "test")
    with pytest.raises(DataError, match=r"has no language 'fi'\.( Did you mean .*)? It has: de, en, sw"):
        read(path, "en-fi", "test")
    with pytest.raises(DataError, match=r"no dev split .* Looked for dev\.en, dev\.sw"):
        read(path, "en-sw", "dev")


def test_raw_lines_are_texts_without_the_empty_ones(tmp_path):
    path = write(tmp_path, LINES.replace("bitext", "raw"), train_DOT_sw="jua\n\nmwezi\n")
    assert read(path) == [TextLine(id="0", text="jua"), TextLine(id="2", text="mwezi")]


def test_a_language_of_one_region_is_found_without_it(tmp_path):
    body = 'kind = "text"\nfiles = "{language}.tsv"\n'
    path = write(tmp_path, body, **{"sw-KE_DOT_tsv": TSV, "zh-CN_DOT_tsv": TSV, "zh-TW_DOT_tsv": TSV})
    assert len(read(path, "sw")) == len(read(path, "sw_KE")) == len(read(path, "zh_TW")) == 3
    with pytest.raises(DataError, match=r"has no language 'zh'.* It has: .*zh_CN, zh_TW"):
        read(path, "zh")


def test_a_standard_variety_is_found_by_the_code_of_its_language(tmp_path):
    body = 'kind = "text"\nfiles = "{language}.tsv"\n'
    codes = ("swh_Latn", "arb_Arab", "ary_Arab", "zho_Hans")
    path = write(tmp_path, body, **{f"{code}_DOT_tsv": TSV for code in codes})
    for code in ("sw", "swa", "swh", "swh_Latn", "ar", "arb", "ary", "zh"):
        assert len(read(path, code)) == 3, code
    for code in ("sw_KE", "zh_Hant"):
        with pytest.raises(DataError, match=f"has no language '{code}'"):
            read(path, code)


@pytest.mark.parametrize("place", ["told", "data"])
def test_what_is_missing_is_looked_for_where_the_others_are(tmp_path, place):
    (tmp_path / "told").mkdir()
    (tmp_path / place / "en").mkdir(parents=True)
    (tmp_path / place / "en/train.tsv").write_text(TSV, encoding="utf-8")
    (tmp_path / "data").mkdir(exist_ok=True)
    path = write(tmp_path / "told", 'kind = "text"\nfiles = "{language}/{split}.tsv"\n')
    data = DiskFolder(tmp_path / "data")
    with pytest.raises(DataError, match=rf"/{place}: no test split of corpus 'own' for language 'en'"):
        list(described(path, data.name).stream(data, "en", "test"))


def test_pairs_with_the_labels_of_nli_are_nli(tmp_path):
    body = 'kind = "pair"\nfiles = "{language}.tsv"\nlabels = ["neutral", "contradiction", "entailment"%s]\n'
    assert described(write(tmp_path, body % "", sw_DOT_tsv="")).tasks == ("nli",)
    assert described(write(tmp_path, body % ', "x"', sw_DOT_tsv="")).tasks == ("pair-classification",)


ITEMS = [
    ("Mvua ilinyesha.", "cause", ("Mawingu yalikuja.", "Jua liliwaka.", "Nyota"), 1),
    ('Alisema "ndiyo".', "effect", ("Alikubali, kweli", "Alikataa"), 0),
]
PICKED = [
    Choice(id=str(number), context=context, prompt=asked, options=options, label=label)
    for number, (context, asked, options, label) in enumerate(ITEMS)
]
COLUMNS = 'prompt = "asks", options = ["a", "b", "c"]'


def separated(separator, cell=str):
    """Options in a column each, the missing one's cell empty, counted from 1."""
    lines = [["premise", "asks", "a", "b", "c", "label"]]
    lines += [
        [cell(context), asked, *map(cell, (*options, "")[:3]), str(label + 1)]
        for context, asked, options, label in ITEMS
    ]
    return "".join(separator.join(line) + "\n" for line in lines)


def objects(**how):
    """Options in a list, or under a key each, null where there is none."""
    found = ""
    for context, asked, options, label in ITEMS:
        listed = dict(zip("abc", (*options, None), strict=False)) if how else {"options": options}
        found += json.dumps({"premise": context, "asks": asked, **listed, "label": label}) + "\n"
    return found


@pytest.mark.parametrize(
    ("suffix", "text", "more"),
    [
        ("jsonl", objects(), 'columns = { context = "premise", prompt = "asks" }\n'),
        ("jsonl", objects(keys=True), f'columns = {{ context = "premise", {COLUMNS} }}\n'),
        (
            "tsv",
            separated("\t"),
            f'columns = {{ context = "premise", {COLUMNS} }}\nlabels = ["1", "2", "3"]\n',
        ),
        (
            "csv",
            separated(",", quoted),
            f'columns = {{ context = "premise", {COLUMNS} }}\nlabels = ["1", "2", "3"]\n',
        ),
        (
            "tsv",
            separated("\t").partition("\n")[2],
            'columns = { context = 0, prompt = 1, options = [2, 3, 4], label = -1 }\nlabels = ["1", "2"]\n',
        ),
    ],
)
def test_choices_of_every_format_come_to_the_same_examples(tmp_path, suffix, text, more):
    body = f'kind = "choice"\nfiles = "{{split}}-{{language}}.{suffix}"\n{more}'
    path = write(tmp_path, body, **{f"train-sw_DOT_{suffix}": text})
    assert read(path) == PICKED
    assert described(path).tasks == ("multiple-choice",)


def test_choices_of_parquet_and_what_is_written_is_read(tmp_path):
    parquet(tmp_path / "train-sw.parquet", [json.loads(line) for line in objects().splitlines()])
    body = 'kind = "choice"\nfiles = "{split}-{language}.parquet"\nlabels = ["A", "B", "C"]\n'
    body += 'columns = { context = "premise", prompt = "asks" }\n'
    path = write(tmp_path, body.replace('labels = ["A", "B", "C"]\n', ""))
    assert read(path) == PICKED
    written = list(described(path).write(PICKED, "sw"))
    own = 'kind = "choice"\nfiles = "{language}.jsonl"\ncolumns = { prompt = "prompt" }\n'
    (tmp_path / "sw.jsonl").write_text("\n".join(written), encoding="utf-8")
    assert read(write(tmp_path, own)) == PICKED
    lettered = described(write(tmp_path, own + 'labels = ["A", "B", "C"]\n'))
    lines = list(lettered.write(PICKED, "sw"))
    assert [json.loads(line)["label"] for line in lines] == ["B", "A"]
    (tmp_path / "sw.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert list(lettered.read(None, "sw", "train")) == PICKED


def test_a_context_of_several_columns_and_two_endings(tmp_path):
    """As StoryCloze's files are: four sentences, two endings, which of them is right counted from 1."""
    text = "InputStoryid,one,two,three,four,quiz1,quiz2,answer\n"
    text += 's1,Anna ran.,"She fell, hard.",It hurt.,She cried.,She laughed.,She went home.,2\n'
    body = """
kind = "choice"
files = "{language}.csv"
labels = ["1", "2"]

[columns]
id = "InputStoryid"
context = ["one", "two", "three", "four"]
options = ["quiz1", "quiz2"]
label = "answer"
"""
    assert read(write(tmp_path, body, en_DOT_csv=text), "en") == [
        Choice(
            id="s1",
            context="Anna ran. She fell, hard. It hurt. She cried.",
            options=("She laughed.", "She went home."),
            label=1,
        )
    ]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"context": "a", "options": ["b"], "label": 0}', "1 options; expected two or more"),
        ('{"context": "a", "options": ["b", "", "c"], "label": 0}', "an option is ''; expected a text"),
        ('{"context": "a", "options": ["b", 3], "label": 0}', "an option is '3'; expected a text"),
        (
            '{"context": "a", "options": "bc", "label": 0}',
            "options 'bc'; expected a list of texts, or a column",
        ),
        (
            '{"context": "a", "options": ["b", "c"], "label": 2}',
            "label '2' for 2 options; expected one of 0, 1",
        ),
        ('{"context": "a", "options": ["b", "c"], "label": null}', "label 'None' for 2 options"),
        (
            '{"context": " ", "options": ["b", "c"], "label": 1}',
            "context is ' '; expected a text that is not",
        ),
        (
            '{"context": "a", "options": ["b", "c"]}',
            "no column 'label' for label; expected one of context, opt",
        ),
    ],
)
def test_a_broken_choice_is_named_with_its_line(tmp_path, row, said):
    good = '{"context": "a", "options": ["b", "c"], "label": 1}\n'
    path = write(tmp_path, 'kind = "choice"\nfiles = "{language}.jsonl"\n', sw_DOT_jsonl=good + row)
    with pytest.raises(DataError, match=re.escape(f"sw.jsonl:2: {said}")):
        read(path)


def test_languages_and_splits_may_be_spelled_otherwise(tmp_path):
    body = """
kind = "text"
files = "{language}/{split}.tsv"
splits = { train = "train", dev = "valid" }
languages = { sw = "swahili", en = "eng_Latn" }
"""
    path = write(tmp_path, body, swahili__valid_DOT_tsv=TSV, eng_Latn__train_DOT_tsv=TSV)
    corpus = described(path)
    assert [len(list(corpus.read(None, *where))) for where in (("sw", "dev"), ("en", "train"))] == [3, 3]
    with pytest.raises(DataError, match="no test split of corpus 'own'"):
        list(corpus.read(None, "sw", "test"))
    with pytest.raises(DataError, match=r"corpus 'own' has no language 'ws'.* It has: sw, en"):
        list(corpus.read(None, "ws", "train"))


def test_one_file_for_all_splits_is_training_data_alone(tmp_path):
    path = write(tmp_path, 'kind = "text"\nfiles = "{language}.tsv"\n', sw_DOT_tsv=TSV)
    assert len(read(path)) == 3
    with pytest.raises(DataError, match="It names no test file"):
        read(path, split="test")


def test_a_language_is_found_by_its_code_of_three_letters(tmp_path):
    path = write(tmp_path, 'kind = "text"\nfiles = "{language}.tsv"\n', swa_DOT_tsv=TSV)
    assert len(read(path, "sw")) == len(read(path, "swa")) == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("kind = 3\nfiles = 'a'", "kind: found 3; expected a text"),
        ("kind = 'texts'\nfiles = 'a'", "no kind of corpus 'texts'. Did you mean 'text'?"),
        ("kind = 'text'", "files: nothing is there; expected where the files are"),
        ("kind = 'text'\nfiles = 'a.tsv'\nlable = []", "lable: no such field. Did you mean 'labels'?"),
        ("kind = 'text'\nfiles = '/a.tsv'", "'/a.tsv' is a place on one machine"),
        ("kind = 'text'\nfiles = '{language}.xml'", "'{language}.xml' has no suffix that tells it"),
        ("kind = 'text'\nfiles = '{language}.conll'", "no format of text 'conll'"),
        ("kind = 'text'\nfiles = '{language}.tsv'\ncolumns = { txt = 0 }", "Did you mean 'text'?"),
        ("kind = 'text'\nfiles = '{language}.tsv'\nseparator = ''", "separator: found ''; expected one char"),
        (
            "kind = 'tagging'\nfiles = '{language}.txt'\ncolumns = { word = 'w' }",
            "those of conll have no names",
        ),
        ("kind = 'text'\nfiles = '{language}.tsv'\nname = 'xnli'", "'xnli' is taken"),
        (
            "kind = 'tagging'\nfiles = '{language}.conllu'\ncolumns = { label = 'XPO' }",
            "no column of CoNLL-U 'XPO'. Did you mean 'XPOS'?",
        ),
        ("kind = 'tagging'\nfiles = '{language}.conllu'\ncolumns = { label = 10 }", "column of CoNLL-U '10'"),
        (
            "kind = 'raw'\nfiles = '{language}.txt'\nformat = 'lines'\nwhere = { a = 'b' }",
            "where: rows of lines have no columns to choose them by",
        ),
        (
            "kind = 'text'\nfiles = '{language}.tsv'\ncolumns = { text = ['a', 'b'] }",
            "columns: text stands in 2 columns; expected one. A list of one or more is for id",
        ),
        (
            "kind = 'choice'\nfiles = '{language}.tsv'\nlabels = { A = 'a' }",
            "labels: found a table; expected a list of what the first option is called",
        ),
        (
            "kind = 'choice'\nfiles = '{language}.tsv'\ncolumns = { option = [1, 2] }",
            "Did you mean 'options'?",
        ),
        ("kind = 'text'\nfiles = 'no-{language}.tsv'", "none of no-{language}.tsv"),
        ("kind = [", "this is no TOML"),
    ],
)
def test_mistakes_in_a_description_name_the_file_and_the_field(tmp_path, body, said):
    path = write(tmp_path, body, sw_DOT_tsv=TSV, sw_DOT_txt=CONLL)
    with pytest.raises(ConfigError) as error:
        described(path)
    assert str(path) in str(error.value)
    assert said in str(error.value)


def test_a_description_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.toml: no such description of a corpus"):
        known_as(str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("text\tlable\na\tb\n", r"sw\.tsv:1: a header without 'label'.*Did you mean 'lable'"),
        ("text\tlabel\na\tb\tc\n", r"sw\.tsv:2: 3 cells; expected 2 as in the header"),
        ("text\tlabel\n \tb\n", r"sw\.tsv:2: text is ' '; expected a text that is not blank"),
        ("text\tlabel\na\tx\n", r"sw\.tsv:2: label 'x'; expected one of b"),
        ("text\tlabel\n", r"sw\.tsv:1: the split is empty"),
    ],
)
def test_a_broken_row_is_named_with_its_line(tmp_path, text, said):
    path = write(tmp_path, 'kind = "text"\nfiles = "{language}.tsv"\nlabels = ["b"]\n', sw_DOT_tsv=text)
    with pytest.raises(DataError, match=said):
        read(path)


def test_broken_lines_of_other_formats(tmp_path):
    for suffix, text, said in (
        ("jsonl", '{"text": "a"}\n', r"\.jsonl:1: no column 'label' for label; expected one of text"),
        ("jsonl", "[1]\n", r"\.jsonl:1: '\[1\]'; expected a JSON object"),
        ("jsonl", "{\n", r"\.jsonl:1: no JSON \(.*expected a JSON object"),
        ("csv", 'text,label\n"a,b\n', r"\.csv:2: unexpected end of data"),
    ):
        body = f'kind = "text"\nfiles = "{{language}}.{suffix}"\nlabels = ["b"]\n'
        with pytest.raises(DataError, match=said):
            read(write(tmp_path, body, **{f"sw_DOT_{suffix}": text}))
    body = 'kind = "tagging"\nfiles = "{language}.jsonl"\nlabels = ["O"]\n'
    for words, said in (
        ('["a", " "]', "the word ' '"),
        ("[1, 2]", "the word 1"),
        ('"a b"', "no lists of one"),
    ):
        line = f'{{"words": {words}, "labels": ["O", "O"]}}\n'
        with pytest.raises(DataError, match=rf"sw\.jsonl:1: .*{said}"):
            read(write(tmp_path, body, sw_DOT_jsonl=line))
    body = 'kind = "tagging"\nfiles = "{language}.txt"\n'
    with pytest.raises(DataError, match=r"sw\.txt:2: 'home'; expected columns 0, -1"):
        read(write(tmp_path, body, sw_DOT_txt="Anna B-PER\nhome\n"))


def test_csv_counts_lines_although_cells_have_some(tmp_path):
    path = write(
        tmp_path,
        'kind = "text"\nfiles = "{language}.csv"\nlabels = ["b"]\n',
        sw_DOT_csv='text,label\n"a\nb",b\nc,x\n',
    )
    with pytest.raises(DataError, match=r"sw\.csv:4: label 'x'"):
        read(path)


def test_what_is_written_is_read_as_json_lines(tmp_path):
    path = write(tmp_path, 'kind = "text"\nfiles = "{language}.tsv"\n', sw_DOT_tsv=TSV)
    corpus = described(path)
    lines = list(corpus.write(read(path), "sw"))
    (tmp_path / "again.jsonl").write_text("\n".join(lines), encoding="utf-8")
    file = File("again.jsonl", lambda: iter(f"{line}\n" for line in lines), lambda: "")
    assert [row.cells for row in rows(file, "jsonl", ())] == [
        {"text": text, "label": label} for text, label in TEXTS
    ]


def test_a_described_corpus_is_known_by_its_name_and_its_reading_is_part_of_the_fingerprint(tmp_path):
    path = write(tmp_path, 'name = "greetings"\nkind = "text"\nfiles = "{language}.tsv"\n', sw_DOT_tsv=TSV)
    assert known_as(str(path)) == "greetings"
    sources = Sources()
    assert sources.labels("greetings") == ("anga", "kauli", "salamu")
    assert len(sources.examples("greetings", "sw", "train")) == 3
    before = sources.fingerprint("greetings", "sw", "train")
    (tmp_path / "other").mkdir()
    swapped = 'name = "swapped"\nkind = "text"\nfiles = "{language}.tsv"\n'
    swapped += 'columns = { text = "label", label = "text" }\n'
    known_as(str(write(tmp_path / "other", swapped, sw_DOT_tsv=TSV)))
    assert before != sources.fingerprint("swapped", "sw", "train")
    again = write(
        tmp_path / "other", 'name = "greetings"\nkind = "pair"\nfiles = "{language}.tsv"\nlabels = ["x"]\n'
    )
    with pytest.raises(ConfigError, match="two descriptions are named 'greetings'"):
        known_as(str(again))


def test_it_is_looked_through_whole_and_what_is_odd_is_told(tmp_path):
    files = {"train-sw_DOT_tsv": TSV + "Hujambo dunia\tkauli\n", "test-sw_DOT_tsv": TSV + "x\tnone\n"}
    path = write(tmp_path, 'kind = "text"\nfiles = "{split}-{language}.tsv"\n', **files)
    train, test = looked_through(described(path))
    assert (train.examples, train.repeated, train.trained, train.error) == (4, 1, 0, "")
    assert train.labels == {"kauli": 2, "salamu": 1, "anga": 1}
    assert (test.examples, test.trained) == (3, 3)
    assert "test-sw.tsv:5: label 'none'" in test.error


DAMAGED = {
    "tsv": ("text", TSV),
    "csv": ("text", CSV),
    "jsonl": ("text", JSONL),
    "json": ("text", f"[{JSONL.strip().replace(chr(10), ',' + chr(10))}]"),
    "txt": ("tagging", CONLL),
    "ndjson": ("choice", objects().replace("premise", "context")),
}


@pytest.mark.parametrize("suffix", DAMAGED)
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_with_its_line(suffix, data):
    kind, text = DAMAGED[suffix]
    place = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(place, min(len(text), place + 30)))
    put = data.draw(st.text(st.sampled_from("\"'\t\n\r ,;:{}[]\\\x00\u2028\ufeffaB-0é"), max_size=6))
    damaged = text[:place] + put + text[end:]
    file = File(f"sw.{suffix}", lambda: iter(damaged.splitlines(keepends=True)), lambda: "")
    of = {"tagging": ("O", "B-PER", "I-PER", "B-LOC", "I-LOC"), "text": ("anga", "kauli", "salamu")}
    form = "json" if suffix == "json" else SUFFIXES[f".{suffix}"]
    corpus = DescribedCorpus(
        name="damaged",
        kind=kind,
        paths={},
        format=form,
        columns=FORMS[kind].columns[form],
        labels=of.get(kind, ()),
    )
    try:
        found = list(corpus.examples(file))
    except DataError as error:
        assert re.match(rf"sw\.{suffix}:\d+: ", str(error))
    else:
        assert all(isinstance(one, LabelledText | TaggedSentence | Choice) for one in found)
