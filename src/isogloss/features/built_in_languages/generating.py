"""The corpora of the built-in languages: their sizes, and the examples of each split.

Sentences have gold analyses (CoNLL-U trees, entities). Running text consists of documents with recurring
subjects, and bitext of aligned translations. Questions (as SQuAD's) ask who, what or where about short
passages, and the answer is a span of the passage. Passages are about a few persons, places and things, and
often mention the same action twice, so finding the answer requires reading who did what. Every question has
exactly one answer.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

from isogloss.core.errors import check_named
from isogloss.core.identity import derive
from isogloss.data.examples import Example, ParsedSentence, Question, TaggedSentence, TextLine, Translation
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws
from isogloss.features.built_in_languages.family import Language, find_language
from isogloss.features.built_in_languages.lexicon import Lexicon, lexicon
from isogloss.features.built_in_languages.meaning import (
    Attached,
    Cast,
    Event,
    Phrase,
    Rates,
    Sampler,
    Sentence,
)
from isogloss.features.built_in_languages.rendering import (
    FIRST_ATTACHED_NODE,
    OBJECT_NODE,
    PUNCTUATION,
    SUBJECT_NODE,
    Word,
    has_spaces,
    is_within,
    render,
    say,
    text_of,
)
from isogloss.features.built_in_languages.sentence_pairs import inference_pairs, paraphrase_pairs
from isogloss.features.built_in_languages.sizes import split_size
from isogloss.features.built_in_languages.worlds import express

NEWS_RATES = Rates(name=0.75, attached=0.4, pronoun=0.05)
"""Rates for sentences about who and where, as in an encyclopedia."""

DOCUMENT_SENTENCES = range(4, 11)
"""Number of sentences in a document."""

_NAMED_IN_CAST = {c.PERSON: 2, c.PLACE: 1, c.ORGANISATION: 1}


def parsed_sentences(words: Lexicon, draws: Draws) -> Iterator[ParsedSentence]:
    """Yield sentences with tags, trees and their complete CoNLL-U lines, without end."""
    rates = Rates()
    sampler = Sampler(draws, rates)
    for index in count():
        sentence_words = express(sampler.sentence(), words, rates)
        yield parse_sentence(f"{index}", sentence_words, spaces=has_spaces(words))


def tagged_sentences(words: Lexicon, draws: Draws) -> Iterator[TaggedSentence]:
    """Yield sentences rich in names with BIO tags (PER, LOC, ORG), without end."""
    sampler = Sampler(draws, NEWS_RATES)
    for index in count():
        yield tag_sentence(f"{index}", express(sampler.sentence(), words, NEWS_RATES))


def tag_sentence(sentence_id: str, words: Sequence[Word]) -> TaggedSentence:
    """Return a sentence with the entities of its words."""
    return TaggedSentence(
        id=sentence_id,
        words=tuple([word.form.text for word in words]),
        tags=tuple([word.entity for word in words]),
    )


def heads_of(words: Sequence[Word]) -> tuple[int, ...]:
    """Return each word's head as a 1-based word number, 0 for the root."""
    indices = {word.node: index for index, word in enumerate(words, start=1)}
    indices[0] = 0
    return tuple([indices[word.head] for word in words])


def parse_sentence(sentence_id: str, words: Sequence[Word], *, spaces: bool) -> ParsedSentence:
    """Return a sentence with its tags, its tree and its CoNLL-U lines."""
    texts = tuple([word.form.text for word in words])
    heads = heads_of(words)
    lines = [f"# sent_id = {sentence_id}", f"# text = {text_of(texts, spaces=spaces)}"]
    last_index = len(words) - 1
    for index, word in enumerate(words):
        form = word.form
        has_no_space = index < last_index and (not spaces or texts[index + 1] in PUNCTUATION)
        lines.append(
            f"{index + 1}\t{form.text}\t{form.lemma}\t{form.tag}\t_\t{form.features}\t{heads[index]}\t"
            f"{word.relation}\t_\t{'SpaceAfter=No' if has_no_space else '_'}"
        )
    return ParsedSentence(
        id=sentence_id,
        words=texts,
        tags=tuple([word.form.tag for word in words]),
        heads=heads,
        relations=tuple([word.relation for word in words]),
        lines=tuple(lines),
    )


