"""Described corpora: every format comes to the same examples. What does not fit is named with its line."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.corpora.own import register_corpus
from isogloss.data.examples import Choice, LabelledText, SentencePair, TaggedSentence, TextLine, Translation
from isogloss.data.files import DiskFolder, File
from isogloss.data.formats.corpus_kinds import list_columns
from isogloss.data.formats.formats import ExampleColumns, list_suffixes
from isogloss.data.formats.tables import rows
from isogloss.data.sources import Sources
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.features.described_corpora.corpus import DescribedCorpus, inventory
from isogloss.features.described_corpora.descriptions import describe_corpus
from says import says

TEXTS = [("Hujambo dunia", "salamu"), ('He said "no", twice', "kauli"), ("Jua, mwezi; nyota", "anga")]


def read(corpus: DescribedCorpus, language: str = "sw", split: str = "train") -> list[object]:
    return list(corpus.read(None, language, split))


def quote_cell(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


TSV = "text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in TEXTS)
CSV = "label,text\n" + "".join(f"{quote_cell(label)},{quote_cell(text)}\n" for text, label in TEXTS)
SEMICOLONS = "".join(f"{quote_cell(text)};{label}\n" for text, label in TEXTS)
JSONL = "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in TEXTS)


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("train-sw.tsv", TSV, ""),
        ("train-sw.csv", CSV, ""),
        ("train-sw.jsonl", JSONL, ""),
        ("train-sw.csv", SEMICOLONS, 'separator = ";"\ncolumns = { text = 0, label = -1 }\n'),
        ("train-sw.tsv", TSV.partition("\n")[2], "columns = { text = 0, label = 1 }\n"),
        (
            "train-sw.tsv",
            TSV.replace("text\tlabel", "id\tsaid", 1),
            'columns = { text = "id", label = "said" }\n',
        ),
    ],
)
def test_every_format_comes_to_the_same_examples(own_corpus, name, text, more):
    suffix = name.rpartition(".")[2]
    corpus = own_corpus(f'kind = "text"\nfiles = "{{split}}-{{language}}.{suffix}"\n{more}', {name: text})
    assert read(corpus) == [
        LabelledText(id=str(index), text=message, label=label) for index, (message, label) in enumerate(TEXTS)
    ]
    assert corpus.labels == ("anga", "kauli", "salamu")


def test_parquet_is_read_and_numbers_are_labels_in_their_order(own_corpus):
    table = [{"text": text, "label": index} for index, (text, _) in enumerate(TEXTS)]
    body = 'kind = "text"\nfiles = "{split}-{language}.parquet"\nlabels = ["a", "b", "c"]\n'
    assert [example.label for example in read(own_corpus(body, {"train-sw.parquet": table}))] == [
        "a",
        "b",
        "c",
    ]
    with pytest.raises(DataError, match=r"train-sw\.parquet: .*4 bytes"):
        read(own_corpus(body, {"train-sw.parquet": "PAR1"}))


def test_parquet_whose_text_is_no_utf8_is_an_error_that_names_the_file(own_corpus):
    import pyarrow as pa
    from pyarrow import parquet

    buffer = pa.BufferOutputStream()
    table = pa.table({"text": ["habari gani é"], "label": ["salamu"]})
    parquet.write_table(table, buffer, compression="none", use_dictionary=False, write_statistics=False)
    content = buffer.getvalue().to_pybytes().replace("é".encode(), b"\xff\xfe")
    body = 'kind = "text"\nfiles = "{split}-{language}.parquet"\nlabels = ["salamu"]\n'
    with says(DataError, "'utf-8'"):
        read(own_corpus(body, {"train-sw.parquet": content}))


def test_a_cell_of_csv_may_hold_a_whole_document(own_corpus):
    document = "neno " * 40_000
    corpus = own_corpus(
        'kind = "text"\nfiles = "{language}.csv"\n', {"sw.csv": f"text,label\n{document},anga\n"}
    )
    assert read(corpus) == [LabelledText(id="0", text=document, label="anga")]


CONLL = (
    "-DOCSTART- -X- O\n\n# newdoc\n# newpar\n# sent_id = 1\nAnna B-PER\n# O\n\nLagos B-LOC\njana B-DATE\n\n"
)


def test_words_and_tags_of_conll(own_corpus):
    corpus = own_corpus('kind = "tagging"\nfiles = "{language}/{split}.txt"\n', {"sw/train.txt": CONLL})
    assert corpus.labels == ("O", "B-DATE", "I-DATE", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert corpus.tasks == ("span-tagging",)
    assert read(corpus) == [
        TaggedSentence(id="0", words=("Anna", "#"), tags=("B-PER", "O")),
        TaggedSentence(id="1", words=("Lagos", "jana"), tags=("B-LOC", "B-DATE")),
    ]


def test_bio_is_made_from_the_types_that_are_given_in_their_order(own_corpus):
    body = 'kind = "tagging"\nlabels = ["PER", "ORG", "LOC", "DATE"]\nfiles = "{language}/{split}.txt"\n'
    corpus = own_corpus(body, {"sw/train.txt": CONLL})
    types = ("PER", "ORG", "LOC", "DATE")
    assert corpus.labels == ("O", *(f"{mark}-{item}" for item in types for mark in "BI"))


def test_a_type_of_entity_may_have_a_hyphen(own_corpus):
    conll = "War B-creative-work\nand I-creative-work\nPeace I-creative-work\n"
    for labels in ('["creative-work"]', '["O", "B-creative-work", "I-creative-work"]'):
        body = f'kind = "tagging"\nlabels = {labels}\nfiles = "{{language}}/{{split}}.txt"\n'
        assert own_corpus(body, {"en/train.txt": conll}).labels == ("O", "B-creative-work", "I-creative-work")


def test_a_word_of_conll_may_hold_a_no_break_space(own_corpus):
    corpus = own_corpus(
        'kind = "tagging"\nfiles = "{language}.txt"\n', {"fr.txt": "10\u00a0000 B-NUM\nans O\n"}
    )
    assert read(corpus, "fr") == [TaggedSentence(id="0", words=("10\u00a0000", "ans"), tags=("B-NUM", "O"))]


@given(st.lists(st.sampled_from(["PER", "LOC", "X"]), unique=True, min_size=1))
def test_an_inventory_has_every_tag_that_was_seen_once(types):
    tags = [f"B-{item}" for item in types]
    assert set(tags) < set(inventory(["O", *tags], ()))
    assert len(set(inventory(tags, types))) == 1 + 2 * len(types)
    assert inventory(types, ()) == tuple(sorted(types))
    assert inventory(types, [*types, "UNSEEN"]) == (*types, "UNSEEN")


def test_pairs_translations_and_raw_text(own_corpus):
    pairs = "first\tsecond\tlabel\na b\tc\tyes\nd\te\t-\nf\tg\tno\n"
    body = 'kind = "pair"\nfiles = "{split}-{language}.tsv"\nskip = ["-"]\n'
    corpus = own_corpus(body, {"train-sw.tsv": pairs})
    assert read(corpus) == [
        SentencePair(id="0", first="a b", second="c", label="yes"),
        SentencePair(id="2", first="f", second="g", label="no"),
    ]
    body = 'kind = "bitext"\nfiles = "{language}.tsv"\nlanguages = ["en-sw"]\n'
    body += "columns = { first = 0, second = 1 }\n"
    corpus = own_corpus(body, {"en-sw.tsv": "sun\tjua\n"})
    assert read(corpus, "en-sw") == [Translation(id="0", first="sun", second="jua")]
    corpus = own_corpus('kind = "raw"\nfiles = "{language}.jsonl"\n', {"sw.jsonl": '{"text": "jua"}\n'})
    assert read(corpus) == [TextLine(id="0", text="jua")]


def test_where_chooses_the_rows_of_a_split_and_of_a_language(own_corpus):
    lines = [("sw", "train", "a"), ("sw", "valid", "b"), ("en", "train", "c"), ("sw", "train", "d")]
    table = "lang\tpart\ttext\tlabel\n" + "".join("\t".join([*line, "x"]) + "\n" for line in lines)
    body = 'kind = "text"\nfiles = "all.tsv"\nsplits = { train = "train", dev = "valid" }\n'
    body += 'languages = { sw = "sw", en = "en" }\nwhere = { lang = "{language}", part = "{split}" }\n'
    corpus = own_corpus(body, {"all.tsv": table})
    assert [(example.id, example.text) for example in read(corpus)] == [("0", "a"), ("3", "d")]
    assert [(example.id, example.text) for example in read(corpus, split="dev")] == [("1", "b")]
    assert [example.text for example in read(corpus, "en")] == ["c"]
    with says(DataError, "all.tsv:1:"):
        read(corpus, "en", "dev")
    with pytest.raises(DataError, match="It"):
        read(corpus, split="test")
    plain_own_corpus = own_corpus(body.replace('part = "{split}"', 'part = "valid"'))
    assert [example.text for example in read(plain_own_corpus)] == ["b"]
    with pytest.raises(DataError, match="It"):
        read(plain_own_corpus, split="dev")


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
def test_a_column_of_conllu_is_read_without_ranges_empty_nodes_and_comments(own_corpus, columns, tags):
    body = f'kind = "tagging"\nfiles = "{{language}}.conllu"\n{columns}\n'
    corpus = own_corpus(body, {"es.conllu": CONLLU})
    assert read(corpus, "es") == [
        TaggedSentence(id=str(index), words=words, tags=its_tags)
        for index, (words, its_tags) in enumerate(zip((("de", "el"), ("Sí",)), tags, strict=True))
    ]
    assert corpus.labels == tuple(sorted({tag for item in tags for tag in item}))
    with says(DataError, "es.conllu:5:"):
        read(own_corpus(body, {"es.conllu": CONLLU.replace("2.1\tvino\tvenir\t", "2\tx\ty\n")}), "es")


JSON = '[\n  {"text": "a, ]", "label": 1},\n  {"text": "b",\n   "label": "x"}\n]\n'


def test_a_json_list_is_read_object_by_object(own_corpus):
    body = 'kind = "text"\nfiles = "{language}.json"\nformat = "json"\nlabels = ["x", "y"]\n'
    examples = read(own_corpus(body, {"sw.json": JSON}))
    assert [(example.id, example.text, example.label) for example in examples] == [
        ("0", "a, ]", "y"),
        ("1", "b", "x"),
    ]


LINES = 'kind = "bitext"\nfiles = "{split}.{language}"\nformat = "lines"\n'


def test_any_two_files_of_lines_are_bitext(own_corpus):
    files = {
        "test.en": "sun\nmoon\n",
        "test.sw": "jua\nmwezi\n",
        "test.deu_Latn": "Sonne\nMond\n",
    }
    corpus = own_corpus(LINES, files)
    assert read(corpus, "en-sw", "test") == [
        Translation(id="0", first="sun", second="jua"),
        Translation(id="1", first="moon", second="mwezi"),
    ]
    assert [example.second for example in read(corpus, "sw-de", "test")] == ["Sonne", "Mond"]
    languages = [(split.language, split.examples) for split in inspect_splits(corpus)]
    assert languages == [("de-en", 2), ("en-sw", 2)]


def test_what_is_no_bitext_of_lines_is_said(own_corpus):
    corpus = own_corpus(LINES, {"test.en": "sun\nmoon\n", "test.sw": "jua\n", "test.de": "Sonne\n \n"})
    with says(DataError, "test.sw:1:", "test.en", "(2)"):
        read(corpus, "en-sw", "test")
    with says(DataError, "test.de:2:", "' '"):
        read(corpus, "en-de", "test")
    with says(ConfigError, "'en'"):
        read(corpus, "en", "test")
    with says(DataError, "'fi'", "de, en, sw"):
        read(corpus, "en-fi", "test")
    with says(DataError, "dev.en, dev.sw"):
        read(corpus, "en-sw", "dev")


def test_raw_lines_are_texts_without_the_empty_ones(own_corpus):
    corpus = own_corpus(LINES.replace("bitext", "raw"), {"train.sw": "jua\n\nmwezi\n"})
    assert read(corpus) == [TextLine(id="0", text="jua"), TextLine(id="2", text="mwezi")]


def test_a_language_of_one_region_is_found_without_it(own_corpus):
    body = 'kind = "text"\nfiles = "{language}.tsv"\n'
    corpus = own_corpus(body, {"sw-KE.tsv": TSV, "zh-CN.tsv": TSV, "zh-TW.tsv": TSV})
    assert len(read(corpus, "sw")) == len(read(corpus, "sw_KE")) == len(read(corpus, "zh_TW")) == 3
    with says(DataError, "'zh'"):
        read(corpus, "zh")


def test_a_standard_variety_is_found_by_the_code_of_its_language(own_corpus):
    codes = ("swh_Latn", "arb_Arab", "ary_Arab", "zho_Hans")
    corpus = own_corpus(
        'kind = "text"\nfiles = "{language}.tsv"\n', {f"{language}.tsv": TSV for language in codes}
    )
    for language_code in ("sw", "swa", "swh", "swh_Latn", "ar", "arb", "ary", "zh", "zho_Hans", "zh-Hans"):
        assert len(read(corpus, language_code)) == 3, language_code
    for language_code in ("sw_KE", "zh_Hant"):
        with pytest.raises(DataError, match=f"'{language_code}'"):
            read(corpus, language_code)


@pytest.mark.parametrize("place", ["told", "data"])
def test_what_is_missing_is_looked_for_where_the_others_are(tmp_path, place):
    for folder in ("told", "data", f"{place}/en"):
        (tmp_path / folder).mkdir()
    (tmp_path / place / "en/train.tsv").write_text(TSV, encoding="utf-8")
    (tmp_path / "told/own.toml").write_text('kind = "text"\nfiles = "{language}/{split}.tsv"\n')
    data = DiskFolder(tmp_path / "data")
    with pytest.raises(DataError, match=f"/{place}: .*'own'.*'en'"):
        list(describe_corpus(tmp_path / "told/own.toml", data.name).stream(data, "en", "test"))


def test_pairs_with_the_labels_of_nli_are_nli(own_corpus):
    body = 'kind = "pair"\nfiles = "{language}.tsv"\nlabels = ["neutral", "contradiction", "entailment"%s]\n'
    assert own_corpus(body % "", {"sw.tsv": ""}).tasks == ("nli",)
    assert own_corpus(body % ', "x"', {"sw.tsv": ""}).tasks == ("pair-classification",)


ITEMS = [
    ("Mvua ilinyesha.", "cause", ("Mawingu yalikuja.", "Jua liliwaka.", "Nyota"), 1),
    ('Alisema "ndiyo".', "effect", ("Alikubali, kweli", "Alikataa"), 0),
]
PICKED = [
    Choice(id=str(index), context=context, prompt=arguments, options=options, label=label)
    for index, (context, arguments, options, label) in enumerate(ITEMS)
]
COLUMNS = 'prompt = "asks", options = ["a", "b", "c"]'


def write_options(separator, cell=str):
    """Options in a column each, the missing one's cell empty, counted from 1."""
    lines = [["premise", "asks", "a", "b", "c", "label"]]
    lines += [
        [cell(context), arguments, *(cell(option) for option in (*options, "")[:3]), str(label + 1)]
        for context, arguments, options, label in ITEMS
    ]
    return "".join(separator.join(line) + "\n" for line in lines)


