"""Sentences with gold analysis: CoNLL-U trees (as Universal Dependencies) and entities (as WikiANN)."""

from collections.abc import Iterator, Sequence

from isogloss.data.examples import ParsedSentence, TaggedSentence
from isogloss.data.languages.draws import Draws
from isogloss.data.languages.lexicon import Lexicon
from isogloss.data.languages.rendering import PUNCTUATION, Word, has_spaces, render, text_of
from isogloss.data.languages.sampling import Rates, Sampler

NEWS = Rates(name=0.75, attached=0.4, pronoun=0.05)
"""Sentences about who and where, as an encyclopedia writes them."""


def parsed_sentences(words: Lexicon, draws: Draws) -> Iterator[ParsedSentence]:
    """Give sentences with tags, trees and their complete CoNLL-U lines, without end."""
    sampler, number = Sampler(draws, Rates()), 0
    while True:
        yield parsed(f"{number}", render(sampler.sentence(), words), spaces=has_spaces(words))
        number += 1


def tagged_sentences(words: Lexicon, draws: Draws) -> Iterator[TaggedSentence]:
    """Give sentences rich in names with BIO tags (PER, LOC, ORG), without end."""
    sampler, number = Sampler(draws, NEWS), 0
    while True:
        yield tagged(f"{number}", render(sampler.sentence(), words))
        number += 1


def tagged(number: str, said: Sequence[Word]) -> TaggedSentence:
    """Give a sentence with the entities of its words."""
    return TaggedSentence(
        id=number,
        words=tuple([word.form.text for word in said]),
        tags=tuple([word.entity for word in said]),
    )


def heads_of(said: Sequence[Word]) -> tuple[int, ...]:
    """Return each word's head as a 1-based word number, 0 for the root."""
    places = {word.node: place for place, word in enumerate(said, start=1)}
    places[0] = 0
    return tuple([places[word.head] for word in said])


def parsed(number: str, said: Sequence[Word], *, spaces: bool) -> ParsedSentence:
    """Give a sentence with its tags, its tree and its CoNLL-U lines."""
    texts = tuple([word.form.text for word in said])
    heads = heads_of(said)
    lines = [f"# sent_id = {number}", f"# text = {text_of(texts, spaces=spaces)}"]
    last = len(said) - 1
    for place, word in enumerate(said):
        form = word.form
        joined = place < last and (not spaces or texts[place + 1] in PUNCTUATION)
        lines.append(
            f"{place + 1}\t{form.text}\t{form.lemma}\t{form.tag}\t_\t{form.features}\t{heads[place]}\t"
            f"{word.relation}\t_\t{'SpaceAfter=No' if joined else '_'}"
        )
    return ParsedSentence(
        id=number,
        words=texts,
        tags=tuple([word.form.tag for word in said]),
        heads=heads,
        relations=tuple([word.relation for word in said]),
        lines=tuple(lines),
    )
