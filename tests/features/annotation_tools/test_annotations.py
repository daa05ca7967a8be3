"""Spans of annotation tools are read in every script, and predictions are written as the tools write them."""

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotated_files import TEXTS, TOOLS, body_of, marked_texts, offsets_of, write_annotated
from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import find_spans
from isogloss.data.files import disk_file
from isogloss.features.annotation_tools.offsets import (
    MarkedSpan,
    OffsetError,
    locate_spans,
    locate_words,
    tag_text,
)
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.features.described_corpora.file_layouts import layout_of
from isogloss.tasks import find_task
from isogloss.using.formats import Prediction, format_of
from isogloss.using.kinds import kind_of

SCRIPTS = list(TEXTS)
MARKED = marked_texts(SCRIPTS)
TYPES = Counter(type_name for _, spans in TEXTS.values() for _, type_name in spans)
UNSPACED = {"Chinese", "Japanese", "Thai"}


@pytest.fixture
def corpus(tmp_path):
    """Describe a file as a test split."""

    def describe(file, body):
        text = f'kind = "tagging"\nfiles = {{ test = "{file.name}" }}\nlanguages = ["en"]\n{body}'
        (tmp_path / "own.toml").write_text(text, encoding="utf-8")
        return describe_corpus(tmp_path / "own.toml")

    return describe


@pytest.mark.parametrize("tool", TOOLS)
def test_spans_of_a_tool_are_read_in_every_script(tool, tmp_path, corpus):
    file, body = write_annotated(tmp_path, tool, MARKED)
    (contents,) = inspect_splits(corpus(file, body))
    assert not contents.errors
    assert (contents.examples, contents.labels) == (len(SCRIPTS), dict(TYPES))
    layout = layout_of(file, "", "", is_labelled=True)
    assert layout.kind == "tagging"


@pytest.mark.parametrize("tool", TOOLS)
def test_predictions_are_written_as_the_tool_writes_them_and_read_again(tool, tmp_path, corpus):
    file, body = write_annotated(tmp_path, tool, MARKED)
    described_corpus = corpus(file, body)
    gold = [example.tags for example in described_corpus.read(None, "en", "test")]
    kind = kind_of(find_task("span-tagging", ("O", "B-PER", "I-PER")))
    chosen_field, source = format_of(disk_file(file), kind, "span-tagging")
    assert chosen_field.name == {"brat": "brat", "webanno": "webanno", "label-studio": "tasks"}.get(
        tool, "offsets"
    )
    entries = list(chosen_field.read(source, ""))
    tags = iter(gold)
    answered_entries = [(entry, Prediction(next(tags)) if entry.example else None) for entry in entries]
    text = "".join(f"{line}\n" for line in chosen_field.write(answered_entries))
    file.write_text(text, encoding="utf-8")
    again = [example.tags for example in described_corpus.read(None, "en", "test")]
    assert again == gold


def test_words_of_scripts_without_spaces_are_graphemes():
    assert [text[0] for text in split_into_words("北京 ok")] == ["北", "京", "o"]
    assert split_into_words("กรุงเทพ") == ["ก", "รุ", "ง", "เ", "ท", "พ"]
    assert split_into_words("«Oslo», (3.5)!") == ["«", "Oslo", "»", ",", "(", "3.5", ")", "!"]


def split_into_words(text):
    return [text[place.start : place.stop] for place in locate_words(text)]


@given(st.text(alphabet="ab .,北京กิि👩🏽\u200d\n", max_size=30), st.randoms(use_true_random=False))
def test_spans_of_whole_words_are_the_same_after_a_round_trip(text, draw: random.Random):
    places = locate_words(text)
    assert "".join(split_into_words(text)) == "".join(text.split())
    tags = ["O"] * len(places)
    for index in range(len(places)):
        tags[index] = draw.choice(["O", "B-X", "B-Y", "I-X" if index and tags[index - 1][2:] == "X" else "O"])
    spans = locate_spans(text, tags, places)
    tagged_text = tag_text(text, spans)
    assert find_spans(tagged_text.tags) == find_spans(tags)
    assert tagged_text.overlapping == 0


@pytest.mark.parametrize("script", [script for script in SCRIPTS if script not in ("Nothing", *UNSPACED)])
def test_a_span_that_cuts_a_word_is_an_error_with_its_position(script):
    text, _ = TEXTS[script]
    (start, end, type_name), *_ = offsets_of(script)
    with pytest.raises(OffsetError, match=f"{start}-{end - 1}"):
        tag_text(text, [MarkedSpan(type_name, start, end - 1)])


