"""Subject, verb and object in another order: by hand, on built-in languages, and in files of questions."""

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isogloss
from each import each
from isogloss.core.errors import DataError
from isogloss.data.examples import ParsedSentence, Question
from isogloss.data.formats.conllu import write_conllu
from isogloss.features.word_order.orders import WORD_ORDERS, reorder_passages, reorder_text, reorder_words
from says import says


def sentence(rows, name="1"):
    """Make a sentence of rows "word TAG head relation"."""
    columns = [row.split() for row in rows.split("/")]
    return ParsedSentence(
        id=name,
        words=tuple(row[0] for row in columns),
        tags=tuple(row[1] for row in columns),
        heads=tuple(int(row[2]) for row in columns),
        relations=tuple(row[3] for row in columns),
    )


EATS = sentence(
    "The DET 2 det/old ADJ 3 amod/cat NOUN 4 nsubj/eats VERB 0 root/a DET 6 det/fish NOUN 4 obj/"
    "today NOUN 4 obl:tmod/. PUNCT 4 punct"
)
ASKS = sentence("What PRON 4 obj/did AUX 4 aux/she PRON 4 nsubj/see VERB 0 root/? PUNCT 4 punct")
DENIES = sentence(
    "He PRON 4 nsubj/did AUX 4 aux/n't PART 4 advmod/say VERB 0 root/that SCONJ 7 mark/Ann PROPN 7 nsubj/"
    "read VERB 4 ccomp/books NOUN 7 obj"
)
CROSSING = sentence("A DET 3 det/b VERB 0 root/c NOUN 2 obj/d NOUN 1 dep")


@pytest.mark.parametrize(
    ("text", "tree", "order", "expected"),
    [
        ("The old cat eats a fish today.", EATS, "SOV", "The old cat a fish eats today."),
        ("The old cat eats a fish today.", EATS, "VSO", "eats The old cat a fish today."),
        ("The old cat eats a fish today.", EATS, "SVO", "The old cat eats a fish today."),
        ("What did she see?", ASKS, "SOV", "she did What see?"),
        ("He didn't say that Ann read books", DENIES, "SOV", "He didn't say that Ann books read"),
        ("He didn't say that Ann read books", DENIES, "VSO", "didn't say He that read Ann books"),
        ("A b c d", CROSSING, "SOV", "A b c d"),
    ],
)
def test_a_clause_has_its_subject_verb_and_object_in_the_order(text, tree, order, expected):
    assert reorder_text(text, [tree], order).text == expected


@pytest.mark.parametrize("order", WORD_ORDERS)
def test_any_order_of_a_plain_clause_is_its_letters(order):
    roles = {"S": "S NOUN {} nsubj", "V": "V VERB 0 root", "O": "O NOUN {} obj"}
    for original in ("".join(value) for value in permutations("SVO")):
        verb = original.index("V") + 1
        tree = sentence("/".join(roles[letter].format(verb) for letter in original))
        assert "".join(tree.words[place] for place in reorder_words(tree, order)) == order


PLAIN = ("nsubj", "nsubj:pass", "obj", "obl", "punct")
OF_VERBS = ("aux", "advmod", "compound:prt")


@st.composite
def trees(draw, relations=(*PLAIN, *OF_VERBS)):
    """Draw any tree, of words that are numbers."""
    sample = draw(st.integers(1, 9))
    order = draw(st.permutations(range(sample)))
    heads = [0] * sample
    for index, position in enumerate(order[1:], start=1):
        heads[position] = order[draw(st.integers(0, index - 1))] + 1
    samples = [draw(st.sampled_from(relations)) if head else "root" for head in heads]
    tags = [draw(st.sampled_from(["NOUN", "PART", "PUNCT"])) for _ in heads]
    return ParsedSentence(
        id="1",
        words=tuple(str(value) for value in range(1, sample + 1)),
        tags=tuple(tags),
        heads=tuple(heads),
        relations=tuple(samples),
    )


@given(trees(), st.sampled_from(WORD_ORDERS), st.data())
def test_words_are_permuted_and_spans_keep_their_words(tree, order, data):
    places = reorder_words(tree, order)
    assert sorted(places) == list(range(len(tree.words)))
    text = "".join(word + data.draw(st.sampled_from(["", " "])) for word in tree.words)
    moved_text = reorder_text(text, [tree], order)
    assert sorted(moved_text.text.replace(" ", "")) == sorted(text.replace(" ", ""))
    start = data.draw(st.integers(0, len(text) - 1))
    span = text[start : data.draw(st.integers(start + 1, len(text)))]
    result = moved_text.move_span(start, span)
    if result:
        position, words = result
        assert moved_text.text[position : position + len(words)] == words
        assert sorted(words.replace(" ", "")) == sorted(span.replace(" ", ""))
    elif places == sorted(places):
        assert not span.strip()


