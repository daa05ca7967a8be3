"""Parsing of built-in languages: from words back to the meaning.

Text is split into sentences of words, and every word is replaced by all of its meanings. The grammar is
unambiguous: commas close relative clauses, relative pronouns distinguish subject and object, and the
attachment of an adpositional phrase to noun or verb follows from its adposition and noun. Words that are both
noun and verb, and conjunctions that join phrases or clauses, are resolved by backtracking.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from isogloss.core.errors import DataError, did_you_mean
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.lexicon import Lexicon, WordReading
from isogloss.features.built_in_languages.meaning import Attached, Event, Phrase, Sentence
from isogloss.features.built_in_languages.rendering import CLAUSE_ORDERS, PUNCTUATION, has_spaces

ENDS = (".", "?")
_MAX_NAME_WORDS = 3

_OF_NOUN = frozenset(c.OF_NOUN)
_UNKNOWN_VERB = -1

FunctionWord = tuple[str, Sequence[int]]
"""A tag, and the concepts of words with this tag."""

_NEGATION = ("PART", c.MARKERS)
_TENSE = ("AUX", c.MARKERS)
_DETERMINER = ("DET", c.DETERMINERS)
_NUMERAL = ("NUM", c.NUMERALS)

Found = Iterator[tuple[Phrase, int]]
"""Possible readings of a phrase, each with the index after it."""


class Item(NamedTuple):
    """A word, or all words of a name, with its meanings by tag. Unknown words have no meanings."""

    words: tuple[str, ...]
    readings: dict[str, WordReading]


def sentences_in(text: str, words: Lexicon) -> Iterator[list[str]]:
    """Yield the words of each sentence. The last sentence may lack its end."""
    sentence: list[str] = []
    for word in _words_in(text, words):
        sentence.append(word)
        if word in ENDS:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _words_in(text: str, words: Lexicon) -> Iterator[str]:
    for chunk in text.split():
        if not has_spaces(words):
            yield from _split_han(chunk, words)
            continue
        core = chunk.rstrip(",.?")
        if core:
            yield core
        yield from chunk[len(core) :]


def _split_han(chunk: str, words: Lexicon) -> Iterator[str]:
    """Split text where words end.

    No word begins with a shorter word, so the first match is the only one. An unknown character is a word.
    """
    start = 0
    while start < len(chunk):
        end = start + 1
        while end <= len(chunk) and not _is_word(chunk[start:end], words):
            end += 1
        end = end if end <= len(chunk) else start + 1
        yield chunk[start:end]
        start = end


def _is_word(text: str, words: Lexicon) -> bool:
    return text in words.readings or text in PUNCTUATION


def items_of(sentence: Sequence[str], words: Lexicon) -> list[Item]:
    """Return the words of a sentence with their meanings, joining the words of a name."""
    items = []
    start = 0
    while start < len(sentence):
        item = _name_at(sentence, start, words) or _word_at(sentence[start], words)
        items.append(item)
        start += len(item.words)
    return items


NAME = "NAME"
"""Tag of a whole name. PROPN is a single word of a name."""

_PUNCTUATION_READING = {"PUNCT": WordReading(-1)}


def _name_at(sentence: Sequence[str], start: int, words: Lexicon) -> Item | None:
    if "PROPN" not in words.readings.get(sentence[start], ()):
        return None
    for length in range(_MAX_NAME_WORDS, 0, -1):
        name = tuple(sentence[start : start + length])
        if name in words.called:
            return Item(name, {NAME: WordReading(words.called[name])})
    return None


def _word_at(word: str, words: Lexicon) -> Item:
    return Item((word,), _PUNCTUATION_READING if word in PUNCTUATION else words.readings.get(word, {}))


def unknown_word(word: str, words: Lexicon) -> DataError:
    """Build the error for a word outside of the language."""
    language = words.language
    return DataError(
        f"text in {language.code}: {word!r} is not a word of {language.name}."
        f"{did_you_mean(word, words.readings)} "
        f'Give text in {language.code}, or translate with unknown = "copy", which copies such words.'
    )


def parse(sentence: Sequence[str], words: Lexicon) -> Sentence | None:
    """Return the meaning of a sentence, or None if the words are not a sentence of the language."""
    return parse_items(items_of(sentence, words), words)


def parse_items(items: Sequence[Item], words: Lexicon) -> Sentence | None:
    """Return the meaning of a sentence of items, or None if they are not a sentence of the language."""
    return next(_Parser(items, words).sentences(), None)


class _Parser:
    """A recursive descent parser with backtracking, whose methods yield all readings from an index."""

    __slots__ = ("end", "items", "language", "parts", "prepositions", "relative_before")

    def __init__(self, items: Sequence[Item], words: Lexicon) -> None:
        self.items = items
        self.language = words.language
        self.end = len(items) - 1
        self.parts = CLAUSE_ORDERS[self.language.order]
        self.prepositions = self.language.adposition == "before"
        self.relative_before = self.language.relative == "before"

    def reading(self, index: int, tag: str) -> WordReading | None:
        """Return the meaning of the item at an index as this tag, or None if it lacks the tag."""
        return self.items[index].readings.get(tag) if index <= self.end else None

    def concept(self, index: int, tag: str, choices: Sequence[int]) -> int | None:
        """Return the concept of a function word at an index, or None if it is not one of the choices."""
        reading = self.reading(index, tag)
        return reading.concept if reading is not None and reading.concept in choices else None

    def is_end(self, index: int) -> bool:
        return index == self.end and self.items[index].words[0] in ENDS

    def sentences(self) -> Iterator[Sentence]:
        if not self.items or not self.is_end(self.end):
            return
        question = self.items[self.end].words[0] == "?"
        for event, index in self.event(0):
            if index == self.end:
                yield Sentence(event, question=question)
                continue
            link = self.concept(index, "CCONJ", c.LINKS) or self.concept(index, "SCONJ", c.LINKS)
            if link is not None:
                for second, stop in self.event(index + 1):
                    if stop == self.end:
                        yield Sentence(event, link, second, question)

    def event(self, index: int, gap: int = 0) -> Iterator[tuple[Event, int]]:
        """Read a clause. A relative clause has a gap, named by its pronoun."""
        start = Event(_UNKNOWN_VERB, 0, False, None)
        return self.rest(0, index, start, gap)

    def rest(self, part: int, index: int, event: Event, gap: int) -> Iterator[tuple[Event, int]]:
        """Read the remaining parts of a clause, given the index of the next part."""
        if part == len(self.parts):
            if fits(event, gap):
                yield event, index
            return
        for larger_event, stop in self.part(self.parts[part], index, event, gap):
            yield from self.rest(part + 1, stop, larger_event, gap)

    def part(self, part: str, index: int, event: Event, gap: int) -> Iterator[tuple[Event, int]]:
        if part == "V":
            return self.verb(index, event)
        if part == "S":
            return self.subject(index, event, gap)
        if part == "O":
            return self.object(index, event, gap)
        return self.attachments(index, event) if part == "P" else self.adverb(index, event)

    def subject(self, index: int, event: Event, gap: int) -> Iterator[tuple[Event, int]]:
        if gap == c.WHICH_DOES:
            yield event, index
            return
        for phrase, stop in self.argument(index, 0, is_plain=gap != 0):
            yield event._replace(subject=phrase), stop

    def object(self, index: int, event: Event, gap: int) -> Iterator[tuple[Event, int]]:
        has_verb = event.verb != _UNKNOWN_VERB
        if gap != c.WHICH_IS_DONE and (not has_verb or is_transitive(event.verb)):
            for phrase, stop in self.argument(index, c.OBJECT, is_plain=gap != 0):
                yield event._replace(object=phrase), stop
        yield event, index

    def attachments(self, index: int, event: Event) -> Iterator[tuple[Event, int]]:
        if self.concept(index, "ADV", (c.WHERE,)) is not None:
            yield event._replace(attached=(Attached(c.WHERE, None),)), index + 1
        for attachment, stop in self.attachment(index, is_nominal=False):
            yield from self.attachments(stop, event._replace(attached=(*event.attached, attachment)))
        yield event, index

    def adverb(self, index: int, event: Event) -> Iterator[tuple[Event, int]]:
        adverb = self.concept(index, "ADV", c.ADVERBS)
        if adverb is not None:
            yield event._replace(adverb=adverb), index + 1
        yield event, index

    def verb(self, index: int, event: Event) -> Iterator[tuple[Event, int]]:
        """Read the verb with its particles, which are on the same side as adpositions."""
        negation = tense = None
        if self.prepositions:
            negation, tense, index = self.function_words(index, _NEGATION, _TENSE)
        reading = self.reading(index, "VERB")
        if reading is None:
            return
        index += 1
        if not self.prepositions:
            tense, negation, index = self.function_words(index, _TENSE, _NEGATION)
        yield (
            event._replace(
                verb=reading.concept,
                tense=reading.first if tense is None else c.PAST_TENSE + (tense - c.PAST),
                negated=bool(reading.second) or negation is not None,
            ),
            index,
        )

    def function_words(self, index: int, *kinds: FunctionWord) -> tuple[int | None, int | None, int]:
        """Read up to two function words, in the order of their kinds."""
        concepts: list[int | None] = []
        for tag, choices in kinds:
            concept = self.concept(index, tag, choices)
            concepts.append(concept)
            index += concept is not None
        return concepts[0], concepts[1], index

    def argument(self, index: int, marker: int, *, is_plain: bool) -> Found:
        """Read a subject or object with its dependents, including relative clauses unless it is plain."""
        for clause, start in self.clause_before(index, is_plain=is_plain):
            for phrase, stop in self.phrase_with_marker(start, marker):
                if clause is not None:
                    yield phrase._replace(clause=clause), stop
                    continue
                if not is_plain and not self.relative_before:
                    yield from self.clause_after(phrase, stop)
                yield from self.conjuncts(phrase, stop, marker)
                yield phrase, stop

    def conjuncts(self, phrase: Phrase, index: int, marker: int) -> Found:
        conjunction = self.concept(index, "CCONJ", c.CONJUNCTIONS)
        if conjunction is not None:
            for second_phrase, stop in self.phrase_with_marker(index + 1, marker):
                yield phrase._replace(joined=(conjunction, second_phrase)), stop

    def clause_before(self, index: int, *, is_plain: bool) -> Iterator[tuple[Event | None, int]]:
        """Read a clause that precedes its noun: a comma (unless the sentence begins), clause, pronoun."""
        has_comma = index <= self.end and self.items[index].words[0] == ","
        if self.relative_before and not is_plain and (has_comma or index == 0):
            for gap in c.RELATIVES:
                for clause, stop in self.event(index + has_comma, gap):
                    if self.concept(stop, "PRON", (gap,)) is not None:
                        yield clause, stop + 1
        yield None, index

    def clause_after(self, phrase: Phrase, index: int) -> Found:
        """Read a clause that follows its noun: pronoun, clause, a comma (unless the sentence ends)."""
        gap = self.concept(index, "PRON", c.RELATIVES)
        if gap is not None:
            for clause, stop in self.event(index + 1, gap):
                if self.items[stop].words[0] == ",":
                    yield phrase._replace(clause=clause), stop + 1
                elif self.is_end(stop):
                    yield phrase._replace(clause=clause), stop

    def phrase_with_marker(self, index: int, marker: int) -> Found:
        """Read a phrase with its modifier and, if it is an object, its marker."""
        needs_particle = marker == c.OBJECT and self.language.case == "particle"
        if self.prepositions:
            if not needs_particle or self.is_object_mark(index):
                yield from self.phrase_then_modifier(index + needs_particle, marker)
            return
        for phrase, stop in self.modifier_then_phrase(index, marker):
            if not needs_particle or self.is_object_mark(stop):
                yield phrase, stop + needs_particle

    def is_object_mark(self, index: int) -> bool:
        return self.concept(index, "ADP", (c.OBJECT,)) is not None

    def phrase_then_modifier(self, index: int, marker: int) -> Found:
        for phrase, stop in self.core(index, marker):
            if phrase.concept in c.NOUNS:
                for modifier, modifier_stop in self.attachment(stop, is_nominal=True):
                    yield phrase._replace(modifier=modifier), modifier_stop
            yield phrase, stop

    def modifier_then_phrase(self, index: int, marker: int) -> Found:
        for modifier, start in self.attachment(index, is_nominal=True):
            for phrase, stop in self.core(start, marker):
                yield phrase._replace(modifier=modifier), stop
        yield from self.core(index, marker)

    def attachment(self, index: int, *, is_nominal: bool) -> Iterator[tuple[Attached, int]]:
        """Read an adposition and its phrase that belong to a noun, or else to the verb."""
        if self.prepositions:
            adposition = self.concept(index, "ADP", c.ADPOSITIONS)
            if adposition is not None:
                for phrase, stop in self.core(index + 1, 0):
                    if ((adposition, c.class_of(phrase.concept)) in _OF_NOUN) == is_nominal:
                        yield Attached(adposition, phrase), stop
            return
        for phrase, stop in self.core(index, 0):
            adposition = self.concept(stop, "ADP", c.ADPOSITIONS)
            if (
                adposition is not None
                and ((adposition, c.class_of(phrase.concept)) in _OF_NOUN) == is_nominal
            ):
                yield Attached(adposition, phrase), stop + 1

    def core(self, index: int, marker: int) -> Found:
        """Read a name, a pronoun, or a noun with its determiner, numeral and adjectives."""
        name = self.reading(index, NAME)
        if name is not None:
            yield Phrase(name.concept), index + 1
            return
        pronoun = self.concept(index, "PRON", (*c.PRONOUNS, c.WHO, c.WHAT))
        if pronoun is not None:
            yield Phrase(pronoun), index + 1
            return
        yield from self.noun(index, marker)

    def noun(self, index: int, marker: int) -> Found:
        outer_before = self.language.determiner == "before"
        determiner = numeral = None
        if outer_before:
            determiner, numeral, index = self.function_words(index, _DETERMINER, _NUMERAL)
        adjectives, index = self.adjectives(index, is_allowed=self.language.adjective == "before")
        particle, index = self.plural_particle(index, is_allowed=self.prepositions)
        noun = self.reading(index, "NOUN")
        if noun is None:
            return
        after_particle, index = self.plural_particle(index + 1, is_allowed=not self.prepositions)
        more, index = self.adjectives(index, is_allowed=self.language.adjective == "after")
        if not outer_before:
            numeral, determiner, index = self.function_words(index, _NUMERAL, _DETERMINER)
        if self.language.case in ("suffix", "prefix") and bool(noun.second) != (marker == c.OBJECT):
            return
        plural = bool(noun.first) or particle or after_particle
        yield Phrase(noun.concept, plural, determiner, numeral, (*adjectives, *more)), index

    def adjectives(self, index: int, *, is_allowed: bool) -> tuple[tuple[int, ...], int]:
        adjectives: tuple[int, ...] = ()
        while is_allowed and (reading := self.reading(index, "ADJ")) is not None:
            adjectives += (reading.concept,)
            index += 1
        return adjectives, index

    def plural_particle(self, index: int, *, is_allowed: bool) -> tuple[bool, int]:
        has_particle = is_allowed and self.concept(index, "DET", (c.PLURAL,)) is not None
        return has_particle, index + has_particle


def is_transitive(verb: int) -> bool:
    """Return whether a verb needs an object."""
    return bool(c.world().frames[verb].objects)


def fits(event: Event, gap: int) -> bool:
    """Return whether an event has an object exactly if its verb needs one, counting the gap as an object."""
    return is_transitive(event.verb) == (event.object is not None or gap == c.WHICH_IS_DONE)