@pytest.mark.parametrize(
    ("span", "fact"),
    [
        (MarkedSpan("PER", 0, 99), "21 characters"),
        (MarkedSpan("PER", 6, 6), "6-6"),
        (MarkedSpan("PER", 0, 6, "Ana Lo"), "'Ana Lo'"),
        (MarkedSpan("PER", 6, 7), "without a word"),
    ],
)
def test_spans_that_do_not_fit_their_text_are_errors(span, fact):
    with pytest.raises(OffsetError, match=fact):
        tag_text(TEXTS["Latin"][0], [span])


def test_of_overlapping_spans_the_longest_is_read_and_others_are_reported(tmp_path, corpus):
    body = {"text": "University of Oslo", "label": [[0, 18, "ORG"], [14, 18, "LOC"]]}
    (tmp_path / "texts.jsonl").write_text(json.dumps(body) + "\n", encoding="utf-8")
    (contents,) = inspect_splits(corpus(tmp_path / "texts.jsonl", 'annotated = "offsets"\n'))
    assert contents.labels == {"ORG": 1}
    assert "1 spans" in contents.remarks[0]


@pytest.mark.parametrize(("text", "start"), [("\U0001f600 Ana in Oslo", 2), ("\U0001f600東京タワー", 1)])
def test_offsets_after_emoji_count_characters_and_that_is_reported(tmp_path, corpus, text, start):
    body = {"text": text, "entities": [[start, start + 3, "PER"]]}
    (tmp_path / "texts.jsonl").write_text(json.dumps(body) + "\n", encoding="utf-8")
    described_corpus = corpus(tmp_path / "texts.jsonl", 'annotated = "offsets"\n')
    (example,) = described_corpus.read(None, "en", "test")
    (span,) = find_spans(example.tags)
    assert "".join(example.words[span.start : span.stop]) == text[start : start + 3]
    (contents,) = inspect_splits(described_corpus)
    assert "1 texts with characters such as emoji" in contents.remarks[0]


def write_task_in_utf16(folder, text, value):
    start = len(text[: text.index("Ana")].encode("utf-16-le")) // 2
    value = {"start": start, "end": start + 3, "labels": ["PER"], **value}
    body = {"data": {"text": text}, "annotations": [{"result": [{"type": "labels", "value": value}]}]}
    (folder / "tasks.json").write_text(json.dumps([body]), encoding="utf-8")
    return folder / "tasks.json", 'annotated = "offsets"\nformat = "json"\n'


TEXTS_IN_UTF16 = ["\U0001f600 Ana in Oslo \U0001f600", "\U0001f469\U0001f3fd\u200d\U0001f52c東京 Ana"]


@pytest.mark.parametrize("text", TEXTS_IN_UTF16)
def test_offsets_in_utf16_are_recognised_by_the_texts_of_their_spans(tmp_path, corpus, text):
    described_corpus = corpus(*write_task_in_utf16(tmp_path, text, {"text": "Ana"}))
    (contents,) = inspect_splits(described_corpus)
    (example,) = described_corpus.read(None, "en", "test")
    (span,) = find_spans(example.tags)
    assert example.words[span.start : span.stop] == ("Ana",)
    assert any("1 texts with offsets in units of UTF-16" in remark for remark in contents.remarks)


@pytest.mark.parametrize("text", TEXTS_IN_UTF16)
def test_offsets_in_utf16_without_texts_of_spans_are_errors_where_they_do_not_fit(tmp_path, corpus, text):
    file, fields = write_task_in_utf16(tmp_path, text, {})
    with pytest.raises(DataError, match=r"tasks\.json:1: .*\d+-\d+ \(PER\)"):
        corpus(file, fields)


def test_rejected_texts_are_left_out_and_reported(tmp_path, corpus):
    bodies = [body_of(MARKED[0], "prodigy"), {**body_of(MARKED[0], "prodigy"), "answer": "reject"}]
    text = "".join(json.dumps(body) + "\n" for body in bodies)
    (tmp_path / "texts.jsonl").write_text(text, encoding="utf-8")
    (contents,) = inspect_splits(corpus(tmp_path / "texts.jsonl", 'annotated = "offsets"\n'))
    assert contents.examples == 1
    assert "1 rejected texts" in contents.remarks[0]