def objects(**settings):
    """Options in a list, or each under a key, with null for a missing option."""
    text = ""
    for context, arguments, options, label in ITEMS:
        listing = dict(zip("abc", (*options, None), strict=False)) if settings else {"options": options}
        text += json.dumps({"premise": context, "asks": arguments, **listing, "label": label}) + "\n"
    return text


@pytest.mark.parametrize(
    ("suffix", "text", "more"),
    [
        ("jsonl", objects(), 'columns = { context = "premise", prompt = "asks" }\n'),
        (
            "parquet",
            [json.loads(line) for line in objects().splitlines()],
            'columns = { context = "premise", prompt = "asks" }\n',
        ),
        ("jsonl", objects(keys=True), f'columns = {{ context = "premise", {COLUMNS} }}\n'),
        (
            "tsv",
            write_options("\t"),
            f'columns = {{ context = "premise", {COLUMNS} }}\nlabels = ["1", "2", "3"]\n',
        ),
        (
            "csv",
            write_options(",", quote_cell),
            f'columns = {{ context = "premise", {COLUMNS} }}\nlabels = ["1", "2", "3"]\n',
        ),
        (
            "tsv",
            write_options("\t").partition("\n")[2],
            'columns = { context = 0, prompt = 1, options = [2, 3, 4], label = -1 }\nlabels = ["1", "2"]\n',
        ),
    ],
)
def test_choices_of_every_format_come_to_the_same_examples(own_corpus, suffix, text, more):
    body = f'kind = "choice"\nfiles = "{{split}}-{{language}}.{suffix}"\n{more}'
    corpus = own_corpus(body, {f"train-sw.{suffix}": text})
    assert read(corpus) == PICKED
    assert corpus.tasks == ("multiple-choice",)


