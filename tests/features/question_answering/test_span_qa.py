from dataclasses import replace
from itertools import islice, product
from sys import getsizeof

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from each import each
from isogloss.core.errors import DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.examples import Question
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.built_in_languages import LANGUAGES, BuiltInLanguages
from isogloss.features.question_answering.task import (
    CONSTANT_SPANS,
    MAX_ANSWER_SUBWORDS,
    MAX_QUESTION_SUBWORDS,
    QA,
    best_span,
)
from isogloss.metrics.texts import normalize_answer
from isogloss.runs.pretrained import model_folder
from isogloss.tasks.batch import collate
from isogloss.tasks.task import all_measures
from task_examples import PASSAGE, examples_of, question, span_scores


@pytest.fixture
def examples():
    return examples_of("qa")


def test_the_answer_is_the_best_span_of_all_windows(either_tokenizer, examples):
    generator = torch.Generator().manual_seed(0)
    rows = QA.encode(examples, either_tokenizer, limit=20, overlap=6)
    scores = [torch.randn(len(row.positions), 2, generator=generator) for row in rows]
    sums = {}
    for row, row_scores in zip(rows, scores, strict=True):
        for start, end in product(range(1, len(row.positions)), repeat=2):
            if 0 <= end - start < MAX_ANSWER_SUBWORDS:
                text = examples[row.example].passage[row.characters[2 * start] : row.characters[2 * end + 1]]
                sums.setdefault(row.example, []).append(
                    (float(row_scores[start, 0] + row_scores[end, 1]), text)
                )
    assert QA.decode(examples, rows, scores) == [max(sums[number])[1] for number in range(len(examples))]


def test_a_question_that_is_too_long_is_cut(either_tokenizer):
    long_question = question("sat", asked="the " * 200)
    (row,) = QA.encode([long_question], either_tokenizer)
    the = either_tokenizer("the", add_special_tokens=False)["input_ids"][0]
    assert list(row.subwords).count(the) == MAX_QUESTION_SUBWORDS + PASSAGE.split().count("the")


def test_rows_are_windows_of_the_passage_behind_the_question(either_tokenizer):
    (whole_row,) = QA.encode([question("sat")], either_tokenizer)
    for limit, overlap in ((30, 8), (14, 100), (8, 0)):
        rows = QA.encode([question("sat")], either_tokenizer, limit=limit, overlap=overlap)
        assert all(len(row.subwords) <= limit for row in rows)
        spans = {
            (row.characters[2 * place], row.characters[2 * place + 1])
            for row in rows
            for place in range(1, len(row.positions))
        }
        assert spans == {
            (whole_row.characters[2 * place], whole_row.characters[2 * place + 1])
            for place in range(1, len(whole_row.positions))
        }
        for row in rows:
            assert row.positions[0] == 0
            assert len(row.characters) == 2 * len(row.positions) == 2 * len(row.gold)
            answer_places = [place for place, mark in enumerate(row.gold) if mark]
            assert (
                answer_places == [0]
                or PASSAGE[row.characters[2 * answer_places[0]] : row.characters[2 * answer_places[-1] + 1]]
                == "sat"
            )


def test_an_answer_no_longer_than_the_overlap_is_whole_in_some_window(either_tokenizer):
    words = PASSAGE.split()
    questions = [question(" ".join(words[i : i + 3]), number=i) for i in range(len(words) - 3)]
    longest = max(
        len(row) for row in either_tokenizer([example.answers[0][1] for example in questions])["input_ids"]
    )
    rows = QA.encode(questions, either_tokenizer, limit=4 * longest + 20, overlap=longest)
    inside = {row.example for row in rows if not row.gold[0]}
    assert inside == set(range(len(questions)))


def test_the_first_of_several_answers_is_learned(either_tokenizer):
    example = Question(id="1", passage=PASSAGE, question="?", answers=((8, "sat"), (0, "the cat")))
    (row,) = QA.encode([example], either_tokenizer)
    assert QA.decode([example], [row], [span_scores(row)]) == ["sat"]
    assert QA.gold([example])[0].texts == ("sat", "the cat")


def test_questions_without_answers_and_empty_passages_are_encoded(either_tokenizer):
    questions = [question(), question(passage=" \n"), question(passage="")]
    rows = QA.encode(questions, either_tokenizer)
    assert [len(row.gold) for row in rows] == [0, 0, 0]
    assert QA.decode(questions, rows, [torch.zeros(len(row.positions), 2) for row in rows])[1:] == ["", ""]


def test_an_answer_that_is_not_at_its_offset_is_named(either_tokenizer):
    wrong = Question(id="56be", passage=PASSAGE, question="?", answers=((5, "sat"),))
    with pytest.raises(DataError, match=r"question '56be': .*'sat'.*5"):
        QA.encode([wrong], either_tokenizer)


def test_rows_without_room_are_refused(either_tokenizer):
    with pytest.raises(ValueError, match="least"):
        QA.encode([question("sat")], either_tokenizer, limit=4)
    with pytest.raises(ValueError, match="overlap by -1"):
        QA.encode([question("sat")], either_tokenizer, overlap=-1)


