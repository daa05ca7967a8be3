"""The meaning of sentences, independent of any language, and its random generation.

Every rendering and every translation goes through a meaning. Meanings are drawn from the world's preferences.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws, Weighted

MAX_SENTENCE_WORDS = 25
"""Maximum length of sentences in any language, with all markers written as particles."""


class Attached(NamedTuple):
    """A phrase with its adposition. WHERE has no phrase."""

    adposition: int
    phrase: "Phrase | None"


class Phrase(NamedTuple):
    """A noun, name, pronoun or question word with its dependents."""

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
    """A verb with its roles. In a relative clause the missing role is None."""

    verb: int
    tense: int
    negated: bool
    subject: Phrase | None
    object: Phrase | None = None
    attached: tuple[Attached, ...] = ()
    adverb: int | None = None


class Sentence(NamedTuple):
    """One event, optionally linked to a second one, or a question."""

    event: Event
    link: int | None = None
    second: Event | None = None
    question: bool = False


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Probabilities of the optional parts of sentences."""

    name: float = 0.4
    """Probability of a name instead of a noun, for persons, places and organisations."""
    pronoun: float = 0.08
    """Probability of a pronoun instead of a personal subject or object."""
    plural: float = 0.25
    determiner: float = 0.55
    numeral: float = 0.2
    """Probability in plural phrases."""
    adjective: float = 0.28
    modifier: float = 0.13
    clause: float = 0.11
    joined: float = 0.08
    attached: float = 0.38
    second_attached: float = 0.12
    adverb: float = 0.12
    link: float = 0.14
    negated: float = 0.15
    recurring: float = 0.75
    """Probability of a topic of the document, if it has a topic of the class."""


_TENSES = Weighted([(c.PRESENT_TENSE, 5), (c.PAST_TENSE, 4), (c.FUTURE_TENSE, 2)])
_DETERMINERS = Weighted([(c.THE, 60), (c.SOME, 16), (c.THIS, 10), (c.THAT, 8), (c.EVERY, 6)])
_LINKS = Weighted([(c.AND, 4), (c.BUT, 3), (c.BECAUSE, 2), (c.WHEN, 2)])

_PHRASE = 4
"""Maximum words of a phrase without optional words (a name and its case particle)."""

_EVENT = 11
"""Maximum words of a plain event (verb, tense, negation, two phrases)."""

_CLAUSE = 9
"""Maximum words of a relative clause (pronoun, comma, verb, phrase)."""

_ATTACHED = 5
"""Maximum words of an adpositional phrase."""

Cast = Mapping[int, tuple[int, ...]]
"""Topics of a document: some concepts of each class."""


