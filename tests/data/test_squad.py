import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.data.examples import Question
from isogloss.data.squad import Squad


def test_train_is_squad_and_test_is_xquad(fixtures):
    first, second = Squad().read(fixtures, "en", "train")
    assert first.answers == ((39, "1887"), (36, "in 1887"))
    assert (second.id, second.passage) == ("q2", first.passage)
    (russian,) = Squad().read(fixtures, "ru", "test")
    assert russian.answers == ((21, "в 1887 году"),)


def test_missing_split_lists_the_languages_that_have_it(fixtures):
    with pytest.raises(DataError, match="squad has test for: ru"):
        Squad().read(fixtures, "en", "test")
    with pytest.raises(DataError, match="For 'ru' it has: test"):
        Squad().read(fixtures, "ru", "train")


def document(**change):
    qa = {"id": "1", "question": "q?", "answers": [{"text": "b", "answer_start": 2}]} | change
    return {"data": [{"paragraphs": [{"context": "a b", "qas": [qa, qa | {"id": "2"}]}]}]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{\n nothing", "train-v1.1.json:2: no JSON"),
        ("[" * 100_000, "train-v1.1.json:1: no JSON"),
        ("[]", "the file: []; expected an object"),
        ("{}", "the file: no 'data' among nothing; expected 'data'"),
        ('{"data": [3]}', "data[0]: 3; expected an object"),
        ('{"data": []}', ":1: the split is empty"),
        (document(id=7), "data[0].paragraphs[0].qas[0].id: 7; expected text"),
        (document(answers=[]), "qas[0]: a question without answers"),
        (document(answers=[{"text": "b", "answer_start": 1}]), "answer 'b' at 1, where the passage has ' '"),
        (document(answers=[{"text": "b", "answer_start": -1}]), "answer 'b' at -1"),
        (document(answers=[{"text": "", "answer_start": 0}]), "answer '' at 0"),
        (
            document(answers=[{"text": "b", "answer_start": True}]),
            "answer_start: true; expected a whole number",
        ),
        (document(answers=[{"text": "b"}]), "no 'answer_start' among 'text'"),
        (document(id="2"), "question 2: this id a second time"),
    ],
)
def test_broken_file_names_the_place(message, content, said):
    text = content if isinstance(content, str) else json.dumps(content)
    assert said in message(Squad(), {"squad/train-v1.1.json": text})


text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@st.composite
def questions(draw):
    passage = draw(text)
    start = draw(st.integers(0, len(passage) - 1))
    end = draw(st.integers(start + 1, len(passage)))
    return passage, draw(text), ((start, passage[start:end]),)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(questions(), min_size=1))
def test_what_is_written_reads_back(again, drawn):
    examples = [Question(id=str(i), passage=p, question=q, answers=a) for i, (p, q, a) in enumerate(drawn)]
    assert again(Squad(), examples, "qaa") == examples


def test_half_a_surrogate_pair_is_no_text(message):
    content = json.dumps(document(question="\udc00?"))
    said = message(Squad(), {"squad/train-v1.1.json": content})
    assert r"qas[0].question: '\udc00?' with half a surrogate pair" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"data": [], "data": [1]}', "the key 'data' a second time in an object"),
        ('{"data": ' + "[" * 900 + "]" * 900 + "}", "data[0]: a list; expected an object"),
        ('{"data": {"' + "a" * 10_000 + '": NaN}}', "the file.data: an object; expected a list"),
        ('{"' + "a" * 10_000 + '": NaN}', "aaa…; expected 'data'"),
        ('{"data": ' + "9" * 5000 + "}", "no JSON (Exceeds the limit"),
    ],
)
def test_what_json_would_hide_is_an_error(message, text, said):
    assert said in message(Squad(), {"squad/train-v1.1.json": text})
