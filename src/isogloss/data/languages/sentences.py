"""Sentences with gold analysis (CoNLL-U trees, entities), running text and bitext.

Running text is documents that stay with their subject; bitext is aligned translations.
"""

from collections.abc import Iterator, Sequence
from itertools import count

from isogloss.data.examples import ParsedSentence, TaggedSentence, TextLine, Translation
from isogloss.data.languages import concepts as c
from isogloss.data.languages.draws import Draws
from isogloss.data.languages.lexicon import Lexicon
from isogloss.data.languages.meaning import Cast, Rates, Sampler
from isogloss.data.languages.rendering import PUNCTUATION, Word, has_spaces, render, say, text_of

NEWS_RATES = Rates(name=0.75, attached=0.4, pronoun=0.05)
"""Sentences about who and where, as an encyclopedia writes them."""

MIN_SENTENCES, MAX_SENTENCES = 4, 10
"""Sentences in a document."""

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
        for _ in range(MIN_SENTENCES + draws.below(MAX_SENTENCES - MIN_SENTENCES + 1)):
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