@pytest.mark.parametrize(("more", "labels"), [("", [1, 0]), ('labels = ["A", "B", "C"]\n', ["B", "A"])])
def test_choices_that_are_written_are_read(own_corpus, more, labels):
    body = f'kind = "choice"\nfiles = "{{language}}.jsonl"\ncolumns = {{ prompt = "prompt" }}\n{more}'
    lines = list(own_corpus(body, {"sw.jsonl": ""}).write(PICKED, "sw"))
    assert [json.loads(line)["label"] for line in lines] == labels
    assert read(own_corpus(body, {"sw.jsonl": "\n".join(lines)})) == PICKED


def test_a_context_of_several_columns_and_two_endings(own_corpus):
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
    assert read(own_corpus(body, {"en.csv": text}), "en") == [
        Choice(
            id="s1",
            context="Anna ran. She fell, hard. It hurt. She cried.",
            options=("She laughed.", "She went home."),
            label=1,
        )
    ]


def test_languages_and_splits_may_be_spelled_otherwise(own_corpus):
    body = """
kind = "text"
files = "{language}/{split}.tsv"
splits = { train = "train", dev = "valid" }
languages = { sw = "swahili", en = "eng_Latn" }
"""
    corpus = own_corpus(body, {"swahili/valid.tsv": TSV, "eng_Latn/train.tsv": TSV})
    assert [len(list(corpus.read(None, *where))) for where in (("sw", "dev"), ("en", "train"))] == [3, 3]
    with says(DataError, "'own'"):
        list(corpus.read(None, "sw", "test"))
    with says(DataError, "'own'", "'ws'", "sw, en"):
        list(corpus.read(None, "ws", "train"))


