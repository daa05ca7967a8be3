"""A perfect translator between the built-in languages, a dial for its errors, and translated examples.

Labels are kept, and answers are located in the translated passage by the links of their words. If noise
dropped all of these, or put a different word among them, the answer is lost and the question is skipped.
Words of translated sentences have the tags, entities and trees of the translation. A method that uses no
target labels must not read them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain, pairwise
from typing import Any, Literal

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.identity import derive
from isogloss.data.examples import Example, ParsedSentence, Question, SentencePair, TaggedSentence
from isogloss.data.projection.words import SpanLink, locate_by_links, word_offsets
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws
from isogloss.features.built_in_languages.family import Language, find_language
from isogloss.features.built_in_languages.generating import (
    examples,
    links_between,
    parse_sentence,
    tag_sentence,
)
from isogloss.features.built_in_languages.lexicon import (
    TENSE_MARKERS,
    Form,
    Lexicon,
    WordReading,
    all_forms,
    lexicon,
    marking,
)
from isogloss.features.built_in_languages.meaning import Rates, Sentence
from isogloss.features.built_in_languages.parsing import (
    NAME,
    Item,
    items_of,
    parse_items,
    sentences_in,
    unknown_word,
)
from isogloss.features.built_in_languages.rendering import (
    PUNCTUATION,
    Word,
    has_spaces,
    is_case_key,
    render,
    restore_tree,
    text_of,
)
from isogloss.features.built_in_languages.worlds import express_translation

Links = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class BuiltInTranslator:
    """Translates text of one built-in language into a second one, sentence by sentence.

    Words that are not a sentence of the source language (a noisy translation, a heading) are translated one
    by one, in their order.
    """

    source: str | Language
    target: str | Language
    noise: float = 0.0
    """Rate of dropped words, rate of replaced words, and rate of swaps of neighbours."""
    seed: int = 0
    """Seed of the noise. Equal sentences have equal noise."""
    unknown: Literal["error", "copy"] = "error"
    """Handling of words outside of the source language: error raises DataError, copy copies them."""

    def __post_init__(self) -> None:
        find_language(self.source)
        find_language(self.target)
        if not 0 <= self.noise <= 1:
            raise ConfigError(f"translator: noise is {self.noise}; it is a rate, from 0 to 1.")
        check_named("translator", "choice for unknown words", ("error", "copy"), self.unknown)

    def translate(self, text: str) -> str:
        """Translate running text of any number of sentences.

        Raises DataError at an unknown word, unless unknown words are copied.
        """
        source, target = self._lexicons()
        uses_spaces = has_spaces(target)
        texts = []
        for words in sentences_in(text, source):
            meaning, items = self._understand(words, source)
            target_words = self._add_noise(_say(meaning, items, source, target), target)
            texts.append(text_of([word.form.text for word in target_words], spaces=uses_spaces))
        return (" " if uses_spaces else "").join(texts)

    def translate_words(self, words: Sequence[str]) -> tuple[tuple[str, ...], Links]:
        """Translate the words of one sentence, and return the words and 0-based links (source, target)."""
        source_words, target_words = self._translate_sentence(words)
        return tuple(word.form.text for word in target_words), links_between(source_words, target_words)

    def translate_analysed(self, words: Sequence[str]) -> list[Word]:
        """Translate the words of one sentence, and return each with tag, entity and place in the tree."""
        return restore_tree(self._translate_sentence(words)[1])

    def translate_linked(self, text: str) -> tuple[str, tuple[SpanLink, ...]]:
        """Translate like ``translate``, and return also the linked spans of the text and its translation.

        Adpositions, case and particles of case are not linked, because answers do not contain them.
        """
        source, target = self._lexicons()
        uses_spaces = has_spaces(target)
        translation = ""
        position = 0
        links: list[SpanLink] = []
        for words in sentences_in(text, source):
            source_spans = word_offsets(words, text, position)
            position = source_spans[-1][1]
            source_words, target_words = self._translate_sentence(words)
            texts = [word.form.text for word in target_words]
            translation += " " if translation and uses_spaces else ""
            start = len(translation)
            translation += text_of(texts, spaces=uses_spaces)
            target_spans = word_offsets(texts, translation, start)
            pairs = links_between([_without_case(word) for word in source_words], target_words)
            links += [(source_spans[i], target_spans[j]) for i, j in pairs]
        return translation, tuple(links)

    def _translate_sentence(self, words: Sequence[str]) -> tuple[list[Word], list[Word]]:
        """Translate the words of one sentence.

        Source and target words are returned with the keys that link them.
        """
        source, target = self._lexicons()
        meaning, items = self._understand(words, source)
        target_words = self._add_noise(_say(meaning, items, source, target), target)
        return _words_as_written(items) if meaning is None else render(meaning, source), target_words

    def _lexicons(self) -> tuple[Lexicon, Lexicon]:
        return lexicon(find_language(self.source)), lexicon(find_language(self.target))

    def _understand(self, words: Sequence[str], source: Lexicon) -> tuple[Sentence | None, list[Item]]:
        items = items_of(words, source)
        strange = [item.words[0] for item in items if not item.readings]
        if strange and self.unknown == "error":
            raise unknown_word(strange[0], source)
        return (None if strange else parse_items(items, source)), items

    def _add_noise(self, sentence: list[Word], target: Lexicon) -> list[Word]:
        """Drop, replace and swap words at the rate of the noise, except for punctuation and a last word."""
        if not self.noise:
            return sentence
        draws = Draws(derive(self.seed, "noise", *(word.form.text for word in sentence)))
        words = [word for word in sentence if word.form.tag == "PUNCT" or not draws.chance(self.noise)]
        if all(word.form.tag == "PUNCT" for word in words):
            words = list(sentence)  # A sentence needs words.
        for index, word in enumerate(words):
            if word.form.tag != "PUNCT" and draws.chance(self.noise):
                group = word.form.tag, word.form.features
                forms = _alternatives(target).get(group, [word.form])  # Copied words have no alternatives.
                words[index] = word._replace(form=draws.choice(forms))
        for index in range(len(words) - 2):
            if words[index + 1].form.tag != "PUNCT" and draws.chance(self.noise):
                words[index : index + 2] = words[index + 1], words[index]
        return words


def words_of(text: str, language: str) -> tuple[str, ...]:
    """Return the words of running text in a built-in language, with or without spaces between words."""
    return tuple(chain.from_iterable(sentences_in(text, lexicon(find_language(language)))))


def _without_case(word: Word) -> Word:
    return word._replace(keys=tuple(key for key in word.keys if not is_case_key(key)))


def _say(meaning: Sentence | None, items: Sequence[Item], source: Lexicon, target: Lexicon) -> list[Word]:
    """Render a meaning, or translate the words one by one without a meaning."""
    if meaning is not None:
        return express_translation(meaning, source, target, Rates())
    return [
        Word(form, 0, 0, "dep", (index,))
        for index, item in enumerate(items)
        for form in _word_by_word(item, target)
    ]


def _words_as_written(items: Sequence[Item]) -> list[Word]:
    """Return the words of the source with the keys that ``_say`` gives their translations."""
    return [
        Word(Form(word, word, "X", "_"), 0, 0, "dep", (index,))
        for index, item in enumerate(items)
        for word in item.words
    ]


def _word_by_word(item: Item, target: Lexicon) -> Iterator[Form]:
    """Translate a word without its sentence.

    Markers that the target writes as an affix are lost.
    """
    if not item.readings:
        yield Form(item.words[0], item.words[0], "X", "_")
        return
    tag, reading = next(iter(item.readings.items()))
    if tag == "PUNCT":
        yield PUNCTUATION[item.words[0]]
    elif tag == NAME:
        yield from target.names[reading.concept]
    elif tag == "PROPN":
        word = target.name_words[reading.concept]
        yield Form(word, word, "PROPN", "_")
    elif reading.concept in c.MARKERS:
        yield from _particles([reading.concept], target)
    else:
        yield from _inflect(tag, reading, target)


def _inflect(tag: str, reading: WordReading, target: Lexicon) -> Iterator[Form]:
    concept, number_or_tense, is_negated = reading
    if tag == "NOUN":
        yield from _particles([c.PLURAL] * number_or_tense, target)
        yield target.nouns[concept][number_or_tense][0]
    elif tag == "VERB":
        tense = TENSE_MARKERS[number_or_tense]
        yield from _particles([c.NOT] * is_negated + ([] if tense is None else [tense]), target)
        yield target.verbs[concept][number_or_tense][is_negated]
    else:
        yield target.adjectives[concept][number_or_tense] if tag == "ADJ" else target.words[concept]


def _particles(markers: Sequence[int], target: Lexicon) -> Iterator[Form]:
    for marker in markers:
        if marking(target.language, marker) == "particle":
            yield target.words[marker]


@lru_cache(maxsize=64)
def _alternatives(words: Lexicon) -> dict[tuple[str, str], list[Form]]:
    """Group all forms by tag and features. Forms of one group can replace each other."""
    groups: dict[tuple[str, str], dict[Form, None]] = {}
    for form in (
        *(form for form, _ in all_forms(words)),
        *(form for name in words.names.values() for form in name),
    ):
        groups.setdefault((form.tag, form.features), {})[form] = None
    return {group: list(forms) for group, forms in groups.items()}


def translate_corpus(corpus: str, languages: str, split: str, *, noise: float = 0.0) -> Iterator[Example]:
    """Yield a split of the first language of ``qaa-qab`` translated into the second, under the same ids.

    ``qaa-qab-qaa`` is translated back. ``noise`` is the translators' rate of errors. Questions without an
    answer are skipped. Raises ConfigError for a single language.
    """
    chain_of_languages = languages.split("-")
    if len(chain_of_languages) == 1:
        raise ConfigError(
            f"built-in translations: {languages!r} is not a pair; expected two languages as in qaa-qab."
        )
    check_named("built-in translations", "corpus", _TRANSLATED, corpus)
    for language in chain_of_languages:
        if relation := find_language(language).relation:
            relation.check_corpus(corpus)
    split_examples = examples(corpus, chain_of_languages[0], split)
    for source, target in pairwise(chain_of_languages):
        translator = BuiltInTranslator(source, target, noise=noise)
        split_examples = _translate_examples(corpus, translator, split_examples)
    return split_examples


def _translate_examples(
    corpus: str, translator: BuiltInTranslator, originals: Iterable[Example]
) -> Iterator[Example]:
    for original in originals:
        translation = _TRANSLATED[corpus](translator, original)
        if translation is not None:
            yield translation


def _pair(translator: BuiltInTranslator, pair: SentencePair) -> SentencePair:
    return replace(pair, first=translator.translate(pair.first), second=translator.translate(pair.second))


def _tree(translator: BuiltInTranslator, sentence: ParsedSentence) -> ParsedSentence:
    spaces = has_spaces(lexicon(find_language(translator.target)))
    return parse_sentence(sentence.id, translator.translate_analysed(sentence.words), spaces=spaces)


def _tags(translator: BuiltInTranslator, sentence: TaggedSentence) -> TaggedSentence:
    return tag_sentence(sentence.id, translator.translate_analysed(sentence.words))


def _question(translator: BuiltInTranslator, question: Question) -> Question | None:
    passage, links = translator.translate_linked(question.passage)
    locations = (locate_by_links(answer, passage, links) for answer in question.answers)
    answers = tuple(answer for answer in locations if answer is not None)
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
"""Functions that translate an example, by corpus, with None for an example that lost its answers."""
