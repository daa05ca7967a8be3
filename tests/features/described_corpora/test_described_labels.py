"""Described texts with several labels or a number, and questions: every form comes to the same examples."""

import json
import re

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import LabelledText, Question, SentencePair
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.features.described_corpora.corpus import DescribedCorpus
from says import says

FELT = [("Nafurahi sana", ("joy",)), ("Naogopa, nalia", ("fear", "sadness")), ("Saa sita", ())]
LABELS = ("fear", "joy", "sadness")
TOLD = 'kind = "text"\npredicts = "labels"\nfiles = "{split}-{language}.'
COLUMNS = 'columns = { label = ["fear", "joy", "sadness"] }\n'
FEAR = "text\tfear\tjoy\tsadness\n" + "".join(
    "\t".join([text, *(str(int(label in labels)) for label in LABELS)]) + "\n" for text, labels in FELT
)


def read(corpus: DescribedCorpus) -> list[object]:
    return list(corpus.read(None, "sw", "train"))


def objects(key: str, *rows: tuple[object, object]) -> str:
    return "".join(json.dumps({"text": text, key: label}) + "\n" for text, label in rows)


@pytest.mark.parametrize(
    ("suffix", "text", "more"),
    [
        ("jsonl", objects("label", *FELT), ""),
        ("jsonl", objects("felt", *FELT), 'columns = { label = "felt" }\n'),
        (
            "jsonl",
            objects("label", *((t, [LABELS.index(item) for item in own_part]) for t, own_part in FELT)),
            "labels",
        ),
        ("tsv", "text\tlabel\n" + "".join(f"{t}\t{','.join(own_part)}\n" for t, own_part in FELT), ""),
        (
            "tsv",
            "text\tlabel\n" + "".join(f"{t}\t{' | '.join(own_part)}\n" for t, own_part in FELT),
            'between = "|"\n',
        ),
        ("tsv", FEAR, COLUMNS),
        ("tsv", FEAR.replace("1", "True").replace("0", "False"), COLUMNS),
        ("tsv", FEAR.replace("fear", "F", 1), 'columns = { label = ["F", "joy", "sadness"] }\nlabels'),
    ],
)
def test_several_labels_in_every_form(own_corpus, suffix, text, more):
    more = more.replace("labels", f"labels = {list(LABELS)}\n") if more.endswith("labels") else more
    corpus = own_corpus(f'{TOLD}{suffix}"\n{more}', {f"train-sw.{suffix}": text})
    assert (corpus.tasks, corpus.labels) == (("multi-label-classification",), LABELS)
    examples = read(corpus)
    assert [(example.text, example.label) for example in examples] == FELT
    (split,) = inspect_splits(corpus)
    assert split.labels == {"joy": 1, "fear": 1, "sadness": 1}
    assert split.remarks == ("own sw train: texts without a label: 1.",)
    again = own_corpus(f'{TOLD}jsonl"\n', {"train-sw.jsonl": "\n".join(corpus.write(examples, "sw"))})
    assert read(again) == examples


STS = 'kind = "pair"\npredicts = "number"\nfiles = "{split}-{language}.tsv"\nskip = ["-"]\n'
SCORED = "first\tsecond\tlabel\nJua\tMwezi\t1.25\nJua\tJua\t5\na\tb\t-\n"


def test_numbers_of_pairs_are_read_and_told_with_their_range(own_corpus):
    corpus = own_corpus(STS, {"train-sw.tsv": SCORED})
    assert (corpus.tasks, corpus.labels) == (("pair-regression",), ())
    examples = read(corpus)
    assert examples == [
        SentencePair(id="0", first="Jua", second="Mwezi", label=1.25),
        SentencePair(id="1", first="Jua", second="Jua", label=5.0),
    ]
    (split,) = inspect_splits(corpus)
    assert (split.labels, split.remarks) == ({}, ("own sw train: numbers from 1.25 to 5, 3.12 on average.",))
    item = own_corpus(STS.replace("pair", "text"), {"train-sw.tsv": "text\tlabel\nJua\t-3e-1\n"})
    assert read(item) == [LabelledText(id="0", text="Jua", label=-0.3)]
    assert item.tasks == ("regression",)