def test_one_file_for_all_splits_is_training_data_alone(own_corpus):
    corpus = own_corpus('kind = "text"\nfiles = "{language}.tsv"\n', {"sw.tsv": TSV})
    assert len(read(corpus)) == 3
    with pytest.raises(DataError, match="It"):
        read(corpus, split="test")


def test_a_pair_is_no_language_of_a_region(own_corpus):
    body = 'kind = "bitext"\nfiles = "{language}.tsv"\n'
    corpus = own_corpus(body, {"en-sw.tsv": "first\tsecond\nsun\tjua\n"})
    with pytest.raises(DataError, match="no language 'en-de'"):  # As in en-DE, the English of Germany.
        read(corpus, "en-de")
    corpus = own_corpus('kind = "text"\nfiles = "texts/{language}.tsv"\n', {"texts/en.tsv": TSV})
    with pytest.raises(DataError, match="no language 'en-de'"):
        read(corpus, "en-de")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("kind = 3\nfiles = 'a'", "kind:"),
        ("kind = 'texts'\nfiles = 'a'", "no kind of corpus 'texts'. Did you mean 'text'?"),
        ("kind = 'text'", "files:"),
        ("kind = 'text'\nfiles = 'a.tsv'\nlable = []", "lable:"),
        ("kind = 'text'\nfiles = '/a.tsv'", "'/a.tsv'"),
        ("kind = 'text'\nfiles = '{language}.xml'", "'{language}.xml'"),
        ("kind = 'text'\nfiles = '{language}.conll'", "no format of text 'conll'"),
        ("kind = 'text'\nfiles = '{language}.tsv'\ncolumns = { txt = 0 }", "Did you mean 'text'?"),
        ("kind = 'text'\nfiles = '{language}.tsv'\nseparator = ''", "separator: found ''; expected one char"),
        (
            "kind = 'tagging'\nfiles = '{language}.txt'\ncolumns = { word = 'w' }",
            "conll",
        ),
        ("kind = 'text'\nfiles = '{language}.tsv'\nname = 'xnli'", "'xnli' is taken"),
        (
            "kind = 'tagging'\nfiles = '{language}.conllu'\ncolumns = { label = 'XPO' }",
            "no column of CoNLL-U 'XPO'. Did you mean 'XPOS'?",
        ),
        ("kind = 'tagging'\nfiles = '{language}.conllu'\ncolumns = { label = 10 }", "column of CoNLL-U '10'"),
        (
            "kind = 'raw'\nfiles = '{language}.txt'\nformat = 'lines'\nwhere = { a = 'b' }",
            "where:",
        ),
        (
            "kind = 'text'\nfiles = '{language}.tsv'\ncolumns = { text = ['a', 'b'] }",
            "columns:",
        ),
        (
            "kind = 'choice'\nfiles = '{language}.tsv'\nlabels = { A = 'a' }",
            "labels:",
        ),
        (
            "kind = 'choice'\nfiles = '{language}.tsv'\ncolumns = { option = [1, 2] }",
            "Did you mean 'options'?",
        ),
        ("kind = 'text'\nfiles = '{language}.tsv'\nsplits = { dev = 'd' }", "splits: found dev, and files"),
        ("kind = 'text'\nfiles = '{language}.tsv'\nlanguages = ['en', 'eng_Latn']", "'en'"),
        ("kind = 'text'\nfiles = 'no-{language}.tsv'", "no-{language}.tsv:"),
        ("kind = [", "invalid TOML"),
        (f"kind = {'[' * 5000}", "nested"),
        (f"kind = {'9' * 5000}", "invalid TOML (Exceeds the limit"),
    ],
)
def test_mistakes_in_a_description_name_the_file_and_the_field(own_corpus, tmp_path, body, message):
    with pytest.raises(ConfigError) as error:
        own_corpus(body, {"sw.tsv": TSV, "sw.txt": CONLL})
    assert str(tmp_path / "own.toml") in str(error.value)
    assert message in str(error.value)