def test_other_descriptions_of_these_files_name_the_one_to_write(tmp_path, corpus):
    file, _ = write_annotated(tmp_path, "doccano", MARKED)
    with pytest.raises(DataError, match=r'texts\.jsonl:1: .*"offsets"'):
        list(corpus(file, "").read(None, "en", "test"))
    file, _ = write_annotated(tmp_path, "webanno", MARKED)
    with pytest.raises(DataError, match=r'texts\.tsv:1: .*"webanno"'):
        list(corpus(file, 'format = "conll"\n').read(None, "en", "test"))


LATIN = (TEXTS["Latin"][0], offsets_of("Latin"))
WITHDRAWN = (TEXTS["Latin"][0], [(0, 6, "ORG")])


def task_of(*annotations, cancelled=()):
    """Return a task of Label Studio with the annotations of several people, some of them withdrawn."""
    bodies = [body_of(annotation, "label-studio") for annotation in annotations]
    results = [body["annotations"][0] for body in bodies]
    for index in cancelled:
        results[index]["was_cancelled"] = True
    return bodies[0] | {"annotations": results}


ODD_TEXTS = {
    "several annotations": ("json", [task_of(LATIN, WITHDRAWN)], [2], "1 texts with several annotations"),
    "a withdrawn one first": ("json", [task_of(WITHDRAWN, LATIN, cancelled=[0])], [2], None),
    "one and a withdrawn one": ("json", [task_of(LATIN, WITHDRAWN, cancelled=[1])], [2], None),
    "rejected": (
        "jsonl",
        [body_of(LATIN, "prodigy"), body_of(WITHDRAWN, "prodigy") | {"answer": "reject"}],
        [2],
        "1 rejected texts skipped",
    ),
    "without spans, first": (
        "jsonl",
        [body_of((TEXTS["Nothing"][0], []), "spacy"), body_of(LATIN, "spacy")],
        [0, 2],
        None,
    ),
}
"""Form of the file, texts, the spans that are read of each, and what is remarked on them."""


def write_texts(folder, form, bodies):
    """Write a file of texts, and return it with the fields of its description."""
    file = folder / f"texts.{form}"
    lines = [json.dumps(bodies)] if form == "json" else [json.dumps(body) for body in bodies]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file, f'annotated = "offsets"\nformat = "{form}"\n'


@pytest.mark.parametrize(("form", "bodies", "counts", "remark"), ODD_TEXTS.values(), ids=ODD_TEXTS)
def test_texts_with_several_withdrawn_or_no_annotations_are_read(
    tmp_path, corpus, form, bodies, counts, remark
):
    described_corpus = corpus(*write_texts(tmp_path, form, bodies))
    spans = [find_spans(example.tags or ()) for example in described_corpus.read(None, "en", "test")]
    assert [len(found) for found in spans] == counts
    (contents,) = inspect_splits(described_corpus)
    assert not contents.errors
    assert "ORG" not in contents.labels
    remarks = " ".join(contents.remarks)
    assert (remark or "") in remarks
    assert remark or ("several" not in remarks and "rejected" not in remarks)


@pytest.mark.parametrize("key", ["entities", "spans", "labels"])
@pytest.mark.parametrize("value", ["Ana Li", 7, [["Ana Li", "PER"]], {"PER": "Ana Li"}])
def test_spans_without_offsets_are_errors_with_their_line(tmp_path, corpus, key, value):
    file, body = write_texts(tmp_path, "jsonl", [body_of(LATIN, "spacy"), {"text": LATIN[0], key: value}])
    with pytest.raises(DataError, match=rf"jsonl:2: .*{key}.*offsets"):
        list(corpus(file, body).read(None, "en", "test"))


@pytest.mark.parametrize("tool", ["doccano", "spacy", "prodigy"])
@pytest.mark.parametrize("position", [0, 1])
def test_a_text_without_a_key_for_spans_was_not_annotated(tmp_path, corpus, tool, position):
    bodies = [body_of(LATIN, tool)]
    bodies.insert(position, {"text": LATIN[0]})
    file, body = write_texts(tmp_path, "jsonl", bodies)
    with pytest.raises(DataError, match=f"jsonl:{position + 1}:"):
        list(corpus(file, body).read(None, "en", "test"))