@pytest.mark.parametrize(
    ("body", "suffix", "text", "message"),
    [
        (STS, "tsv", "first\tsecond\tlabel\na\tb\tnan\n", "tsv:2: label is 'nan'; expected a number"),
        (STS, "tsv", "first\tsecond\tlabel\na\tb\t3,8\n", "tsv:2: label is '3,8'; expected a number"),
        (
            f'{TOLD}tsv"\n{COLUMNS}',
            "tsv",
            FEAR.replace("\t1", "\t2", 1),
            "tsv:2: joy is '2'; expected 0 or 1",
        ),
        (f'{TOLD}jsonl"\nlabels = ["joy"]\n', "jsonl", objects("label", *FELT), "jsonl:2: label 'fear'; exp"),
        (
            f'{TOLD}jsonl"\nlabels = ["joy"]\n',
            "jsonl",
            objects("label", ("a", 3)),
            "label is '3'; expected a li",
        ),
    ],
)
def test_a_label_that_does_not_fit_is_named_with_its_line(own_corpus, body, suffix, text, message):
    corpus = own_corpus(body, {f"train-sw.{suffix}": text})
    with pytest.raises(DataError, match=re.escape(message)):
        read(corpus)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            STS.replace("number", "numbers"),
            "predicts: no kind of label for pair 'numbers'. Did you mean 'number'?",
        ),
        (
            STS.replace('"number"', '"labels"'),
            "Did you mean 'label'? Known: label, number.",
        ),
        (STS + 'labels = ["a"]\n', "labels:"),
        (TOLD + 'tsv"\nbetween = ""\n', "between:"),
        (
            TOLD + f'tsv"\n{COLUMNS}labels = ["a"]\n',
            "labels:",
        ),
        (STS + 'columns = { label = ["a", "b"] }\n', "columns:"),
    ],
)
def test_what_cannot_be_predicted_is_said_before_a_file_is_read(own_corpus, body, message):
    with pytest.raises(ConfigError) as error:
        own_corpus(body, {"train-sw.tsv": SCORED})
    assert message in str(error.value)


def test_how_a_corpus_is_read_that_says_none_of_it_is_told_as_before():
    """Fingerprints of descriptions made before do not change."""
    corpus = DescribedCorpus(name="a", kind="text", paths={}, format="tsv", columns={"text": "text"})
    assert corpus._digest == "b4053d1b9950"


def test_spans_in_a_text_are_words_with_tags_and_a_stray_bracket_is_named(own_corpus):
    body = 'kind = "tagging"\nfiles = "{split}-{language}.jsonl"\ncolumns = { annotated = "said" }\n'
    text = '{"said": "wake me [time : nine am] [date:on  friday] ok"}\n'
    corpus = own_corpus(body, {"train-sw.jsonl": text})
    assert corpus.labels == ("O", "B-date", "I-date", "B-time", "I-time")
    (example,) = corpus.read(None, "sw", "train")
    assert example.words == ("wake", "me", "nine", "am", "on", "friday", "ok")
    assert example.tags == ("O", "O", "B-time", "I-time", "B-date", "I-date", "O")
    for stray in ("a [b", "a ] b", "[time : ]", "[time nine]"):
        with says(DataError, "jsonl:1:", "spans as in [time : nine am]"):
            own_corpus(body + 'labels = ["time"]\n', {"train-sw.jsonl": json.dumps({"said": stray})})


# Questions

CONTEXT = "Ada Lovelace aliandika. Ada alizaliwa London."
ASKED = [("Nani?", ["Ada Lovelace", "Ada"], [0, 24]), ("Wapi?", ["London"], [38])]
QUESTIONS = [
    Question(
        id=str(index), passage=CONTEXT, question=arguments, answers=tuple(zip(starts, texts, strict=True))
    )
    for index, (arguments, texts, starts) in enumerate(ASKED)
]


def write_questions(make) -> str:
    rows = ({"context": CONTEXT, "question": item[0], **make(*item[1:])} for item in ASKED)
    return "".join(json.dumps(row) + "\n" for row in rows)


def squad(questions, *impossible: str) -> str:
    qas = [
        {
            "id": str(n),
            "question": question,
            "answers": [
                dict(zip(("text", "answer_start"), a, strict=True)) for a in zip(*remainder, strict=True)
            ],
        }
        for n, (question, *remainder) in enumerate(questions)
    ]
    qas += [{"id": item, "question": item, "answers": [], "is_impossible": True} for item in impossible]
    return json.dumps({"data": [{"title": "", "paragraphs": [{"context": CONTEXT, "qas": qas}]}]})


FORMS = {
    "of datasets": (
        "jsonl",
        write_questions(lambda texts, starts: {"answers": {"text": texts, "answer_start": starts}}),
    ),
    "of SQuAD": (
        "jsonl",
        write_questions(
            lambda *pair: {"answers": [{"text": t, "answer_start": s} for t, s in zip(*pair, strict=True)]}
        ),
    ),
    "lists": ("jsonl", write_questions(lambda texts, starts: {"answers": texts, "start": starts})),
    "whole": ("json", squad(ASKED)),
}