def text_lines(words: Lexicon, draws: Draws) -> Iterator[TextLine]:
    """Yield documents without end, one line per sentence, in which persons, places and things recur."""
    numbers = count()
    for document in count():
        rates = Rates()
        sampler = Sampler(draws, rates, new_cast(draws))
        for _ in range(draws.choice(DOCUMENT_SENTENCES)):
            texts = [word.form.text for word in express(sampler.sentence(), words, rates)]
            text = text_of(texts, spaces=has_spaces(words))
            yield TextLine(id=f"{next(numbers)}", text=text, document=document)


def new_cast(draws: Draws) -> Cast:
    """Draw the topics of a document: a few names and things of every class."""
    world = c.world()
    cast = {}
    for kind in range(len(c.CLASSES)):
        concepts = [draws.draw(world.called[kind]) for _ in range(_NAMED_IN_CAST.get(kind, 0))]
        concepts.append(draws.draw(world.nouns[kind]))
        cast[kind] = tuple(concepts)
    return cast


def bitext(source: Lexicon, target: Lexicon, draws: Draws) -> Iterator[Translation]:
    """Yield sentences in two languages without end, as words separated by spaces, with gold links."""
    rates = Rates()
    sampler = Sampler(draws, rates)
    for index in count():
        sentence = sampler.sentence()
        source_words = express(sentence, source, rates)
        target_words = express(sentence, target, rates)
        yield Translation(
            id=f"{index}",
            first=" ".join([word.form.text for word in source_words]),
            second=" ".join([word.form.text for word in target_words]),
            links=links_between(source_words, target_words),
        )


