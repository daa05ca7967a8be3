from itertools import product

import pytest
import torch

from isogloss.data.examples import Question
from isogloss.encoders.loading import load_tokenizer
from isogloss.tasks.batch import collate
from isogloss.tasks.span_qa import LONGEST_ANSWER, LONGEST_QUESTION, QA, Mark

PASSAGE = "the cat sat on the mat . a dog ran over hills and saw Anna Lee in Rome Italy ."
ANSWERS = ("Anna Lee", "the mat", "a dog", "Rome Italy", "sat", "hills", "Rome", "the cat")


@pytest.fixture(scope="module", params=["bert", "xlm_roberta"])
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


@pytest.fixture(scope="module")
def tokenizer(folder):
    return load_tokenizer(folder)


def question(answer="", *, passage=PASSAGE, asked="what happened", number=0):
    answers = ((passage.index(answer), answer),) if answer else ()
    return Question(id=f"q{number}", passage=passage, question=asked, answers=answers)


@pytest.fixture
def examples():
    return [
        question(answer, asked=f"saw {answer.lower()} there", number=number)
        for number, answer in enumerate(ANSWERS)
    ]


def scored(model, batch):
    with torch.no_grad():
        scores = QA.scores(model, batch)
    return torch.split(scores, torch.bincount(batch.rows).tolist())


def right_scores(row):
    """Scores that put all weight on the gold places."""
    marks = torch.tensor(list(row.gold))
    return torch.stack((marks & Mark.START, (marks & Mark.END) // 2), dim=1) * 10.0 + torch.tensor([0.0, 0.0])


def test_gold_places_decode_to_the_answer(tokenizer, examples):
    for limit, overlap in ((160, 64), (24, 6), (12, 3)):
        rows = QA.encode(examples, tokenizer, limit=limit, overlap=overlap)
        assert max(len(row.subwords) for row in rows) <= limit
        decoded = QA.decode(examples, rows, [right_scores(row) for row in rows])
        assert decoded == list(ANSWERS)


def test_the_best_span_is_that_of_all_windows_and_all_spans(tokenizer, examples):
    generator = torch.Generator().manual_seed(0)
    rows = QA.encode(examples, tokenizer, limit=20, overlap=6)
    scores = [torch.randn(len(row.positions), 2, generator=generator) for row in rows]
    found = QA.best_answers(examples, rows, scores, count=5)
    for number, example in enumerate(examples):
        sums = {}
        for row, of_row in zip(rows, scores, strict=True):
            for first, last in product(range(1, len(row.positions)), repeat=2):
                if row.example == number and 0 <= last - first < LONGEST_ANSWER:
                    span = row.characters[2 * first], row.characters[2 * last + 1]
                    score = float(of_row[first, 0] + of_row[last, 1])
                    sums[span] = max(score, sums.get(span, score))
        ranked = sorted(sums, key=lambda span: -sums[span])[:5]
        assert [(answer.begin, answer.end) for answer in found[number]] == ranked
        assert [answer.text for answer in found[number]] == [example.passage[b:e] for b, e in ranked]
        assert QA.decode(examples, rows, scores)[number] == found[number][0].text


def test_scores_and_loss_are_hugging_faces(folder, tokenizer, examples):
    model = QA.head(folder, seed=0)
    rows = QA.encode(examples, tokenizer)
    batch = collate(rows, padding=tokenizer.pad_token_id)
    with torch.no_grad():
        output = model(**batch.inputs())
        scores = QA.scores(model, batch)
    assert torch.equal(scores[:, 0], output.start_logits[batch.rows, batch.columns])
    assert torch.equal(scores[:, 1], output.end_logits[batch.rows, batch.columns])
    expected = []
    for row, part in zip(rows, scored(model, batch), strict=True):
        chosen = (
            torch.tensor([list(row.gold).index(1), list(row.gold).index(2)])
            if 3 not in row.gold
            else (torch.tensor([list(row.gold).index(3)] * 2))
        )
        expected.append(torch.nn.functional.cross_entropy(part.T, chosen))
    torch.testing.assert_close(QA.loss(model, batch), torch.stack(expected).mean(), rtol=1e-4, atol=1e-5)


def test_eight_questions_are_learned_by_heart(folder, tokenizer, examples):
    rows = QA.encode(examples, tokenizer)
    batch = collate(rows, padding=tokenizer.pad_token_id)
    model = QA.head(folder, seed=0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(80):
        optimizer.zero_grad()
        QA.loss(model, batch).backward()
        optimizer.step()
    decoded = QA.decode(examples, rows, scored(model, batch))
    assert QA.measures(QA.gold(examples), decoded) == {"f1": 1.0, "em": 1.0}


def test_a_question_that_is_too_long_is_cut(tokenizer):
    long = question("sat", asked="the " * 200)
    (row,) = QA.encode([long], tokenizer)
    the = tokenizer("the", add_special_tokens=False)["input_ids"][0]
    assert list(row.subwords).count(the) == LONGEST_QUESTION + PASSAGE.split().count("the")