@given(st.data())
def test_the_best_span_is_that_of_all_spans(data):
    numbers = st.integers(-3, 3).map(float)  # Few values, so that there are many equal sums.
    length, longest = data.draw(st.integers(0, 9)), data.draw(st.integers(1, 6))
    start, end = (data.draw(st.lists(numbers, min_size=length, max_size=length)) for _ in range(2))
    spans = [
        (start[first_place] + end[last_place], first_place, last_place)
        for first_place in range(length)
        for last_place in range(first_place, min(length, first_place + longest))
    ]
    expected = min(spans, key=lambda span: (-span[0], span[1:]), default=None)
    assert best_span(np.array(start), np.array(end), longest=longest) == expected


def test_scores_that_are_no_numbers_end_in_some_answer(either_tokenizer):
    (row,) = QA.encode([question("sat")], either_tokenizer)
    (answer,) = QA.decode([question("sat")], [row], [torch.full((len(row.positions), 2), float("nan"))])
    assert answer in PASSAGE


def test_rows_are_small(either_tokenizer):
    passage = " ".join([PASSAGE] * 12)
    (row,) = QA.encode([question("sat", passage=passage)], either_tokenizer, limit=1000)
    bytes_each = sum(map(getsizeof, (row.subwords, row.positions, row.characters, row.gold))) / len(
        row.subwords
    )
    assert bytes_each < 24  # a tuple of numbers takes 36 a subword, once


def test_mlqas_languages_are_scored_by_its_own_rules(either_tokenizer):
    german = replace(question("the mat"), language="de")
    assert all_measures(QA, QA.gold([german]), ["Das the mat"]) == {"f1": 1.0, "em": 1.0}
    assert QA.score(QA.gold([question("the mat")]), ["Das the mat"]) == pytest.approx(2 / 3)


def test_the_baseline_is_the_constant_piece_that_is_best_in_training():
    train = [question("the cat", number=number) for number in range(3)]
    assert QA.majority(train, train) == 1.0
    assert QA.majority(train, [question("hills"), question("the cat")]) == 0.5
    rome_questions = [question("Rome Italy .", number=number) for number in range(3)]
    assert QA.majority(rome_questions, rome_questions) == 1.0
    assert QA.majority([], rome_questions) == pytest.approx(QA.score(QA.gold(rome_questions), ["the"] * 3))


@given(st.text(), st.sampled_from(CONSTANT_SPANS))
def test_a_piece_is_so_many_words_of_the_passage_as_it_stands(passage, piece):
    text = piece.select(passage)
    words = passage.split()
    assert text in passage
    assert text.split() == (words[-piece.words :] if piece.from_end else words[: piece.words])


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_gold_answer_of_the_built_in_languages_comes_back(language):
    tokenizer = load_tokenizer(model_folder("shipped"))
    questions = list(islice(CORPORA["squad"].read(BuiltInLanguages(), language, "test"), 50))
    rows = QA.encode(questions, tokenizer)
    answers = QA.decode(questions, rows, [span_scores(row) for row in rows])
    assert answers == [example.answers[0][1] for example in questions]


@pytest.mark.nightly
@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("corpus", "split", "languages", "step", "least"),
    [
        ("squad", "test", "ar de el en es hi ro ru th tr vi zh", 4, 0.996),
        ("mlqa", "dev", "de en es hi vi zh", 1, 0.986),  # Arabic, 0.974: its clitics are inside subwords
        ("tydiqa", "dev", "ar en id ru", 1, 0.99),  # Finnish 0.973, Bengali 0.964: case endings are
    ],
)
def test_gold_answers_come_back_from_mberts_subwords(real_data, corpus, split, languages, step, least):
    from transformers import BertTokenizer

    (vocabulary,) = real_data.find(["tokenizer/mbert-cased-vocab.restored.txt"])
    numbers = {piece: number - 1 for number, piece in vocabulary.lines() if piece}
    tokenizer = BertTokenizer(vocab=numbers, do_lower_case=False, strip_accents=False)
    task = replace(QA, longest_answer=400)
    for language in each(languages.split()):
        questions = list(CORPORA[corpus].read(real_data, language, split))[::step]
        rows = task.encode(questions, tokenizer)
        answers = task.decode(questions, rows, [span_scores(row) for row in rows])
        right = [
            normalize_answer(answer, example.language)
            == normalize_answer(example.answers[0][1], example.language)
            for example, answer in zip(questions, answers, strict=True)
        ]
        assert sum(right) / len(right) >= least, language


def test_the_loss_is_the_mean_over_rows_of_start_and_end_among_the_rows_positions(
    either_folder, either_tokenizer, examples
):
    model = QA.head(either_folder, seed=0)
    rows = QA.encode(examples, either_tokenizer, limit=26, overlap=6)
    batch = collate(rows, padding=either_tokenizer.pad_token_id)
    with torch.no_grad():
        scores = QA.scores(model, batch).split([len(row.positions) for row in rows])
        expected = [
            torch.nn.functional.cross_entropy(row_scores.T, span_scores(row).argmax(dim=0))
            for row, row_scores in zip(rows, scores, strict=True)
        ]
        torch.testing.assert_close(QA.loss(model, batch), torch.stack(expected).mean(), rtol=1e-4, atol=1e-5)
    assert len(rows) > len(examples)
