"""Parsing of built-in languages: from words back to the meaning.

Text is split into sentences of words, and words are looked up with all their meanings. The grammar is
unambiguous: commas close relative clauses, relative pronouns distinguish subject and object, and the
attachment of an adpositional phrase to noun or verb follows from its adposition and noun. Words that are both
noun and verb, and conjunctions that join phrases or clauses, are resolved by backtracking.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.languages import concepts as c
from isogloss.data.languages.lexicon import Lexicon, WordReading
from isogloss.data.languages.meaning import Attached, Event, Phrase, Sentence
from isogloss.data.languages.rendering import CLAUSE_ORDERS, PUNCTUATION, has_spaces

ENDS = (".", "?")
_MAX_NAME_WORDS = 3

_OF_NOUN = frozenset(c.OF_NOUN)
_UNKNOWN_VERB = -1

FunctionWord = tuple[str, Sequence[int]]
"""A tag, and the concepts of words that have it."""

_NEGATION, _TENSE = ("PART", c.MARKERS), ("AUX", c.MARKERS)
_DETERMINER, _NUMERAL = ("DET", c.DETERMINERS), ("NUM", c.NUMERALS)

Found = Iterator[tuple[Phrase, int]]
"""Ways to read a phrase, each with the index after it."""


class Item(NamedTuple):
    """A word, or all words of a name, with what it may mean by tag; nothing for unknown words."""

    words: tuple[str, ...]
    readings: dict[str, WordReading]


def sentences_in(text: str, words: Lexicon) -> Iterator[list[str]]:
    """Yield the words of each sentence; the last one may lack its end."""
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
    """Split where words end: no word begins another, so the first that fits is the only one."""
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
    """Look the words of a sentence up; the words of a name become one item."""
    items, start = [], 0
    while start < len(sentence):
        item = _name_at(sentence, start, words) or _word_at(sentence[start], words)
        items.append(item)
        start += len(item.words)
    return items


NAME = "NAME"
"""The tag of a whole name; PROPN is a word of a name that stands alone."""

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
    """Build the error for a word that is not of the language."""
    language = words.language
    return DataError(
        f"text in {language.code}: {word!r} is not a word of {language.name}."
        f"{did_you_mean(word, words.readings)} "
        f'Give text in {language.code}, or translate with unknown = "copy", which copies such words.'
    )


def parse(sentence: Sequence[str], words: Lexicon) -> Sentence | None:
    """Return what a sentence means, or None where the words make no sentence of the language."""
    return parse_items(items_of(sentence, words), words)


def parse_items(items: Sequence[Item], words: Lexicon) -> Sentence | None:
    """Return what a sentence means whose words were looked up."""
    return next(_Parser(items, words).sentences(), None)


class _Parser:
    """Recursive descent with backtracking: every method gives all ways to read what stands at an index."""

    __slots__ = ("end", "items", "language", "parts", "prepositions", "relative_before")

    def __init__(self, items: Sequence[Item], words: Lexicon) -> None:
        self.items, self.language = items, words.language
        self.end = len(items) - 1
        self.parts = CLAUSE_ORDERS[self.language.order]
        self.prepositions = self.language.adposition == "before"
        self.relative_before = self.language.relative == "before"

    def at(self, index: int, tag: str) -> WordReading | None:
        """Return what the item at an index means if it has this tag."""
        return self.items[index].readings.get(tag) if index <= self.end else None

    def concept(self, index: int, tag: str, allowed: Sequence[int]) -> int | None:
        """Return the concept of a function word at an index if it is one of those allowed."""
        reading = self.at(index, tag)
        return reading.concept if reading is not None and reading.concept in allowed else None

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
                for second, after in self.event(index + 1):
                    if after == self.end:
                        yield Sentence(event, link, second, question)

    def event(self, index: int, gap: int = 0) -> Iterator[tuple[Event, int]]:
        """Read a clause; a relative one has a gap, named by its pronoun."""
        start = Event(_UNKNOWN_VERB, 0, False, None)
        return self.rest(0, index, start, gap)

    def rest(self, which: int, index: int, event: Event, gap: int) -> Iterator[tuple[Event, int]]:
        """Read the parts of a clause from the numbered one on."""
        if which == len(self.parts):
            if fits(event, gap):
                yield event, index
            return
        for grown, after in self.part(self.parts[which], index, event, gap):
            yield from self.rest(which + 1, after, grown, gap)

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
        for phrase, after in self.rich(index, 0, plain=gap != 0):
            yield event._replace(subject=phrase), after

    def object(self, index: int, event: Event, gap: int) -> Iterator[tuple[Event, int]]:
        verb_read = event.verb != _UNKNOWN_VERB
        if gap != c.WHICH_IS_DONE and (not verb_read or is_transitive(event.verb)):
            for phrase, after in self.rich(index, c.OBJECT, plain=gap != 0):
                yield event._replace(object=phrase), after
        yield event, index

    def attachments(self, index: int, event: Event) -> Iterator[tuple[Event, int]]:
        if self.concept(index, "ADV", (c.WHERE,)) is not None:
            yield event._replace(attached=(Attached(c.WHERE, None),)), index + 1
        for attached, after in self.attached(index, of_noun=False):
            yield from self.attachments(after, event._replace(attached=(*event.attached, attached)))
        yield event, index

    def adverb(self, index: int, event: Event) -> Iterator[tuple[Event, int]]:
        adverb = self.concept(index, "ADV", c.ADVERBS)
        if adverb is not None:
            yield event._replace(adverb=adverb), index + 1
        yield event, index

    def verb(self, index: int, event: Event) -> Iterator[tuple[Event, int]]:
        """Read the verb with its particles, which stand where adpositions do."""
        negated = tense = None
        if self.prepositions:
            negated, tense, index = self.two(index, _NEGATION, _TENSE)
        reading = self.at(index, "VERB")
        if reading is None:
            return
        index += 1
        if not self.prepositions:
            tense, negated, index = self.two(index, _TENSE, _NEGATION)
        yield (
            event._replace(
                verb=reading.concept,
                tense=reading.first if tense is None else c.PAST_TENSE + (tense - c.PAST),
                negated=bool(reading.second) or negated is not None,
            ),
            index,
        )

    def two(self, index: int, *kinds: FunctionWord) -> tuple[int | None, int | None, int]:
        """Read up to two function words, in the order of their kinds."""
        concepts: list[int | None] = []
        for tag, allowed in kinds:
            concept = self.concept(index, tag, allowed)
            concepts.append(concept)
            index += concept is not None
        return concepts[0], concepts[1], index

    def rich(self, index: int, marker: int, *, plain: bool) -> Found:
        """Read a subject or object with all that may belong to it; a plain one has no clause of its own."""
        for clause, start in self.clause_before(index, plain=plain):
            for phrase, after in self.marked(start, marker):
                if clause is not None:
                    yield phrase._replace(clause=clause), after
                    continue
                if not plain and not self.relative_before:
                    yield from self.clause_after(phrase, after)
                yield from self.joined(phrase, after, marker)
                yield phrase, after

    def joined(self, phrase: Phrase, index: int, marker: int) -> Found:
        conjunction = self.concept(index, "CCONJ", c.CONJUNCTIONS)
        if conjunction is not None:
            for other, after in self.marked(index + 1, marker):
                yield phrase._replace(joined=(conjunction, other)), after

    def clause_before(self, index: int, *, plain: bool) -> Iterator[tuple[Event | None, int]]:
        """Read a clause that precedes its noun: a comma (unless the sentence begins), clause, pronoun."""
        comma = index <= self.end and self.items[index].words[0] == ","
        if self.relative_before and not plain and (comma or index == 0):
            for gap in c.RELATIVES:
                for clause, after in self.event(index + comma, gap):
                    if self.concept(after, "PRON", (gap,)) is not None:
                        yield clause, after + 1
        yield None, index

    def clause_after(self, phrase: Phrase, index: int) -> Found:
        """Read a clause that follows its noun: pronoun, clause, a comma (unless the sentence ends)."""
        gap = self.concept(index, "PRON", c.RELATIVES)
        if gap is not None:
            for clause, after in self.event(index + 1, gap):
                if self.items[after].words[0] == ",":
                    yield phrase._replace(clause=clause), after + 1
                elif self.is_end(after):
                    yield phrase._replace(clause=clause), after

    def marked(self, index: int, marker: int) -> Found:
        """Read a phrase with its modifier and, where it is an object, its mark."""
        particle = marker == c.OBJECT and self.language.case == "particle"
        if self.prepositions:
            if not particle or self.is_object_mark(index):
                yield from self.modified_after(index + particle, marker)
            return
        for phrase, after in self.modified_before(index, marker):
            if not particle or self.is_object_mark(after):
                yield phrase, after + particle

    def is_object_mark(self, index: int) -> bool:
        return self.concept(index, "ADP", (c.OBJECT,)) is not None

    def modified_after(self, index: int, marker: int) -> Found:
        for phrase, after in self.core(index, marker):
            if phrase.concept in c.NOUNS:
                for modifier, end in self.attached(after, of_noun=True):
                    yield phrase._replace(modifier=modifier), end
            yield phrase, after

    def modified_before(self, index: int, marker: int) -> Found:
        for modifier, start in self.attached(index, of_noun=True):
            for phrase, after in self.core(start, marker):
                yield phrase._replace(modifier=modifier), after
        yield from self.core(index, marker)

    def attached(self, index: int, *, of_noun: bool) -> Iterator[tuple[Attached, int]]:
        """Read an adposition and its phrase that belong to a noun, or to the verb."""
        if self.prepositions:
            adposition = self.concept(index, "ADP", c.ADPOSITIONS)
            if adposition is not None:
                for phrase, after in self.core(index + 1, 0):
                    if ((adposition, c.class_of(phrase.concept)) in _OF_NOUN) == of_noun:
                        yield Attached(adposition, phrase), after
            return
        for phrase, after in self.core(index, 0):
            adposition = self.concept(after, "ADP", c.ADPOSITIONS)
            if adposition is not None and ((adposition, c.class_of(phrase.concept)) in _OF_NOUN) == of_noun:
                yield Attached(adposition, phrase), after + 1

    def core(self, index: int, marker: int) -> Found:
        """Read a name, a pronoun, or a noun with its determiner, numeral and adjectives."""
        name = self.at(index, NAME)
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
            determiner, numeral, index = self.two(index, _DETERMINER, _NUMERAL)
        adjectives, index = self.adjectives(index, here=self.language.adjective == "before")
        particle, index = self.plural_particle(index, here=self.prepositions)
        noun = self.at(index, "NOUN")
        if noun is None:
            return
        after_particle, index = self.plural_particle(index + 1, here=not self.prepositions)
        more, index = self.adjectives(index, here=self.language.adjective == "after")
        if not outer_before:
            numeral, determiner, index = self.two(index, _NUMERAL, _DETERMINER)
        if self.language.case in ("suffix", "prefix") and bool(noun.second) != (marker == c.OBJECT):
            return
        plural = bool(noun.first) or particle or after_particle
        yield Phrase(noun.concept, plural, determiner, numeral, (*adjectives, *more)), index

    def adjectives(self, index: int, *, here: bool) -> tuple[tuple[int, ...], int]:
        adjectives: tuple[int, ...] = ()
        while here and (reading := self.at(index, "ADJ")) is not None:
            adjectives += (reading.concept,)
            index += 1
        return adjectives, index

    def plural_particle(self, index: int, *, here: bool) -> tuple[bool, int]:
        marked = here and self.concept(index, "DET", (c.PLURAL,)) is not None
        return marked, index + marked


def is_transitive(verb: int) -> bool:
    """Return whether a verb takes an object."""
    return bool(c.world().frames[verb].objects)


def fits(event: Event, gap: int) -> bool:
    """Return whether an event has an object exactly if its verb takes one, counting the gap."""
    return is_transitive(event.verb) == (event.object is not None or gap == c.WHICH_IS_DONE)
