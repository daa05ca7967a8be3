"""Running text and bitext: documents that stay with their subject, and aligned translations."""

from collections.abc import Iterator, Sequence

from isogloss.data.examples import TextLine, Translation
from isogloss.data.languages import concepts as c
from isogloss.data.languages.draws import Draws
from isogloss.data.languages.lexicon import Lexicon
from isogloss.data.languages.rendering import Word, render, say
from isogloss.data.languages.sampling import Cast, Rates, Sampler

SHORTEST, LONGEST = 4, 10
"""Sentences in a document."""

_NAMED_IN_CAST = {c.PERSON: 2, c.PLACE: 1, c.ORGANISATION: 1}


def text_lines(words: Lexicon, draws: Draws) -> Iterator[TextLine]:
    """Give documents, a sentence a line, in which persons, places and things recur; without end."""
    number, document = 0, 0
    while True:
        sampler = Sampler(draws, Rates(), new_cast(draws))
        for _ in range(SHORTEST + draws.below(LONGEST - SHORTEST + 1)):
            yield TextLine(id=f"{number}", text=say(sampler.sentence(), words), document=document)
            number += 1
        document += 1


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
    """Give sentences in two languages, words separated by spaces, with gold links; without end."""
    sampler, number = Sampler(draws, Rates()), 0
    while True:
        sentence = sampler.sentence()
        ours, theirs = render(sentence, first), render(sentence, second)
        yield Translation(
            id=f"{number}",
            first=" ".join([word.form.text for word in ours]),
            second=" ".join([word.form.text for word in theirs]),
            links=links_between(ours, theirs),
        )
        number += 1


def links_between(first: Sequence[Word], second: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """Return the 0-based pairs of words that express something in common."""
    places = {key: place for place, word in enumerate(second) for key in word.keys}
    return tuple(
        sorted(
            {(place, places[key]) for place, word in enumerate(first) for key in word.keys if key in places}
        )
    )