def test_a_description_that_is_not_there_is_named(tmp_path):
    with says(ConfigError, "none.toml:"):
        register_corpus(str(tmp_path / "none.toml"))


BODIES = {
    "text": 'kind = "text"\nlabels = ["b"]\n',
    "list": 'kind = "text"\nlabels = ["x", "y"]\nformat = "json"\n',
    "chosen": 'kind = "text"\nlabels = ["x"]\nwhere = { prt = "{split}" }\n',
    "choice": 'kind = "choice"\n',
    "words": 'kind = "tagging"\nlabels = ["O"]\n',
    "conll": 'kind = "tagging"\n',
}
ITEM = '{"context": "a", "options": ["b", "c"], "label": 1}\n'


@pytest.mark.parametrize(
    ("kind", "suffix", "text", "message"),
    [
        ("text", "tsv", "text\tlable\na\tb\n", "1: a header without 'label'.*Did you mean 'lable'"),
        ("text", "tsv", "text\tlabel\na\tb\tc\n", "2: 3 cells; expected 2"),
        ("text", "tsv", "text\tlabel\n \tb\n", "2: text is ' '"),
        ("text", "tsv", "text\tlabel\na\tx\n", "2: label 'x'; expected one of b"),
        (
            "text",
            "jsonl",
            '{"text": "a"}\n',
            "1: no column 'label' or 'labels' for label in text; expected it",
        ),
        ("text", "jsonl", "[1]\n", r"1: '\[1\]'"),
        ("text", "jsonl", "{\n", "1: .*JSON .*property name"),
        ("text", "csv", 'text,label\n"a,b\n', "2: unexpected end of data"),
        ("text", "csv", 'text,label\n"a\nb",b\nc,x\n', "4: label 'x'"),  # a cell with two lines
        ("chosen", "jsonl", '{"part": "train"}\n', "1: no column 'prt' for where in part; expected it"),
        ("chosen", "tsv", "part\ttext\tlabel\n", "1: a header without 'prt' Did you mean 'part'"),
        ("list", "json", JSON.replace('"x"', '"z"'), "3: label 'z'"),
        ("list", "json", JSON.replace('"b",', '"b"'), "3: .*delimiter"),
        ("list", "json", JSON.replace("\n]", ",\n 7]"), "5: '7"),
        ("words", "jsonl", '{"words": ["a", " "], "labels": ["O", "O"]}', "1: the word ' '"),
        ("words", "jsonl", '{"words": [1, 2], "labels": ["O", "O"]}', "1: the word 1"),
        ("words", "jsonl", '{"words": "a b", "labels": ["O", "O"]}', "1: words and labels"),
        ("conll", "txt", "Anna B-PER\nhome\n", "2: 1 column in 'home'; expected 2 columns, among them 0, -1"),
        ("choice", "jsonl", ITEM + ITEM.replace(', "c"', ""), "2: 1 options"),
        ("choice", "jsonl", ITEM.replace('"b", ', '"b", "", '), "1: an option is ''; expected a text"),
        ("choice", "jsonl", ITEM.replace('"c"', "3"), "1: an option is '3'; expected a text"),
        (
            "choice",
            "jsonl",
            ITEM.replace('["b", "c"]', '"bc"'),
            "1: options 'bc'; expected a list",
        ),
        ("choice", "jsonl", ITEM.replace("1}", "2}"), "1: label '2' for 2 options; expected one of 0, 1"),
        ("choice", "jsonl", ITEM.replace("1}", "null}"), "1: label '' for 2 options"),
        ("choice", "jsonl", ITEM.replace('"a"', '" "'), "1: context is ' '"),
        (
            "choice",
            "jsonl",
            ITEM.replace(', "label": 1', ""),
            "1: no column 'label' or 'labels' for label in context, options; expected it",
        ),
    ],
)
def test_a_broken_row_is_named_with_its_line(own_corpus, kind, suffix, text, message):
    with pytest.raises(DataError, match=rf"sw\.{suffix}:{message}"):
        read(own_corpus(f'files = "{{language}}.{suffix}"\n{BODIES[kind]}', {f"sw.{suffix}": text}))