def links_between(source: Sequence[Word], target: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """Return the 0-based pairs of words that express a common part of the meaning."""
    indices = {key: index for index, word in enumerate(target) for key in word.keys}
    return tuple(
        sorted(
            {
                (index, indices[key])
                for index, word in enumerate(source)
                for key in word.keys
                if key in indices
            }
        )
    )


PASSAGE_SENTENCES = range(3, 7)
"""Number of sentences in a passage."""

PASSAGE_RATES = Rates(pronoun=0.0, link=0.05, clause=0.06, attached=0.5, name=0.6, joined=0.05)

_REPEATED_VERB_RATE = 0.45
"""Probability that a sentence repeats a verb of the passage."""

_PLACING = (c.IN, c.NEAR)
"""Adpositions of places."""


class Asked(NamedTuple):
    """A question as a meaning, and the position of its answer: the sentence and the phrase's node in it."""

    sentence: int
    node: int
    question: Event


def questions(words: Lexicon, draws: Draws) -> Iterator[Question]:
    """Yield passages with one question each, without end."""
    for index in count():
        passage, query = think(draws)
        sentences = [render(sentence, words) for sentence in passage]
        text, starts = _join_sentences(sentences, spaces=has_spaces(words))
        first_word, last_word = _span(sentences[query.sentence], query.node)
        begin = starts[query.sentence][first_word]
        end = starts[query.sentence][last_word] + len(sentences[query.sentence][last_word].form.text)
        yield Question(
            id=f"{index}",
            passage=text,
            question=say(Sentence(query.question, question=True), words),
            answers=((begin, text[begin:end]),),
        )


def think(draws: Draws) -> tuple[list[Sentence], Asked]:
    """Draw a passage and a question that has one answer in it."""
    while True:
        sampler = Sampler(draws, PASSAGE_RATES, new_cast(draws))
        passage: list[Sentence] = []
        for _ in range(draws.choice(PASSAGE_SENTENCES)):
            verb = draws.choice(passage).event.verb if passage and draws.chance(_REPEATED_VERB_RATE) else None
            passage.append(sampler.sentence(verb))
        events = [event for sentence in passage for event in _events(sentence)]
        for query in draws.shuffle(_possible_questions(passage)):
            if sum(_is_answer(event, query) for event in events) == 1:
                return passage, query._replace(question=_shorter(query.question, draws))


def _events(sentence: Sentence) -> Iterator[Event]:
    for event in (sentence.event, sentence.second):
        if event is not None:
            yield event
            for phrase in (event.subject, event.object):
                if phrase is not None and phrase.clause is not None:
                    yield phrase.clause


def _possible_questions(passage: Sequence[Sentence]) -> list[Asked]:
    """Return every question about a role of a sentence's first event, unique or not."""
    queries = []
    for sentence_index, (event, *_) in enumerate(passage):
        if event.subject is not None and _is_plain(event.subject):
            question = event._replace(subject=_asked_for(event.subject))
            queries.append(Asked(sentence_index, SUBJECT_NODE, question))
        if event.object is not None and _is_plain(event.object):
            question = event._replace(object=_asked_for(event.object))
            queries.append(Asked(sentence_index, OBJECT_NODE, question))
        place_indices = [
            index for index, (adposition, _) in enumerate(event.attached) if adposition in _PLACING
        ]
        if len(place_indices) == 1:
            question = event._replace(attached=(Attached(c.WHERE, None),))
            queries.append(Asked(sentence_index, FIRST_ATTACHED_NODE + place_indices[0], question))
    return queries


def _is_plain(phrase: Phrase) -> bool:
    return phrase.joined is None and phrase.clause is None


def _asked_for(phrase: Phrase) -> Phrase:
    return Phrase(c.WHO if c.class_of(phrase.concept) in (c.PERSON, c.ORGANISATION) else c.WHAT)


def _is_answer(event: Event, query: Asked) -> bool:
    """Return whether an event has the question's verb and matches it in all other roles."""
    question = query.question
    node = query.node
    if event.verb != question.verb:
        return False
    return (node == SUBJECT_NODE or _may_be(event.subject, question.subject)) and (
        node == OBJECT_NODE or _may_be(event.object, question.object)
    )


def _may_be(event_phrase: Phrase | None, question_phrase: Phrase | None) -> bool:
    if event_phrase is None or question_phrase is None:
        return True
    return question_phrase.concept in (
        event_phrase.concept,
        event_phrase.joined[1].concept if event_phrase.joined is not None else None,
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


def _join_sentences(sentences: Sequence[Sequence[Word]], *, spaces: bool) -> tuple[str, list[list[int]]]:
    """Join sentences into a passage, and return it with the offset of every word."""
    text = ""
    starts = []
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
    """Return the first and last word of a phrase: its noun and its dependents, without its adposition."""
    inside = [index for index, word in enumerate(sentence) if _belongs(word, node)]
    return inside[0], inside[-1]


def _belongs(word: Word, node: int) -> bool:
    owner = word.node or word.head
    return is_within(owner, node) and not (owner == node and word.relation == "case")


GENERATORS: dict[str, Callable[[Lexicon, Draws], Iterator[Example]]] = {
    "ud": parsed_sentences,
    "wikiann": tagged_sentences,
    "xnli": inference_pairs,
    "pawsx": paraphrase_pairs,
    "squad": questions,
    "text": text_lines,
}
"""Endless examples of each corpus. Bitext, which takes two languages, has ``translations``."""


def examples(corpus: str, language: str | Language, split: str, *, seed: int = 0) -> Iterator[Example]:
    """Yield the examples of one split, generated one by one.

    Test and dev splits have the same meanings in every language, in the same order under the same ids.
    Training splits and running text do not.
    """
    check_named("built-in languages", "corpus", GENERATORS, corpus)
    spec = find_language(language)
    if spec.relation:
        spec.relation.check_corpus(corpus)
    size = split_size(corpus, language, split)
    purpose = spec.origin if split == "train" or corpus == "text" else ""
    draws = Draws(derive(seed, corpus, split, purpose))
    return islice(GENERATORS[corpus](lexicon(spec), draws), size)


def translations(
    source: str | Language, target: str | Language, split: str, *, seed: int = 0, corpus: str = "bitext"
) -> Iterator[Translation]:
    """Yield bitext with gold word links, generated one by one.

    Texts are words separated by spaces, with separate punctuation, even in Han-like scripts, so that links
    count words. Dev and test splits have the same meanings in every pair of languages. The collection
    "bitext-large" begins with the pairs of "bitext".
    """
    first_language = find_language(source)
    second_language = find_language(target)
    size = min(split_size(corpus, first_language, split), split_size(corpus, second_language, split))
    purpose = sorted((first_language.origin, second_language.origin)) if split == "train" else []
    draws = Draws(derive(seed, "bitext", split, *purpose))
    return islice(bitext(lexicon(first_language), lexicon(second_language), draws), size)
