"""Texts of examples, and examples with these texts in translation, as inputs of a model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import tee
from typing import Any, NamedTuple, cast

from isogloss.data.examples import (
    Choice,
    Example,
    LabelledText,
    ParsedSentence,
    Question,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
)
from isogloss.data.formats.conllu import text_comment
from isogloss.data.projection.words import SpanLink, WordLinks, detokenize, tokenize, word_links


class Translated(NamedTuple):
    """The translation of one text."""

    text: str
    """Text on one line, or "" for an empty text."""
    cuts: int = 0
    """Number of cuts in a text too long for the model."""
    words: tuple[str, ...] | None = None
    """Words of the translation, if the translator knows them. Otherwise ``tokenize`` finds them."""
    links: tuple[SpanLink, ...] | None = None
    """Links between words of text and translation, each as two spans of characters (start, end), if the
    translator knows them."""


TranslateTexts = Callable[[Iterable[str]], Iterable[Translated]]
"""One translation for each text, in order."""


def translate_inputs(examples: Iterable[Example], translate: TranslateTexts) -> Iterator[Example]:
    """Translate a stream of examples as a model's inputs, without their labels.

    A text shared with the previous example (a passage with several questions) is translated once. Sentences
    keep the translator's own word links.
    """
    originals, copies = tee(examples)
    new_texts = (text for _, texts in _with_new_texts(copies) for text in texts)
    translations = iter(translate(new_texts))
    cache = dict[str, Translated]()
    for example, texts in _with_new_texts(originals):
        cache |= {text: next(translations) for text in texts}
        parts = _PARTS[type(example)]
        cache = {text: cache[text] for text in parts.texts(example)}
        part_translations = [cache[text] for text in parts.texts(example)]
        result = parts.rebuild(example, part_translations)
        if isinstance(example, TaggedSentence | ParsedSentence) and part_translations[0].links is not None:
            words = cast(TaggedSentence, result)
            links = own_links(
                TranslatedSentence(example, words, parts.texts(example)[0], part_translations[0])
            )
            result = replace(words, links=tuple(links))
        yield result


def texts_of(example: Example) -> Sequence[str]:
    """Return the texts of an example, with words joined to running text."""
    return _PARTS[type(example)].texts(example)


def with_texts(example: Example, translations: Sequence[Translated]) -> Example:
    """Return an example with its texts in translation, in the order of ``texts_of``.

    Texts, pairs and choices keep their labels. Questions lose their answers, sentences their tags. A
    Translation becomes its first text with a new translation.
    """
    return _PARTS[type(example)].rebuild(example, translations)


class TranslatedSentence(NamedTuple):
    """A sentence of words, its translation, and both as running text."""

    original: TaggedSentence | ParsedSentence
    words: TaggedSentence
    text: str
    translated: Translated


def own_links(sentence: TranslatedSentence) -> WordLinks:
    """Return the translator's links between places in both texts as links between words."""
    sides = (sentence.original.words, sentence.text), (sentence.words.words, sentence.translated.text)
    return word_links(*sides, sentence.translated.links or ())


def _with_new_texts(examples: Iterable[Example]) -> Iterator[tuple[Example, list[str]]]:
    """Yield each example with its texts that the previous example lacks."""
    previous: Sequence[str] = ()
    for example in examples:
        texts = texts_of(example)
        yield example, [text for text in dict.fromkeys(texts) if text not in previous]
        previous = texts


class _Parts(NamedTuple):
    """Functions that return an example's texts, and rebuild the example from their translations."""

    texts: Callable[[Any], Sequence[str]]
    rebuild: Callable[[Any, Sequence[Translated]], Example]


def _words(sentence: TaggedSentence | ParsedSentence, translations: Sequence[Translated]) -> TaggedSentence:
    """Return the words of the translation, without tags."""
    words = translations[0].words
    words = tokenize(translations[0].text) if words is None else words
    return TaggedSentence(id=sentence.id, words=words, tags=())


def _sentence_text(sentence: TaggedSentence | ParsedSentence) -> Sequence[str]:
    comment = text_comment(sentence) if isinstance(sentence, ParsedSentence) else ""
    return [comment or detokenize(sentence.words)]


def _rebuild_question(question: Question, translations: Sequence[Translated]) -> Question:
    wording, passage = translations
    return replace(
        question, question=wording.text, passage=passage.text, answers=(), language="", repaired=""
    )


def _pair_texts(pair: SentencePair) -> Sequence[str]:
    return [pair.first, pair.second]


def _rebuild_pair(pair: SentencePair, translations: Sequence[Translated]) -> SentencePair:
    first, second = translations
    return replace(pair, first=first.text, second=second.text)


def _choice_texts(choice: Choice) -> Sequence[str]:
    question = [choice.question] if choice.question else []
    return [choice.context, *question, *choice.options]


def _rebuild_choice(choice: Choice, translations: Sequence[Translated]) -> Choice:
    return replace(
        choice,
        context=translations[0].text,
        question=translations[1].text if choice.question else "",
        options=tuple(translation.text for translation in translations[-len(choice.options) :]),
    )


def _single_text(example: LabelledText | TextLine) -> Sequence[str]:
    return [example.text]


def _rebuild_text(example: Any, translations: Sequence[Translated]) -> Any:
    return replace(example, text=translations[0].text)


def _source_text(pair: Translation) -> Sequence[str]:
    return [pair.first]


def _rebuild_translation(pair: Translation, translations: Sequence[Translated]) -> Translation:
    return replace(pair, second=translations[0].text, links=None, possible=(), words=None)


def _question_texts(question: Question) -> Sequence[str]:
    return [question.question, question.passage]


_SENTENCE_PARTS = _Parts(_sentence_text, _words)
_TEXT_PARTS = _Parts(_single_text, _rebuild_text)
_PARTS: Mapping[type, _Parts] = {
    SentencePair: _Parts(_pair_texts, _rebuild_pair),
    Choice: _Parts(_choice_texts, _rebuild_choice),
    LabelledText: _TEXT_PARTS,
    TextLine: _TEXT_PARTS,
    Translation: _Parts(_source_text, _rebuild_translation),
    TaggedSentence: _SENTENCE_PARTS,
    ParsedSentence: _SENTENCE_PARTS,
    Question: _Parts(_question_texts, _rebuild_question),
}