@pytest.mark.parametrize(
    ("kind", "suffix", "text", "line"),
    [
        ("text", "tsv", "text\tlabel\n", 1),
        ("list", "json", JSON.replace("\n]", ""), 3),
        ("list", "json", JSON + "{}", 3),
        ("list", "json", '{"text": "a"}', 1),
    ],
    ids=["no row", "a list without an end", "an object after the list", "an object without a list"],
)
def test_a_file_of_another_form_is_named_with_its_line(own_corpus, kind, suffix, text, line):
    corpus = own_corpus(f'files = "{{language}}.{suffix}"\n{BODIES[kind]}', {f"sw.{suffix}": text})
    with says(DataError, f"sw.{suffix}:{line}:"):
        read(corpus)


def test_what_is_written_is_read_as_json_lines(own_corpus, tmp_path):
    corpus = own_corpus('kind = "text"\nfiles = "{language}.tsv"\n', {"sw.tsv": TSV})
    lines = list(corpus.write(read(corpus), "sw"))
    (tmp_path / "again.jsonl").write_text("\n".join(lines), encoding="utf-8")
    file = File("again.jsonl", lambda: iter(f"{line}\n" for line in lines), lambda: "")
    table = ExampleColumns(format="jsonl", columns={"text": "text", "label": "label"})
    assert [row.parts for row in rows(file, table)] == [
        {"text": text, "label": label} for text, label in TEXTS
    ]