@given(trees(PLAIN))
def test_a_second_reordering_changes_nothing(tree):
    places = reorder_words(tree, "SOV")
    new_indices = {place: index for index, place in enumerate(places)}
    again = ParsedSentence(
        id="1",
        words=tuple(tree.words[place] for place in places),
        tags=tuple(tree.tags[place] for place in places),
        heads=tuple(new_indices[tree.heads[place] - 1] + 1 if tree.heads[place] else 0 for place in places),
        relations=tuple(tree.relations[place] for place in places),
    )
    assert reorder_words(again, "SOV") == list(range(len(places)))


def test_built_in_sentences_become_verb_last_and_keep_their_words():
    for parsed_sentence in each(isogloss.load_corpus("ud", "qaa", "test", examples=60)):
        places = reorder_words(parsed_sentence, "SOV")
        relations = zip(parsed_sentence.heads, parsed_sentence.relations, strict=True)
        objects = [(word, head - 1) for word, (head, relation) in enumerate(relations) if relation == "obj"]
        late = [word for word, verb in objects if places.index(word) > places.index(verb)]
        assert late == []


# Files of questions

PASSAGE = "The old cat eats a fish today."
TREES = [EATS, sentence("Who PRON 2 nsubj/eats VERB 0 root/a DET 4 det/fish NOUN 2 obj/? PUNCT 2 punct", "2")]


def question(name, answer, asked="Who eats a fish?"):
    return {
        "id": name,
        "question": asked,
        "answers": [{"text": answer, "answer_start": PASSAGE.index(answer)}],
    }


def write_files(folder, questions, sentences):
    paragraph = {"context": PASSAGE, "qas": questions}
    data = {"version": "1.1", "data": [{"title": "Cats", "paragraphs": [paragraph]}]}
    (folder / "en.json").write_text(json.dumps(data), encoding="utf-8")
    (folder / "en.conllu").write_text("\n".join(write_conllu(sentences, "trees")) + "\n", encoding="utf-8")
    return folder / "en.json", folder / "en.conllu", folder / "sov" / "train.json"


def test_questions_are_written_in_the_order_with_answers_at_their_new_offsets(tmp_path):
    two = [question("1", "old cat"), question("2", "eats a"), question("3", "fish today")]
    arguments = [TREES[0], *[TREES[1]] * 3]
    sentences = [sentence_of(tree, index) for index, tree in enumerate(arguments)]
    questions, trees_file, target = write_files(tmp_path, two, sentences)
    assert isogloss.reorder_questions(questions, trees_file, target) == ["2", "3"]
    (paragraph,) = json.loads(target.read_text(encoding="utf-8"))["data"][0]["paragraphs"]
    assert paragraph["context"] == "The old cat a fish eats today."
    assert paragraph["qas"] == [
        {"id": "1", "question": "Who a fish eats?", "answers": [{"text": "old cat", "answer_start": 4}]}
    ]


def sentence_of(tree, index):
    return ParsedSentence(
        id=str(index), words=tree.words, tags=tree.tags, heads=tree.heads, relations=tree.relations
    )


def test_an_answer_whose_words_stay_together_is_their_new_text():
    whole_question = Question(id="1", passage=PASSAGE, question="", answers=((12, "eats a fish"),))
    (moved_question,) = reorder_passages([whole_question], [EATS]).questions
    assert moved_question.answers == ((12, "a fish eats"),)


def test_the_order_of_the_corpus_itself_changes_no_question():
    arguments = Question(id="1", passage=PASSAGE, question="Who eats a fish?", answers=((0, "The old cat"),))
    assert reorder_passages([arguments], TREES, "SVO").questions == [arguments]


@pytest.mark.parametrize(
    ("sentences", "facts"),
    [
        (TREES[:1], ("Who eats a fish?", "end")),
        ([TREES[1], TREES[0]], ("'Who'", "The old cat")),
    ],
)
def test_trees_of_other_texts_are_refused(sentences, facts):
    arguments = Question(id="1", passage=PASSAGE, question="Who eats a fish?", answers=((0, "The"),))
    with says(DataError, *facts):
        reorder_passages([arguments], sentences)