@pytest.mark.parametrize("form", FORMS)
def test_questions_in_every_form(own_corpus, form):
    suffix, text = FORMS[form]
    more = 'columns = { start = "start" }\n' if form == "lists" else ""
    corpus = own_corpus(
        f'kind = "span"\nfiles = "{{split}}-{{language}}.{suffix}"\n{more}', {f"train-sw.{suffix}": text}
    )
    assert corpus.tasks == ("qa",)
    examples = read(corpus)
    assert examples == QUESTIONS
    body = 'kind = "span"\nfiles = "{split}-{language}.jsonl"\n'
    again = own_corpus(body, {"train-sw.jsonl": "\n".join(corpus.write(examples, "sw"))})
    assert read(again) == examples


SPAN = 'kind = "span"\nfiles = "{split}-{language}.tsv"\ncolumns = { answers = "answer", start = "start" }\n'
HEAD = "context\tquestion\tanswer\tstart\n"


def test_an_answer_a_row_with_or_without_its_start_and_what_was_found_again_is_told(own_corpus):
    rows = [("Ada", "24"), ("Ada", ""), ("London", "37"), ("aliandika", "")]
    text = HEAD + "".join(f"{CONTEXT}\tNini?\t{answer}\t{start}\n" for answer, start in rows)
    corpus = own_corpus(SPAN, {"train-sw.tsv": text})
    answers = [example.answers for example in corpus.read(None, "sw", "train")]
    assert answers == [((24, "Ada"),), ((0, "Ada"),), ((38, "London"),), ((13, "aliandika"),)]
    (split,) = inspect_splits(corpus)
    assert split.remarks == (
        "own sw train: answers relocated from wrong offsets: 2 (question 1: answer 'Ada' "
        "without an offset, the first of 2 places; question 2: answer 'London' from 37 to 38).",
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("London\t3", None),
        (
            "Nairobi\t3",
            "tsv:2: answer 'Nairobi' at 3, where the passage has ' Lovela'; it has that text nowhere",
        ),
        (
            "Ada\t12",
            "tsv:2: answer 'Ada' at 12, where the passage has ' al'; it has that text 2 times",
        ),
        ("Nairobi\t", "tsv:2: answer 'Nairobi', nowhere"),
        ("Ada\tx", "tsv:2: start is 'x'; expected a number"),
        ("Ada\t--3", "tsv:2: start is '--3'; expected a number"),
        ("Ada\t" + "9" * 5000, "9'; expected a number"),
        ("\t", 'tsv:2: … SQuAD 1.1 … skip = [""]'),
    ],
)
def test_an_answer_that_is_not_there_is_named_with_its_line(own_corpus, row, message):
    corpus = own_corpus(SPAN, {"train-sw.tsv": f"{HEAD}{CONTEXT}\tWapi?\t{row}\n"})
    if message is None:
        assert len(read(corpus)) == 1
        return
    with pytest.raises(DataError) as error:
        read(corpus)
    assert [fact for fact in message.split(" … ") if fact not in str(error.value)] == []


def test_questions_without_an_answer_are_left_out_where_that_is_said(own_corpus):
    body = 'kind = "span"\nfiles = "{split}-{language}.json"\n'
    corpus = own_corpus(body, {"train-sw.json": squad(ASKED, "x")})
    with says(DataError, "[2]", "2.0"):
        read(corpus)
    corpus = own_corpus(body + 'skip = [""]\n', {"train-sw.json": squad(ASKED, "x")})
    assert read(corpus) == QUESTIONS
    corpus = own_corpus(
        SPAN + 'skip = [""]\n', {"train-sw.tsv": f"{HEAD}{CONTEXT}\tWapi?\tLondon\t38\na\tb\t\t\n"}
    )
    assert [example.id for example in corpus.read(None, "sw", "train")] == ["0"]
    with says(ConfigError, "columns:", "'id'"):
        own_corpus(body + 'columns = { id = "id" }\n', {"train-sw.json": squad(ASKED)})


def test_questions_of_parquet_as_datasets_saves_them(own_corpus):
    rows = [
        {"context": CONTEXT, "question": item, "answers": {"text": texts, "answer_start": starts}}
        for item, texts, starts in ASKED
    ]
    assert read(
        own_corpus('kind = "span"\nfiles = "{split}-{language}.parquet"\n', {"train-sw.parquet": rows})
    ) == (QUESTIONS)