def test_a_described_corpus_is_known_by_its_name_and_its_reading_is_part_of_the_fingerprint(
    put_files, tmp_path
):
    body = 'name = "greetings"\nkind = "text"\nfiles = "{language}.tsv"\n'
    put_files({"own.toml": body, "sw.tsv": TSV, "other/sw.tsv": TSV})
    assert register_corpus(str(tmp_path / "own.toml")) == "greetings"
    sources = Sources()
    assert sources.labels("greetings") == ("anga", "kauli", "salamu")
    assert len(sources.examples("greetings", "sw", "train")) == 3
    fingerprint_before = sources.fingerprint("greetings", "sw", "train")
    swapped_text = 'name = "swapped"\nkind = "text"\nfiles = "{language}.tsv"\n'
    swapped_text += 'columns = { text = "label", label = "text" }\n'
    put_files(
        {
            "other/swapped.toml": swapped_text,
            "other/own.toml": body.replace("text", "pair") + 'labels = ["x"]\n',
        }
    )
    register_corpus(str(tmp_path / "other/swapped.toml"))
    assert fingerprint_before != sources.fingerprint("swapped", "sw", "train")
    with says(ConfigError, "'greetings'"):
        register_corpus(str(tmp_path / "other/own.toml"))


def test_each_description_of_a_joined_corpus_is_registered(put_files, tmp_path):
    body = 'kind = "text"\nfiles = "{language}.tsv"\nname = '
    put_files({"one.toml": body + '"joined-one"\n', "two.toml": body + '"joined-two"\n', "sw.tsv": TSV})
    name = register_corpus("one.toml+two.toml[dev]", folder=tmp_path)
    assert name == "joined-one+joined-two[dev]"
    assert Sources().corpus(name).tasks == Sources().corpus("joined-one").tasks


