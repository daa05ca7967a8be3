"""What a sentence means, free of any language: every rendering and every translation goes through this."""

from typing import NamedTuple


class Attached(NamedTuple):
    """A phrase with its adposition; WHERE stands alone."""

    adposition: int
    phrase: "Phrase | None"


class Phrase(NamedTuple):
    """A noun, name, pronoun or question word with what belongs to it."""

    concept: int
    plural: bool = False
    determiner: int | None = None
    numeral: int | None = None
    adjectives: tuple[int, ...] = ()
    modifier: Attached | None = None
    clause: "Event | None" = None
    """A relative clause: an event that lacks its subject or its object, which is this phrase."""
    joined: "tuple[int, Phrase] | None" = None
    """A conjunction and a second phrase."""


class Event(NamedTuple):
    """A verb with its roles; in a relative clause the missing role is None."""

    verb: int
    tense: int
    negated: bool
    subject: Phrase | None
    object: Phrase | None = None
    attached: tuple[Attached, ...] = ()
    adverb: int | None = None


class Sentence(NamedTuple):
    """One event, perhaps linked to a second one, or a question."""

    event: Event
    link: int | None = None
    second: Event | None = None
    question: bool = False
