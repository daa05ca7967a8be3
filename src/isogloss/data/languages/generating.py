"""The corpora of the built-in languages: their sizes, and the examples of each split.

Sentences have gold analyses (CoNLL-U trees, entities); running text is documents that stay with their
subject; bitext is aligned translations. Questions (as SQuAD's) ask who, what or where about short passages,
and the answer is a span of the passage. Passages are about a few persons, places and things, and often
mention the same action twice, so that an answer is found only by reading who did what; no question has two
answers.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, islice
from typing import NamedTuple

from isogloss.core.errors import check_named
from isogloss.core.identity import derive
from isogloss.data.examples import Example, ParsedSentence, Question, TaggedSentence, TextLine, Translation
from isogloss.data.languages import concepts as c
from isogloss.data.languages.concepts import Draws
from isogloss.data.languages.family import Language, find_language
from isogloss.data.languages.lexicon import Lexicon, lexicon
from isogloss.data.languages.meaning import Attached, Cast, Event, Phrase, Rates, Sampler, Sentence
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
    text_of,
)
from isogloss.data.languages.sentence_pairs import inference_pairs, paraphrase_pairs

NEWS_RATES = Rates(name=0.75, attached=0.4, pronoun=0.05)
"""Sentences about who and where, as an encyclopedia writes them."""

DOCUMENT_SENTENCES = range(4, 11)
"""Number of sentences in a document."""

_NAMED_IN_CAST = {c.PERSON: 2, c.PLACE: 1, c.ORGANISATION: 1}


def parsed_sentences(words: Lexicon, draws: Draws) -> Iterator[ParsedSentence]:
    """Yield sentences with tags, trees and their complete CoNLL-U lines, without end."""
    sampler = Sampler(draws, Rates())
    for number in count():
        yield parsed(f"{number}", render(sampler.sentence(), words), spaces=has_spaces(words))


def tagged_sentences(words: Lexicon, draws: Draws) -> Iterator[TaggedSentence]:
    """Yield sentences rich in names with BIO tags (PER, LOC, ORG), without end."""
    sampler = Sampler(draws, NEWS_RATES)
    for number in count():
        yield tagged(f"{number}", render(sampler.sentence(), words))


def tagged(number: str, rendered: Sequence[Word]) -> TaggedSentence:
    """Return a sentence with the entities of its words."""
    return TaggedSentence(
        id=number,
        words=tuple([word.form.text for word in rendered]),
        tags=tuple([word.entity for word in rendered]),
    )


def heads_of(rendered: Sequence[Word]) -> tuple[int, ...]:
    """Return each word's head as a 1-based word number, 0 for the root."""
    indices = {word.node: index for index, word in enumerate(rendered, start=1)}
    indices[0] = 0
    return tuple([indices[word.head] for word in rendered])


def parsed(number: str, rendered: Sequence[Word], *, spaces: bool) -> ParsedSentence:
    """Return a sentence with its tags, its tree and its CoNLL-U lines."""
    texts = tuple([word.form.text for word in rendered])
    heads = heads_of(rendered)
    lines = [f"# sent_id = {number}", f"# text = {text_of(texts, spaces=spaces)}"]
    last = len(rendered) - 1
    for index, word in enumerate(rendered):
        form = word.form
        joined = index < last and (not spaces or texts[index + 1] in PUNCTUATION)
        lines.append(
            f"{index + 1}\t{form.text}\t{form.lemma}\t{form.tag}\t_\t{form.features}\t{heads[index]}\t"
            f"{word.relation}\t_\t{'SpaceAfter=No' if joined else '_'}"
        )
    return ParsedSentence(
        id=number,
        words=texts,
        tags=tuple([word.form.tag for word in rendered]),
        heads=heads,
        relations=tuple([word.relation for word in rendered]),
        lines=tuple(lines),
    )


def text_lines(words: Lexicon, draws: Draws) -> Iterator[TextLine]:
    """Yield documents, a sentence a line, in which persons, places and things recur; without end."""
    numbers = count()
    for document in count():
        sampler = Sampler(draws, Rates(), new_cast(draws))
        for _ in range(draws.choice(DOCUMENT_SENTENCES)):
            yield TextLine(id=f"{next(numbers)}", text=say(sampler.sentence(), words), document=document)


def new_cast(draws: Draws) -> Cast:
    """Choose what a document is about: a few names and things of every class."""
    world = c.world()
    cast = {}
    for kind in range(len(c.CLASSES)):
        chosen = [draws.weighted(world.called[kind]) for _ in range(_NAMED_IN_CAST.get(kind, 0))]
        chosen.append(draws.weighted(world.nouns[kind]))
        cast[kind] = tuple(chosen)
    return cast


