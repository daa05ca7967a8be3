"""Questions about short passages (as SQuAD): who, what or where, the answer a span of the passage.

Passages are about a few persons, places and things, and often mention the same action twice, so that an
answer is found only by reading who did what; no question has two answers.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from isogloss.data.examples import Question
from isogloss.data.languages import concepts as c
from isogloss.data.languages.draws import Draws
from isogloss.data.languages.lexicon import Lexicon
from isogloss.data.languages.meaning import Attached, Event, Phrase, Rates, Sampler, Sentence
from isogloss.data.languages.rendering import (
    FIRST_ATTACHED_NODE,
    OBJECT_NODE,
    PUNCTUATION,
    SUBJECT_NODE,
    Word,
    has_spaces,
    is_within,
    render,
    say,
)
from isogloss.data.languages.sentences import new_cast

MIN_SENTENCES, MAX_SENTENCES = 3, 6
"""Sentences in a passage."""

PASSAGE_RATES = Rates(pronoun=0.0, link=0.05, clause=0.06, attached=0.5, name=0.6, joined=0.05)

_REPEATED_VERB_RATE = 0.45
"""How often a sentence is about a verb that the passage had before."""

_PLACING = (c.IN, c.NEAR)
"""Adpositions that say where."""


class Asked(NamedTuple):
    """A question as a meaning, and the position of its answer: the sentence and the phrase's node in it."""

    sentence: int
    node: int
    question: Event


def questions(words: Lexicon, draws: Draws) -> Iterator[Question]:
    """Yield passages with one question each, without end."""
    for number in count():
        passage, query = think(draws)
        rendered = [render(sentence, words) for sentence in passage]
        text, starts = _written(rendered, spaces=has_spaces(words))
        first, last = _span(rendered[query.sentence], query.node)
        begin = starts[query.sentence][first]
        end = starts[query.sentence][last] + len(rendered[query.sentence][last].form.text)
        yield Question(
            id=f"{number}",
            passage=text,
            question=say(Sentence(query.question, question=True), words),
            answers=((begin, text[begin:end]),),
        )


def think(draws: Draws) -> tuple[list[Sentence], Asked]:
    """Draw a passage and a question that has one answer in it."""
    while True:
        sampler = Sampler(draws, PASSAGE_RATES, new_cast(draws))
        passage: list[Sentence] = []
        for _ in range(MIN_SENTENCES + draws.below(MAX_SENTENCES - MIN_SENTENCES + 1)):
            verb = draws.choice(passage).event.verb if passage and draws.chance(_REPEATED_VERB_RATE) else None
            passage.append(sampler.sentence(verb))
        events = [event for sentence in passage for event in _events(sentence)]
        for query in draws.shuffled(_askable(passage)):
            if sum(_answers(event, query) for event in events) == 1:
                return passage, query._replace(question=_shorter(query.question, draws))


def _events(sentence: Sentence) -> Iterator[Event]:
    """Yield all events of a sentence, including relative clauses."""
    for event in (sentence.event, sentence.second):
        if event is not None:
            yield event
            for phrase in (event.subject, event.object):
                if phrase is not None and phrase.clause is not None:
                    yield phrase.clause


def _askable(passage: Sequence[Sentence]) -> list[Asked]:
    """Return every question about a role of a sentence's first event, unique or not."""
    queries = []
    for number, (event, *_) in enumerate(passage):
        if event.subject is not None and _is_plain(event.subject):
            question = event._replace(subject=_asked_for(event.subject))
            queries.append(Asked(number, SUBJECT_NODE, question))
        if event.object is not None and _is_plain(event.object):
            question = event._replace(object=_asked_for(event.object))
            queries.append(Asked(number, OBJECT_NODE, question))
        place_indices = [
            which for which, (adposition, _) in enumerate(event.attached) if adposition in _PLACING
        ]
        if len(place_indices) == 1:
            question = event._replace(attached=(Attached(c.WHERE, None),))
            queries.append(Asked(number, FIRST_ATTACHED_NODE + place_indices[0], question))
    return queries


def _is_plain(phrase: Phrase) -> bool:
    return phrase.joined is None and phrase.clause is None


def _asked_for(phrase: Phrase) -> Phrase:
    return Phrase(c.WHO if c.class_of(phrase.concept) in (c.PERSON, c.ORGANISATION) else c.WHAT)


def _answers(event: Event, query: Asked) -> bool:
    """Return whether an event answers: it has the same verb, and matches in all other roles."""
    question, node = query.question, query.node
    if event.verb != question.verb:
        return False
    return (node == SUBJECT_NODE or _may_be(event.subject, question.subject)) and (
        node == OBJECT_NODE or _may_be(event.object, question.object)
    )


def _may_be(stated: Phrase | None, question_phrase: Phrase | None) -> bool:
    if stated is None or question_phrase is None:
        return True
    return question_phrase.concept in (
        stated.concept,
        stated.joined[1].concept if stated.joined is not None else None,
    )


def _shorter(event: Event, draws: Draws) -> Event:
    """Drop optional parts of a question."""
    asks_where = event.attached and event.attached[0].adposition == c.WHERE
    return event._replace(
        subject=_short(event.subject),
        object=_short(event.object),
        attached=event.attached if asks_where or draws.chance(0.4) else (),
        adverb=event.adverb if draws.chance(0.5) else None,
    )


def _short(phrase: Phrase | None) -> Phrase | None:
    return None if phrase is None else phrase._replace(clause=None, joined=None)


def _written(sentences: Sequence[Sequence[Word]], *, spaces: bool) -> tuple[str, list[list[int]]]:
    """Join sentences to a passage; return it with the offset of every word."""
    text, starts = "", []
    for sentence in sentences:
        offsets = []
        for word in sentence:
            if spaces and text and word.form.text not in PUNCTUATION:
                text += " "
            offsets.append(len(text))
            text += word.form.text
        starts.append(offsets)
    return text, starts


def _span(sentence: Sequence[Word], node: int) -> tuple[int, int]:
    """Return the first and last word of a phrase: its noun and all that belongs to it but its adposition."""
    inside = [index for index, word in enumerate(sentence) if _belongs(word, node)]
    return inside[0], inside[-1]


def _belongs(word: Word, node: int) -> bool:
    owner = word.node or word.head
    return is_within(owner, node) and not (owner == node and word.relation == "case")
