"""A perfect translator between the built-in languages, a dial that makes it err, and examples in translation.

Labels stay, answers are found again in the passage. The answer's words lead to theirs in the translation.
Where noise dropped them all, or put a word of something else among them, the answer is lost, and the
question left out. Words of sentences carry the tags, entities and trees that belong to what the translation
says: a method that knows no target labels must not look there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, pairwise
from typing import Any, Literal

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.identity import derive
from isogloss.data.examples import Example, ParsedSentence, Question, SentencePair, TaggedSentence
from isogloss.data.languages import concepts as c
from isogloss.data.languages.concepts import Draws
from isogloss.data.languages.family import Language, find_language, spell
from isogloss.data.languages.generating import examples, links_between, parsed, tagged
from isogloss.data.languages.lexicon import (
    TENSE_MARKERS,
    Form,
    Lexicon,
    WordReading,
    all_forms,
    lexicon,
    marking,
)
from isogloss.data.languages.meaning import Sentence
from isogloss.data.languages.parsing import NAME, Item, items_of, parse_items, sentences_in, unknown_word
from isogloss.data.languages.rendering import (
    PUNCTUATION,
    Word,
    has_spaces,
    is_of_case,
    render,
    rooted,
    text_of,
)
from isogloss.data.projection.words import SpanLink, by_links, word_offsets

Links = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class BuiltInTranslator:
    """Translates text of one built-in language into another, sentence by sentence.

    Words that make no sentence of the source language (a noisy translation, a heading) are translated
    one by one, in their order.
    """

    source: str | Language
    target: str | Language
    noise: float = 0.0
    """Rate at which words are dropped, at which they are wrongly chosen, and at which neighbours swap."""
    seed: int = 0
    """Seed of the noise; the same sentence always meets the same noise."""
    unknown: Literal["error", "copy"] = "error"
    """Whether a word that is not of the source language is an error (DataError) or copied."""

    def __post_init__(self) -> None:
        find_language(self.source)
        find_language(self.target)
        if not 0 <= self.noise <= 1:
            raise ConfigError(f"translator: noise is {self.noise}; it is a rate, from 0 to 1.")
        check_named("translator", "choice for unknown words", ("error", "copy"), self.unknown)

    def translate(self, text: str) -> str:
        """Translate running text of any number of sentences; DataError at a word of another language."""
        source, target = self._lexicons()
        spaces = has_spaces(target)
        texts = []
        for words in sentences_in(text, source):
            meaning, items = self._understand(words, source)
            target_words = self._noisy(_say(meaning, items, target), target)
            texts.append(text_of([word.form.text for word in target_words], spaces=spaces))
        return (" " if spaces else "").join(texts)

    def translate_words(self, words: Sequence[str]) -> tuple[tuple[str, ...], Links]:
        """Translate the words of one sentence; return the words and the 0-based links (source, target)."""
        source_words, target_words = self._heard_and_said(words)
        return tuple(word.form.text for word in target_words), links_between(source_words, target_words)

    def translate_analysed(self, words: Sequence[str]) -> list[Word]:
        """Translate the words of one sentence; return each with its tag, entity and position in the tree."""
        return rooted(self._heard_and_said(words)[1])

    def translate_linked(self, text: str) -> tuple[str, tuple[SpanLink, ...]]:
        """Translate as ``translate`` does; return also the linked spans of the text and its translation.

        Adpositions, case and particles of case are not linked: they belong to no phrase.
        """
        source, target = self._lexicons()
        spaces, translation, read = has_spaces(target), "", 0
        links: list[SpanLink] = []
        for words in sentences_in(text, source):
            spans = word_offsets(words, text, read)
            read = spans[-1][1]
            source_words, target_words = self._heard_and_said(words)
            texts = [word.form.text for word in target_words]
            translation += " " if translation and spaces else ""
            begin, translation = len(translation), translation + text_of(texts, spaces=spaces)
            others = word_offsets(texts, translation, begin)
            pairs = links_between([_without_case(word) for word in source_words], target_words)
            links += [(spans[first], others[second]) for first, second in pairs]
        return translation, tuple(links)

    def _heard_and_said(self, words: Sequence[str]) -> tuple[list[Word], list[Word]]:
        """Translate the words of one sentence; return both with the keys that link them."""
        source, target = self._lexicons()
        meaning, items = self._understand(words, source)
        target_words = self._noisy(_say(meaning, items, target), target)
        return _as_it_stands(items) if meaning is None else render(meaning, source), target_words

    def _lexicons(self) -> tuple[Lexicon, Lexicon]:
        return lexicon(find_language(self.source)), lexicon(find_language(self.target))

    def _understand(self, words: Sequence[str], source: Lexicon) -> tuple[Sentence | None, list[Item]]:
        items = items_of(words, source)
        strange = [item.words[0] for item in items if not item.readings]
        if strange and self.unknown == "error":
            raise unknown_word(strange[0], source)
        return (None if strange else parse_items(items, source)), items

    def _noisy(self, rendered: list[Word], target: Lexicon) -> list[Word]:
        """Drop, replace and swap words at the rate of the noise; punctuation and one word stay."""
        if not self.noise:
            return rendered
        draws = Draws(derive(self.seed, "noise", *(word.form.text for word in rendered)))
        words = [word for word in rendered if word.form.tag == "PUNCT" or not draws.chance(self.noise)]
        if all(word.form.tag == "PUNCT" for word in words):
            words = list(rendered)  # A sentence of no words is none.
        for index, word in enumerate(words):
            if word.form.tag != "PUNCT" and draws.chance(self.noise):
                like = word.form.tag, word.form.features
                others = _alternatives(target).get(like, [word.form])  # None are like a word that was copied.
                words[index] = word._replace(form=draws.choice(others))
        for index in range(len(words) - 2):
            if words[index + 1].form.tag != "PUNCT" and draws.chance(self.noise):
                words[index], words[index + 1] = words[index + 1], words[index]
        return words


def words_of(text: str, language: str) -> tuple[str, ...]:
    """Return the words of running text of a built-in language, whether spaces part them or not."""
    return tuple(chain.from_iterable(sentences_in(text, lexicon(find_language(language)))))


def _without_case(word: Word) -> Word:
    return word._replace(keys=tuple(key for key in word.keys if not is_of_case(key)))


def _say(meaning: Sentence | None, items: Sequence[Item], target: Lexicon) -> list[Word]:
    """Say what was understood; words that made no sentence one by one."""
    if meaning is not None:
        return render(meaning, target)
    return [
        Word(form, 0, 0, "dep", (index,))
        for index, item in enumerate(items)
        for form in _word_by_word(item, target)
    ]


def _as_it_stands(items: Sequence[Item]) -> list[Word]:
    """Return the words of the source with the keys that ``_say`` gives their translations."""
    return [
        Word(Form(word, word, "X", "_"), 0, 0, "dep", (index,))
        for index, item in enumerate(items)
        for word in item.words
    ]


def _word_by_word(item: Item, target: Lexicon) -> Iterator[Form]:
    """Translate a word without its sentence; a marker that the target writes as an affix gets lost."""
    if not item.readings:
        yield Form(item.words[0], item.words[0], "X", "_")
        return
    tag, reading = next(iter(item.readings.items()))
    if tag == "PUNCT":
        yield PUNCTUATION[item.words[0]]
    elif tag == NAME:
        yield from target.names[reading.concept]
    elif tag == "PROPN":
        word = spell(c.world().name_words[reading.concept], target.language.script)
        yield Form(word, word, "PROPN", "_")
    elif reading.concept in c.MARKERS:
        yield from _particles([reading.concept], target)
    else:
        yield from _inflected(tag, reading, target)


def _inflected(tag: str, reading: WordReading, target: Lexicon) -> Iterator[Form]:
    concept, first, second = reading
    if tag == "NOUN":
        yield from _particles([c.PLURAL] * first, target)
        yield target.nouns[concept][first][0]
    elif tag == "VERB":
        tense = TENSE_MARKERS[first]
        yield from _particles([c.NOT] * second + ([] if tense is None else [tense]), target)
        yield target.verbs[concept][first][second]
    else:
        yield target.adjectives[concept][first] if tag == "ADJ" else target.words[concept]


def _particles(markers: Sequence[int], target: Lexicon) -> Iterator[Form]:
    for marker in markers:
        if marking(target.language, marker) == "particle":
            yield target.words[marker]


@lru_cache(maxsize=64)
def _alternatives(words: Lexicon) -> dict[tuple[str, str], list[Form]]:
    """Group all forms by tag and features: what may stand where another does."""
    groups: dict[tuple[str, str], dict[Form, None]] = {}
    for form in (
        *(form for form, _ in all_forms(words)),
        *(form for name in words.names.values() for form in name),
    ):
        groups.setdefault((form.tag, form.features), {})[form] = None
    return {group: list(forms) for group, forms in groups.items()}


def translated(corpus: str, languages: str, split: str, *, noise: float = 0.0) -> Iterator[Example]:
    """Yield a split of the first language of ``qaa-qab`` translated into the second, under the same ids.

    ``qaa-qab-qaa`` is translated back. ``noise`` is the translators' rate of errors.
    """
    first, *others = languages.split("-")
    if not others:
        raise ConfigError(
            f"built-in translations: {languages!r} is not a pair; expected two languages as in qaa-qab."
        )
    check_named("built-in translations", "corpus", _TRANSLATED, corpus)
    translations: Iterable[Example] = examples(corpus, first, split)
    for source, target in pairwise((first, *others)):
        translator = BuiltInTranslator(source, target, noise=noise)
        translations = filter(None, map(partial(_TRANSLATED[corpus], translator), translations))
    return iter(translations)


def _pair(translator: BuiltInTranslator, pair: SentencePair) -> SentencePair:
    first, second = translator.translate(pair.first), translator.translate(pair.second)
    return replace(pair, first=first, second=second)


def _tree(translator: BuiltInTranslator, sentence: ParsedSentence) -> ParsedSentence:
    spaces = has_spaces(lexicon(find_language(translator.target)))
    return parsed(sentence.id, translator.translate_analysed(sentence.words), spaces=spaces)


def _tags(translator: BuiltInTranslator, sentence: TaggedSentence) -> TaggedSentence:
    return tagged(sentence.id, translator.translate_analysed(sentence.words))


def _question(translator: BuiltInTranslator, question: Question) -> Question | None:
    passage, links = translator.translate_linked(question.passage)
    projected = (by_links(answer, passage, links) for answer in question.answers)
    answers = tuple(answer for answer in projected if answer is not None)
    if not answers:
        return None
    question_text = translator.translate(question.question)
    return replace(question, passage=passage, question=question_text, answers=answers)


_TRANSLATED: Mapping[str, Callable[[BuiltInTranslator, Any], Example | None]] = {
    "xnli": _pair,
    "pawsx": _pair,
    "squad": _question,
    "ud": _tree,
    "wikiann": _tags,
}
"""The corpora that are there in translation; None for an example that lost its answers."""