class Sampler:
    """A sampler of sentences.

    ``room`` is the number of words still available, and ``mentioned`` are the concepts used so far.
    """

    def __init__(
        self, draws: Draws, rates: Rates, cast: Cast | None = None, world: c.World | None = None
    ) -> None:
        self.draws = draws
        self.rates = rates
        self.cast = cast or {}
        self.world = world or c.world()
        self.room = 0
        self.mentioned: set[int] = set()

    def sentence(self, verb: int | None = None) -> Sentence:
        """Draw a sentence of at most ``MAX_SENTENCE_WORDS`` words, with the given verb if any."""
        self.room = MAX_SENTENCE_WORDS - 1
        self.mentioned.clear()
        event = self.event(verb)
        if self._adds(self.rates.link, 1 + _EVENT):
            self.room -= 1
            return Sentence(event, self.draws.draw(_LINKS), self._plain_event())
        return Sentence(event)

    def phrase(self, kind: int) -> Phrase:
        """Draw a phrase of a class, without modifiers, with at most two optional words."""
        self.room = _PHRASE + 2
        return self._phrase(kind)

    def attachment(self) -> Attached:
        """Draw an adpositional phrase that belongs to a verb, with at most two optional words."""
        self.room = _ATTACHED + 2
        return self._attachment(c.OF_VERB)

    def event(self, verb: int | None = None) -> Event:
        """Draw an event with its optional parts, with the given verb if any."""
        rates = self.rates
        event = self._plain_event(verb)
        if event.subject is not None:
            event = event._replace(subject=self._rich(event.subject))
        if event.object is not None:
            event = event._replace(object=self._rich(event.object))
        attachments: tuple[Attached, ...] = ()
        if self._adds(rates.attached, _ATTACHED):
            attachments = (self._attachment(c.OF_VERB),)
            if self._adds(rates.second_attached, _ATTACHED):
                second = self._attachment(c.OF_VERB)
                attachments += (second,) if second.adposition != attachments[0].adposition else ()
        adverb = self.adverb() if self._adds(rates.adverb, 1) else None
        return event._replace(attached=attachments, adverb=adverb)

    def adverb(self) -> int:
        """Choose an adverb that has not been mentioned."""
        adverb = self.draws.draw(self.world.adverbs)
        while adverb in self.mentioned:
            adverb = self.draws.draw(self.world.adverbs)
        self.mentioned.add(adverb)
        return adverb

    def _plain_event(self, verb: int | None = None) -> Event:
        """Draw an event without optional parts."""
        verb = self.draws.draw(self.world.verbs) if verb is None else verb
        frame = self.world.frames[verb]
        tense, is_negated = self._tense(self.rates.negated)
        self.room -= _PHRASE if frame.objects else 0  # Reserved for the object.
        subject = self._phrase(self.draws.choice(frame.subjects))
        if not frame.objects:
            return Event(verb, tense, is_negated, subject)
        self.room += _PHRASE
        return Event(verb, tense, is_negated, subject, self._phrase(self.draws.choice(frame.objects)))

    def _tense(self, rate: float) -> tuple[int, bool]:
        """Draw tense and negation, and subtract the verb and its particles from the room."""
        tense = self.draws.draw(_TENSES)
        is_negated = self.draws.chance(rate)
        self.room -= 1 + is_negated + (tense != c.PRESENT_TENSE)
        return tense, is_negated

    def _adds(self, rate: float, words: int) -> bool:
        """Draw whether to add an optional part of ``words`` words, if it fits."""
        return self.draws.chance(rate) and self.room >= words

    def concept(self, kind: int) -> int:
        """Draw a noun or name of a class, often from the cast, and rarely one already mentioned."""
        for _ in range(4):
            concept = self._concept(kind)
            if concept not in self.mentioned:
                break
        self.mentioned.add(concept)
        return concept

    def _concept(self, kind: int) -> int:
        if kind in self.cast and self.draws.chance(self.rates.recurring):
            return self.draws.choice(self.cast[kind])
        if kind in c.NAMES_OF_CLASS and self.draws.chance(self.rates.name):
            return self.draws.draw(self.world.called[kind])
        return self.draws.draw(self.world.nouns[kind])

    def _phrase(self, kind: int) -> Phrase:
        draws = self.draws
        rates = self.rates
        concept = self.concept(kind)
        if concept not in c.NOUNS:
            self.room -= len(self.world.names[concept]) + 1
            return Phrase(concept)
        plural = draws.chance(rates.plural)
        self.room -= 2 + plural
        determiner = draws.draw(_DETERMINERS) if self._adds(rates.determiner, 1) else None
        if plural and determiner == c.EVERY:
            determiner = c.THE
        numeral = draws.choice(c.NUMERALS) if plural and self._adds(rates.numeral, 2) else None
        self.room -= (determiner is not None) + (numeral is not None)
        return Phrase(concept, plural, determiner, numeral, self._adjectives(kind))

    def _adjectives(self, kind: int) -> tuple[int, ...]:
        adjectives: tuple[int, ...] = ()
        while len(adjectives) < 2 and self._adds(self.rates.adjective, 1):
            self.room -= 1
            adjective = self.draws.draw(self.world.adjectives[kind])
            if any(adjective | 1 == earlier | 1 for earlier in adjectives):
                break  # Do not combine an adjective with itself or its opposite.
            adjectives += (adjective,)
        return adjectives

    def _rich(self, phrase: Phrase) -> Phrase:
        """Add a modifier, a relative clause or a second phrase to a subject or object."""
        rates = self.rates
        kind = c.class_of(phrase.concept)
        if kind == c.PERSON and self.draws.chance(rates.pronoun):
            return Phrase(self.draws.choice(c.PRONOUNS))
        if phrase.concept in c.NOUNS and self._adds(rates.modifier, _ATTACHED):
            phrase = phrase._replace(modifier=self._attachment(c.OF_NOUN))
        if self._adds(rates.clause, _CLAUSE):
            return phrase._replace(clause=self._clause(kind))
        if self._adds(rates.joined, 1 + _PHRASE):
            return phrase._replace(joined=self._conjunct(phrase))
        return phrase

    def _conjunct(self, phrase: Phrase) -> tuple[int, Phrase] | None:
        second = self._phrase(c.class_of(phrase.concept))
        if second.concept == phrase.concept:
            return None
        self.room -= 1
        return (c.AND if self.draws.chance(0.75) else c.OR, second)

    def _attachment(self, choices: tuple[tuple[int, int], ...]) -> Attached:
        self.room -= 1
        adposition, kind = self.draws.choice(choices)
        return Attached(adposition, self._phrase(kind))

    def _clause(self, kind: int) -> Event | None:
        """Draw a relative clause about something of a class, as subject or as object.

        None is returned if eight verbs in a row do not fit.
        """
        draws = self.draws
        for _ in range(8):
            verb = draws.draw(self.world.verbs)
            frame = self.world.frames[verb]
            can_be_subject = kind in frame.subjects
            if not can_be_subject and kind not in frame.objects:
                continue
            self.room -= 2
            tense, is_negated = self._tense(self.rates.negated / 2)
            if not can_be_subject:
                return Event(verb, tense, is_negated, self._phrase(draws.choice(frame.subjects)))
            thing = self._phrase(draws.choice(frame.objects)) if frame.objects else None
            return Event(verb, tense, is_negated, None, thing)
        return None