def bitext(first: Lexicon, second: Lexicon, draws: Draws) -> Iterator[Translation]:
    """Yield sentences in two languages, words separated by spaces, with gold links; without end."""
    sampler = Sampler(draws, Rates())
    for number in count():
        sentence = sampler.sentence()
        ours, theirs = render(sentence, first), render(sentence, second)
        yield Translation(
            id=f"{number}",
            first=" ".join([word.form.text for word in ours]),
            second=" ".join([word.form.text for word in theirs]),
            links=links_between(ours, theirs),
        )


def links_between(first: Sequence[Word], second: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """Return the 0-based pairs of words that express something in common."""
    indices = {key: index for index, word in enumerate(second) for key in word.keys}
    return tuple(
        sorted(
            {(index, indices[key]) for index, word in enumerate(first) for key in word.keys if key in indices}
        )
    )


PASSAGE_SENTENCES = range(3, 7)
"""Number of sentences in a passage."""

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
        for _ in range(draws.choice(PASSAGE_SENTENCES)):
            verb = draws.choice(passage).event.verb if passage and draws.chance(_REPEATED_VERB_RATE) else None
            passage.append(sampler.sentence(verb))
        events = [event for sentence in passage for event in _events(sentence)]
        for query in draws.shuffled(_askable(passage)):
            if sum(_answers(event, query) for event in events) == 1:
                return passage, query._replace(question=_shorter(query.question, draws))


def _events(sentence: Sentence) -> Iterator[Event]:
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


SIZES: dict[str, dict[str, int]] = {
    "ud": {"train": 3000, "dev": 400, "test": 400},
    "wikiann": {"train": 3000, "dev": 400, "test": 400},
    "xnli": {"train": 12000, "dev": 600, "test": 600},
    "pawsx": {"train": 6000, "dev": 500, "test": 500},
    "squad": {"train": 3000, "dev": 300, "test": 300},
    "text": {"train": 20000, "dev": 500, "test": 500},
    "bitext": {"train": 20000, "dev": 500, "test": 500},
    "bitext-large": {"train": 100_000, "dev": 500, "test": 500},
}
"""Examples in each split; training splits shrink by the language's ``size``."""

GENERATORS: dict[str, Callable[[Lexicon, Draws], Iterator[Example]]] = {
    "ud": parsed_sentences,
    "wikiann": tagged_sentences,
    "xnli": inference_pairs,
    "pawsx": paraphrase_pairs,
    "squad": questions,
    "text": text_lines,
}
"""Endless examples of each corpus; bitext, which takes two languages, has ``translations``."""


def examples(corpus: str, language: str | Language, split: str, *, seed: int = 0) -> Iterator[Example]:
    """Yield the examples of one split, made as they are taken.

    Test and dev splits say the same in every language, in the same order under the same ids; training
    splits and running text do not.
    """
    check_named("built-in languages", "corpus", GENERATORS, corpus)
    spec, count = find_language(language), split_size(corpus, language, split)
    purpose = spec.code if split == "train" or corpus == "text" else ""
    draws = Draws(derive(seed, corpus, split, purpose))
    return islice(GENERATORS[corpus](lexicon(spec), draws), count)


def translations(
    first: str | Language, second: str | Language, split: str, *, seed: int = 0, corpus: str = "bitext"
) -> Iterator[Translation]:
    """Yield bitext with gold word links, made as it is taken; "bitext-large" begins as "bitext" does.

    Texts are words separated by spaces, punctuation apart, in Han-like scripts too, so that links count
    words. Dev and test splits say the same in every pair of languages.
    """
    first_language, second_language = find_language(first), find_language(second)
    count = min(split_size(corpus, first_language, split), split_size(corpus, second_language, split))
    purpose = sorted((first_language.code, second_language.code)) if split == "train" else []
    draws = Draws(derive(seed, "bitext", split, *purpose))
    return islice(bitext(lexicon(first_language), lexicon(second_language), draws), count)


def split_size(corpus: str, language: str | Language, split: str) -> int:
    """Return how many examples a split has."""
    check_named("built-in languages", "corpus", SIZES, corpus)
    check_named(f"built-in {corpus}", "split", SIZES[corpus], split)
    full = SIZES[corpus][split]
    return round(full * find_language(language).size) if split == "train" else full
