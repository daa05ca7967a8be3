import json

import pytest

from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.examples import repairs_message
from isogloss.features.question_answering.squad import read_questions
from says import check_wording

MLQA = CORPORA["mlqa"]
SQUAD = CORPORA["squad"]
TYDIQA = CORPORA["tydiqa"]


@pytest.mark.parametrize("split", ["train", "dev"])
@pytest.mark.parametrize("place", ["mlqa/mlqa-translate-train", "mlqa-translate-train"])
def test_squad_in_other_languages_is_what_was_released_with_mlqa(put_files, place, split):
    data = put_files({f"{place}/hi_squad-translate-train-{split}-v1.1.json": json.dumps(document())})
    assert [example.id for example in SQUAD.read(data, "hi", split)] == ["1", "2"]


@pytest.mark.parametrize(
    ("passage", "start", "text", "expected"),
    [
        ("in 1887 it stood", 2, "1887", (3, "1887")),
        ("in 1887 it stood", 3, " 1887 ", (3, "1887")),
        ("in May\u00a01887 it stood", 3, "May 1887", (3, "May\u00a01887")),
        ("im Jänner war Jänner", 15, "Jänner", (14, "Jänner")),
        ("été été été", 10, "été", (8, "été")),
        ("😀😀😀😀 a a", 11, "a", (7, "a")),
    ],
)
def test_an_answer_beside_its_offset_is_found_again_and_told_of(put_files, passage, start, text, expected):
    content = document(answers=[{"text": text, "answer_start": start}])
    get_paragraph(content)["context"] = passage
    first_example, second = SQUAD.read(
        put_files({"squad/train-v1.1.json": json.dumps(content)}), "en", "train"
    )
    assert first_example.answers == second.answers == (expected,)
    message = f"answer {expected[1]!r} from {start} to {expected[0]}"
    assert first_example.repaired == message
    assert repairs_message([first_example, second], "squad en train") == (
        "squad en train: answers relocated from wrong offsets: 2 "
        f"(question 1: {message}; question 2: {message})."
    )


@pytest.mark.parametrize(("passage", "start"), [("b a b", 2), ("b b b", 40), ("x b b b b", 5)])
def test_an_answer_that_may_be_meant_in_two_places_is_refused(reading_error, passage, start):
    content = document(answers=[{"text": "b", "answer_start": start}])
    get_paragraph(content)["context"] = passage
    messages = reading_error(SQUAD, {"squad/train-v1.1.json": json.dumps(content)})
    assert "(question 1): answer 'b' at" in messages
    assert f" {passage.count('b')} times, " in messages


def test_questions_without_answers_can_be_asked_for(put_files):
    content = document()
    first_question, *_ = get_paragraph(content)["qas"]
    del first_question["answers"]
    (file,) = put_files({"some.json": json.dumps(content)}).find(["some.json"])
    first_question, second = read_questions(file, answers="ignored")
    assert (first_question.answers, second.answers) == ((), ())


def get_paragraph(content):
    """Return the only paragraph of a document."""
    (article,) = content["data"]
    (paragraph,) = article["paragraphs"]
    return paragraph


def document(**change):
    qa = {"id": "1", "question": "q?", "answers": [{"text": "b", "answer_start": 2}]} | change
    return {"data": [{"paragraphs": [{"context": "a b", "qas": [qa, qa | {"id": "2"}]}]}]}


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        ("{\n nothing", "train-v1.1.json:2: "),
        ("[" * 100_000, "train-v1.1.json:1: "),
        ("[]", "the file: []; expected an object"),
        ("{}", "the file: no 'data' among nothing; expected 'data'"),
        ('{"data": [3]}', "data[0]: 3; expected an object"),
        (document(id=7), "data[0].paragraphs[0].qas[0].id: 7; expected text"),
        (document(answers=[]), "qas[0] (question 1): a question without answers"),
        (
            document(answers=[], is_impossible=True),
            "(question 1): an impossible question (SQuAD 2.0); expected",
        ),
        (
            document(answers=[{"text": "c", "answer_start": 1}]),
            "(question 1): answer 'c' at 1, where the passage has ' '; it has that text nowhere; expected",
        ),
        (document(answers=[{"text": "", "answer_start": 0}]), "answer '' at 0"),
        (document(question="\ud83d"), "question: '\\ud83d' "),
        (document(answers=[{"text": "b", "answer_start": True}]), "answer_start: true; expected"),
        (document(answers=[{"text": "b"}]), "no 'answer_start' among 'text'"),
        ('{"data": [], "data": [1]}', "the key 'data' "),
        ('{"data": ' + "[" * 900 + "]" * 900 + "}", "data[0]: a list; expected an object"),
        ('{"data": {"' + "a" * 10_000 + '": NaN}}', "the file.data: an object; expected a list"),
        ('{"' + "a" * 10_000 + '": NaN}', "aaa…; expected 'data'"),
        ('{"data": ' + "9" * 5000 + "}", "(Exceeds the limit"),
    ],
)
def test_broken_file_names_the_place(reading_error, content, messages):
    text = content if isinstance(content, str) else json.dumps(content)
    assert messages in reading_error(SQUAD, {"squad/train-v1.1.json": text})


@pytest.mark.parametrize(
    ("content", "place"), [({"data": []}, "train-v1.1.json:1:"), (document(id="2"), "question 2:")]
)
def test_a_file_without_questions_and_an_id_that_is_there_twice_are_named(reading_error, content, place):
    check_wording(reading_error(SQUAD, {"squad/train-v1.1.json": json.dumps(content)}), place)


def test_articles_and_paragraphs_are_written_back_as_they_stood(put_files):
    def paragraph(passage, *keys):
        qas = [{"id": key, "question": "?", "answers": [{"text": "a", "answer_start": 0}]} for key in keys]
        return {"context": passage, "qas": qas}

    articles = [
        ("one", [paragraph("a b", "1", "2"), paragraph("a b", "3")]),
        ("one", [paragraph("a b", "4")]),
    ]
    content = {"data": [{"title": title, "paragraphs": paragraphs} for title, paragraphs in articles]}
    for corpus, version in ((SQUAD, "1.1"), (MLQA, 1.0), (TYDIQA, None)):
        path = corpus.path("en", "dev")
        read = list(corpus.read(put_files({path: json.dumps(content)}), "en", "dev"))
        assert [run.title for run in read] == ["one"] * 4
        data = json.loads("\n".join(corpus.write(read, "en")))
        assert data == content | ({"version": version} if version else {})


def test_only_mlqas_own_languages_are_compared_by_its_rules(put_files):
    for corpus, language, expected in ((MLQA, "de", "de"), (MLQA, "fr", ""), (SQUAD, "de", "")):
        folder = put_files({corpus.path(language, "dev"): json.dumps(document())})
        assert {example.language for example in corpus.read(folder, language, "dev")} == {expected}
