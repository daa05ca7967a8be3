from collections import Counter

import pytest

from each import each
from isogloss.features.built_in_languages import LANGUAGES, BuiltInTranslator, examples
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.lexicon import lexicon
from isogloss.features.built_in_languages.parsing import parse, sentences_in


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
def test_answers_stand_at_their_offsets_on_word_borders(language):
    for question in each(examples("squad", language, "dev")):
        [(offset, answer)] = question.answers
        assert answer and question.passage[offset : offset + len(answer)] == answer
        if language != "qai":
            around = (
                question.passage[max(0, offset - 1) : offset],
                question.passage[offset + len(answer) :][:1],
            )
            assert around[0] in ("", " ") and around[1] in (" ", ".", ",", "")


def understood(text):
    words = lexicon(LANGUAGES["qaa"])
    return [parse(sentence, words) for sentence in sentences_in(text, words)]


def asked_for(question):
    return {
        "subject": question.subject.concept in c.QUESTIONS,
        "object": question.object is not None and question.object.concept in c.QUESTIONS,
        "place": any(attached_value.adposition == c.WHERE for attached_value in question.attached),
    }


def test_exactly_one_event_of_the_passage_answers_and_its_phrase_is_the_answer():
    words = lexicon(LANGUAGES["qaa"])
    kinds = Counter()
    for example in examples("squad", "qaa", "dev"):
        [tree] = understood(example.question)
        tree, roles = tree.event, asked_for(tree.event)
        [kind] = [role for role, request in roles.items() if request]
        kinds[kind] += 1
        answering = [
            event
            for sentence in understood(example.passage)
            for event in (sentence.event, sentence.second)
            if event is not None
            and event.verb == tree.verb
            and (roles["subject"] or event.subject.concept == tree.subject.concept)
            and (roles["object"] or event.object is None or event.object.concept == tree.object.concept)
        ]
        [messages] = answering
        places = [
            attached_value.phrase
            for attached_value in messages.attached
            if attached_value.adposition in (c.IN, c.NEAR)
        ]
        phrase = {
            "subject": messages.subject,
            "object": messages.object,
            "place": places[0] if places else None,
        }[kind]
        concept = phrase.concept
        form = (
            words.names[concept][0] if concept >= c.PERSONS.start else words.nouns[concept][phrase.plural][0]
        )
        assert form.text in example.answers[0][1].split()
    assert min(kinds[kind] for kind in ("subject", "object", "place")) > 20


def test_passages_have_three_to_six_sentences_and_verbs_return():
    returning = 0
    for example in examples("squad", "qaa", "dev"):
        passage = understood(example.passage)
        assert 3 <= len(passage) <= 6
        returning += len({sentence.event.verb for sentence in passage}) < len(passage)
    assert returning > 100


@pytest.mark.nightly
@pytest.mark.slow
def test_answers_mean_the_same_in_every_language():
    names = lexicon(LANGUAGES["qaa"]).called
    for language in LANGUAGES:
        pairs = zip(examples("squad", "qaa", "dev"), examples("squad", language, "dev"), strict=True)
        answers = [(ours.answers[0][1], theirs.answers[0][1]) for ours, theirs in pairs]
        for answer, translation in each(pair for pair in answers if tuple(pair[0].split()) in names):
            assert BuiltInTranslator("qaa", language).translate(answer) == translation