def test_it_is_looked_through_whole_and_what_is_odd_is_told(own_corpus):
    files = {"train-sw.tsv": TSV + "Hujambo dunia\tkauli\n", "test-sw.tsv": TSV + "x\tnone\n \tanga\n"}
    body = 'kind = "text"\nfiles = "{split}-{language}.tsv"\nlabels = ["anga", "kauli", "salamu"]\n'
    train, test = inspect_splits(own_corpus(body, files))
    assert (train.examples, train.repeated, train.trained, train.errors) == (4, 1, 0, ())
    assert train.labels == {"kauli": 2, "salamu": 1, "anga": 1}
    assert (test.examples, test.trained) == (3, 3)
    label, text = test.errors
    assert "test-sw.tsv:5: label 'none'" in label
    assert "test-sw.tsv:6: text is ' '" in text


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
    sample = data.draw(st.text(st.sampled_from("\"'\t\n\r ,;:{}[]\\\x00\u2028\ufeffaB-0é"), max_size=6))
    damaged_text = text[:place] + sample + text[end:]
    file = File(f"sw.{suffix}", lambda: iter(damaged_text.splitlines(keepends=True)), lambda: "")
    fields = {"tagging": ("O", "B-PER", "I-PER", "B-LOC", "I-LOC"), "text": ("anga", "kauli", "salamu")}
    form = "json" if suffix == "json" else list_suffixes()[f".{suffix}"]
    corpus = DescribedCorpus(
        name="damaged",
        kind=kind,
        paths={},
        format=form,
        columns=list_columns(kind)[form],
        labels=fields.get(kind, ()),
    )
    try:
        examples = list(corpus.examples(file))
    except DataError as error:
        assert re.match(rf"sw\.{suffix}:\d+: ", str(error))
    else:
        assert all(isinstance(example, LabelledText | TaggedSentence | Choice) for example in examples)