@pytest.mark.parametrize("name", ["sw.jsonl", "sw.parquet"])
def test_spans_in_lists_are_read_as_bio_whatever_their_scheme(own_corpus, name):
    row = {"words": ["Anna", "Bo", "Li", "in", "Oslo"], "labels": ["B-PER", "I-PER", "E-PER", "O", "S-LOC"]}
    content = [row] if name.endswith("parquet") else json.dumps(row)
    for labels in ("", 'labels = ["PER", "LOC"]\n', 'labels = ["O", "B-PER", "I-PER", "E-PER", "S-LOC"]\n'):
        corpus = own_corpus(f'kind = "tagging"\nfiles = "{{language}}.{name[3:]}"\n{labels}', {name: content})
        assert set(corpus.labels) == {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"}
        (sentence,) = corpus.read(None, "sw", "train")
        assert sentence.tags == ("B-PER", "I-PER", "I-PER", "O", "B-LOC")


def test_labels_that_training_lacks_come_last_and_are_reported(own_corpus):
    files = {"train-sw.tsv": "text\tlabel\na\tx\nb\tz\n", "dev-sw.tsv": "text\tlabel\nc\ty\nd\tzz\n"}
    corpus = own_corpus('kind = "text"\nfiles = "{split}-{language}.tsv"\n', files)
    assert (corpus.labels, corpus.untrained) == (("x", "z", "y", "zz"), ("y", "zz"))
    assert [text.label for text in corpus.read(None, "sw", "dev")] == ["y", "zz"]
    (remark,) = corpus.remarks(None, "sw", "dev")
    assert remark == "own: labels that no training data has: y, zz Did you mean 'z'?"
    assert list(corpus.remarks(None, "sw", "train")) == []


def test_numbers_are_labels_by_their_spelling_before_their_place(own_corpus):
    rows = [{"text": text, "label": label} for text, label in (("a", 1), ("b", 2), ("c", 3))]
    body = 'kind = "text"\nfiles = "{language}.jsonl"\n'
    content = "".join(json.dumps(row) + "\n" for row in rows)
    assert [text.label for text in own_corpus(body, {"sw.jsonl": content}).read(None, "sw", "train")] == [
        "1",
        "2",
        "3",
    ]


@pytest.mark.parametrize("label", ["null", '""', '" "', "NaN"])
def test_a_missing_label_is_an_error_with_its_line_or_left_out(own_corpus, label):
    content = f'{{"text": "a", "label": "x"}}\n{{"text": "b", "label": {label}}}\n'
    body = 'kind = "text"\nfiles = "{language}.jsonl"\n'
    with says(DataError, "sw.jsonl:2:"):
        list(own_corpus(body, {"sw.jsonl": content}).read(None, "sw", "train"))
    for more in ('skip = [""]\n', 'bad_rows = "skip"\n'):
        assert [
            text.label for text in own_corpus(body + more, {"sw.jsonl": content}).read(None, "sw", "train")
        ] == ["x"]


def test_rows_that_do_not_fit_are_counted_after_the_first_and_left_out_where_the_description_says_so(
    own_corpus,
):
    body = 'kind = "pair"\nfiles = "{language}.tsv"\nlabels = ["x"]\n'
    content = "first\tsecond\tlabel\na\tb\tx\n \tc\tx\nd\te\ty\nf\tg\n"
    with says(DataError, "sw.tsv:3:"):
        list(own_corpus(body, {"sw.tsv": content}).read(None, "sw", "train"))
    corpus = own_corpus(f'{body}bad_rows = "skip"\n', {"sw.tsv": content})
    assert [pair.id for pair in corpus.read(None, "sw", "train")] == ["0"]
    assert list(corpus.remarks(None, "sw", "train")) == ["own sw train: 3 rows that do not fit skipped."]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("text", '{"text": "a"}\n'),
        ("text", '{"text": "a", "label": null}\n'),
        ("pair", '{"first": "a", "second": "b"}\n'),
        ("choice", '{"context": "a", "options": ["b", "c"]}\n'),
        ("span", '{"context": "a b", "question": "c"}\n'),
        ("tagging", '{"words": ["a", "b"]}\n'),
    ],
)
def test_dev_and_test_may_have_no_labels_and_training_may_not(own_corpus, kind, content):
    body = f'kind = "{kind}"\nfiles = "{{split}}-{{language}}.jsonl"\nlanguages = ["sw"]\n'
    body += 'labels = ["x", "y"]\n' if kind in ("text", "pair", "tagging") else ""
    corpus = own_corpus(body, {"dev-sw.jsonl": content})
    (example,) = corpus.read(None, "sw", "dev")
    assert not any(getattr(example, part, None) for part in ("label", "tags", "answers"))
    assert list(corpus.remarks(None, "sw", "dev")) == ["own sw dev: no labels."]
    with pytest.raises(DataError, match=r"train-sw\.jsonl:1: "):
        list(own_corpus(body, {"train-sw.jsonl": content}).read(None, "sw", "train"))
