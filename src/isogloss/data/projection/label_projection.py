"""Translated examples with their labels: classes stay, answers and tags are located again.

Answers are located by marks, word links or their own translation, tags by word links (``spans``). Questions
without an answer, and sentences whose entities or tags were not located, are left out and reported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from typing import Any, Literal, NamedTuple, cast

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.tag_schemes import are_bio
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
from isogloss.data.projection.words import (
    MARKS,
    Answer,
    SpanLink,
    WordLinks,
    by_links,
    by_text,
    detokenize,
    marked,
    projected_tags,
    span_links,
    tokenize,
    unmarked,
    word_links,
)


class Translated(NamedTuple):
    """The translation of one text."""

    text: str
    """In one line; empty for an empty text."""
    cuts: int = 0
    """Number of cuts in a text too long for the model."""
    words: tuple[str, ...] | None = None
    """The words of the translation, where the translator knows them; else ``tokenize`` finds them."""
    links: tuple[SpanLink, ...] | None = None
    """Word links, where the translator knows them."""


TranslateTexts = Callable[[Iterable[str]], Iterable[Translated]]
"""One translation for each text, in order."""

FindLinks = Callable[[Sequence[Translation]], Iterable[Iterable[tuple[int, int]]]]
"""From texts and translations to the 0-based links between words (given ones, else ``tokenize``'s)."""


Way = Literal["links", "marks", "alignment", "alone"]
WAYS: tuple[Way, ...] = ("links", "marks", "alignment", "alone")

TagWay = Literal["links", "alignment"]
TAG_WAYS: tuple[TagWay, ...] = ("links", "alignment")


class TranslatedExamples(NamedTuple):
    """Translated examples, in order, and what was lost."""

    examples: list[Example]
    lost: tuple[str, ...] = ()
    """Ids of the questions whose answer, and of the sentences whose entities or tags, were not located."""
    cuts: int = 0
    """Number of cuts in texts too long for the translator."""


@dataclass(frozen=True, kw_only=True)
class Projection:
    """How labels are located in translations.

    Ways to find answers are tried in order on those still missing. Without any way, questions lose their
    answers, and nothing in the translation depends on them, as it must be where a model is tested.
    """

    answers: tuple[Way, ...] = ("marks", "alone")
    """links: by the translator's own word links; marks: by marks round the answer, which the translation
    keeps; alignment: by ``find_links``; alone: the answer's own translation stands in the passage's once."""
    tags: TagWay | None = None
    """links or alignment; None leaves the words of translations without tags."""
    links: TagWay | None = None
    """How words of sentences are linked to those of their translations, which then keep the links: links (the
    translator's own) or alignment; None keeps none."""
    find_links: FindLinks | None = None

    def __post_init__(self) -> None:
        """Refuse unknown ways, and alignment without an aligner."""
        check_named("answers", "way to find them again", WAYS, *self.answers)
        for name, way in (("tags", self.tags), ("links", self.links)):
            if way is not None:
                check_named(name, "way to find them again", TAG_WAYS, way)
        if "alignment" in (*self.answers, self.tags, self.links) and self.find_links is None:
            raise ConfigError("alignment finds labels and links with a word aligner, and none was given.")


def translate_examples(
    examples: Iterable[Example],
    translate: TranslateTexts,
    *,
    projection: Projection | None = None,
    language: str = "",
) -> TranslatedExamples:
    """Translate examples under the same ids.

    Texts, pairs and choices keep their labels. A Translation becomes its first text and that one's
    translation. Tagged and parsed sentences become words, with tags where these are projected and links where
    these are kept. ``language`` is the target, for questions that state the language of their passage.
    """
    originals, chosen = list(examples), projection or Projection()
    questions = [example for example in originals if isinstance(example, Question)]
    located = _Questions(questions, translate, chosen, language)
    others = [example for example in originals if not isinstance(example, Question)]
    texts = [list(_PARTS[type(example)].texts(example)) for example in others]
    translated = iter(translate(text for parts in texts for text in parts))
    by_original: dict[int, Example | None] = {
        id(example): located.examples.get(example.id) for example in questions
    }
    cuts, sentences = located.cuts, list[_Sentence]()
    for example, parts in zip(others, texts, strict=True):
        mine = [next(translated) for _ in parts]
        cuts += sum(text.cuts for text in mine)
        rebuilt = by_original[id(example)] = _PARTS[type(example)].rebuild(example, mine)
        if isinstance(example, TaggedSentence | ParsedSentence):
            sentences.append(_Sentence(example, cast(TaggedSentence, rebuilt), parts[0], mine[0]))
    by_original |= _with_words_labelled(sentences, chosen)
    unlabelled = [
        sentence.original.id for sentence in sentences if by_original[id(sentence.original)] is None
    ]
    lost = (*located.lost, *unlabelled)
    results = [by_original[id(example)] for example in originals]
    return TranslatedExamples([example for example in results if example is not None], lost, cuts)


class _Sentence(NamedTuple):
    """A sentence of words, its translation, and both as running text."""

    original: TaggedSentence | ParsedSentence
    words: TaggedSentence
    text: str
    translated: Translated


def _with_words_labelled(sentences: Sequence[_Sentence], projection: Projection) -> dict[int, Example | None]:
    """Return each translated sentence with its tags and links, by the original; None without its tags."""
    ways = dict.fromkeys(way for way in (projection.tags, projection.links) if way is not None)
    if not ways:
        return {}
    links = {way: list(_links(sentences, way, projection.find_links)) for way in ways}
    bio = are_bio(tag for sentence in sentences for tag in sentence.original.tags)
    labelled = dict[int, Example | None]()
    for number, sentence in enumerate(sentences):
        words: TaggedSentence | None = sentence.words
        if projection.tags is not None:
            tags = projected_tags(
                sentence.original.tags, len(sentence.words.words), links[projection.tags][number], bio=bio
            )
            words = None if tags is None else replace(sentence.words, tags=tags)
        if words is not None and projection.links is not None:
            words = replace(words, links=tuple(links[projection.links][number]))
        labelled[id(sentence.original)] = words
    return labelled


def _links(sentences: Sequence[_Sentence], way: TagWay, find_links: FindLinks | None) -> Iterable[WordLinks]:
    """Return the links between the words of each sentence and those of its translation."""
    if way == "alignment" and find_links is not None:
        pairs = [
            Translation(
                id=str(number),
                first=sentence.text,
                second=sentence.translated.text,
                words=(sentence.original.words, sentence.words.words),
            )
            for number, sentence in enumerate(sentences)
        ]
        return map(list, find_links(pairs))
    return map(_own_links, sentences)


def _own_links(sentence: _Sentence) -> WordLinks:
    """Return the translator's links between places in both texts as links of words."""
    texts = (sentence.original.words, sentence.text), (sentence.words.words, sentence.translated.text)
    return word_links(*texts, sentence.translated.links or ())


def translate_inputs(examples: Iterable[Example], translate: TranslateTexts) -> Iterator[Example]:
    """Translate a stream of examples as a model's inputs, without their labels.

    A text that the previous example has too (a passage of several questions) is translated once. Sentences
    keep the translator's own word links.
    """
    originals, copies = tee(examples)
    new = (text for _, texts in _with_new_texts(copies) for text in texts)
    translations, translated = iter(translate(new)), dict[str, Translated]()
    for example, texts in _with_new_texts(originals):
        translated |= {text: next(translations) for text in texts}
        parts = _PARTS[type(example)]
        translated = {text: translated[text] for text in parts.texts(example)}
        mine = [translated[text] for text in parts.texts(example)]
        rebuilt = parts.rebuild(example, mine)
        if isinstance(example, TaggedSentence | ParsedSentence) and mine[0].links is not None:
            words = cast(TaggedSentence, rebuilt)
            links = _own_links(_Sentence(example, words, parts.texts(example)[0], mine[0]))
            rebuilt = replace(words, links=tuple(links))
        yield rebuilt


def texts_of(example: Example) -> Sequence[str]:
    """Return the texts of an example; words are joined to one as running text."""
    return _PARTS[type(example)].texts(example)


def _with_new_texts(examples: Iterable[Example]) -> Iterator[tuple[Example, list[str]]]:
    """Yield each example with those of its texts that the previous one lacks."""
    previous: Sequence[str] = ()
    for example in examples:
        texts = texts_of(example)
        yield example, [text for text in dict.fromkeys(texts) if text not in previous]
        previous = texts


class _Parts(NamedTuple):
    """The texts of an example to translate, and how to rebuild it from translations."""

    texts: Callable[[Any], Sequence[str]]
    rebuild: Callable[[Any, Sequence[Translated]], Example]


def _words(sentence: TaggedSentence | ParsedSentence, translated: Sequence[Translated]) -> TaggedSentence:
    """Return the words of the translation, still without tags."""
    words = translated[0].words
    words = tokenize(translated[0].text) if words is None else words
    return TaggedSentence(id=sentence.id, words=words, tags=())


def _written(sentence: TaggedSentence | ParsedSentence) -> Sequence[str]:
    comment = text_comment(sentence) if isinstance(sentence, ParsedSentence) else ""
    return [comment or detokenize(sentence.words)]


def _asked(question: Question, translated: Sequence[Translated]) -> Question:
    wording, passage = translated
    return replace(
        question, question=wording.text, passage=passage.text, answers=(), language="", repaired=""
    )


_OF_WORDS = _Parts(_written, _words)
_PARTS: Mapping[type, _Parts] = {
    SentencePair: _Parts(
        lambda example: [example.first, example.second],
        lambda example, texts: replace(example, first=texts[0].text, second=texts[1].text),
    ),
    Choice: _Parts(
        lambda example: [example.context, *filter(None, [example.question]), *example.options],
        lambda example, texts: replace(
            example,
            context=texts[0].text,
            question=texts[1].text if example.question else "",
            options=tuple(text.text for text in texts[-len(example.options) :]),
        ),
    ),
    LabelledText: _Parts(
        lambda example: [example.text], lambda example, texts: replace(example, text=texts[0].text)
    ),
    TextLine: _Parts(
        lambda example: [example.text], lambda example, texts: replace(example, text=texts[0].text)
    ),
    Translation: _Parts(
        lambda example: [example.first],
        lambda example, texts: replace(example, second=texts[0].text, links=None, possible=(), words=None),
    ),
    TaggedSentence: _OF_WORDS,
    ParsedSentence: _OF_WORDS,
    Question: _Parts(lambda example: [example.question, example.passage], _asked),
}


Located = tuple[Question, str, Iterable[Answer | None]]
"""A question, its translated passage, and its answers there; None for an answer that was not located."""


class _Questions:
    """Translates passages and questions, then locates answers, way by way."""

    def __init__(
        self, questions: list[Question], translate: TranslateTexts, projection: Projection, language: str
    ) -> None:
        self.translate, self.find_links = translate, projection.find_links
        self.cuts = 0
        self.passages: dict[str, Translated] = {}
        self.passage: dict[str, str] = {}
        self.answers: dict[str, tuple[Answer, ...]] = {}
        if not projection.answers:
            for question, translated in self._unmarked(questions):
                self.passage[question.id], self.answers[question.id] = translated.text, ()
        for way in projection.answers:
            if missing := self._missing(questions):
                for question, passage, located in self._ways[way](self, missing):
                    if answers := tuple(dict.fromkeys(answer for answer in located if answer is not None)):
                        self.passage[question.id], self.answers[question.id] = passage, answers
        wordings = self._texts([question.question for question in questions if question.id in self.answers])
        self.lost = tuple(question.id for question in self._missing(questions))
        self.examples = {
            question.id: replace(
                question,
                passage=self.passage[question.id],
                question=wordings[question.question].text,
                answers=self.answers[question.id],
                language=language if question.language else "",
                repaired="",
            )
            for question in questions
            if question.id in self.answers
        }

    def _missing(self, questions: Iterable[Question]) -> list[Question]:
        return [question for question in questions if question.id not in self.answers]

    def _texts(self, texts: Iterable[str]) -> dict[str, Translated]:
        """Translate every text once."""
        distinct = list(dict.fromkeys(texts))
        by_text = dict(zip(distinct, self.translate(distinct), strict=True))
        self.cuts += sum(translation.cuts for translation in by_text.values())
        return by_text

    def _unmarked(self, questions: Sequence[Question]) -> list[tuple[Question, Translated]]:
        """Return each question with its translated passage without marks; a passage is translated once."""
        passages = (question.passage for question in questions)
        self.passages |= self._texts(passage for passage in passages if passage not in self.passages)
        return [(question, self.passages[question.passage]) for question in questions]

    def _by_own_links(self, questions: list[Question]) -> Iterator[Located]:
        for question, (text, _, _, links) in self._unmarked(questions):
            if links is not None:
                yield question, text, [by_links(answer, text, links) for answer in question.answers]

    def _by_marks(self, questions: list[Question]) -> Iterator[Located]:
        """Locate answers by each kind of marks in turn; the passage is the unmarked translation."""
        for mark in MARKS:
            missing = self._missing(questions)
            ways = {
                question.id: marked(question.passage, question.answers[0], mark)
                for question in missing
                if question.answers
            }
            texts = self._texts(text for text in ways.values() if text is not None)
            for question in missing:
                text = ways.get(question.id)
                located = None if text is None else unmarked(texts[text].text, mark)
                if located is not None:
                    yield question, located[0], [located[1]]

    def _by_alignment(self, questions: list[Question]) -> Iterator[Located]:
        if self.find_links is None:
            return
        translated = self._unmarked(questions)
        pairs = [
            Translation(id=str(number), first=passage, second=translation.text)
            for number, (passage, translation) in enumerate(self.passages.items())
        ]
        links = {
            pair.first: span_links(pair.first, pair.second, linked)
            for pair, linked in zip(pairs, self.find_links(pairs), strict=True)
        }
        for question, (text, *_) in translated:
            spans = links[question.passage]
            yield question, text, [by_links(answer, text, spans) for answer in question.answers]

    def _alone(self, questions: list[Question]) -> Iterator[Located]:
        translated = self._unmarked(questions)
        texts = self._texts(text for question in questions for _, text in question.answers)
        for question, (passage, *_) in translated:
            yield question, passage, [by_text(texts[text].text, passage) for _, text in question.answers]

    _ways: Mapping[str, Callable[["_Questions", list[Question]], Iterator[Located]]] = {
        "links": _by_own_links,
        "marks": _by_marks,
        "alignment": _by_alignment,
        "alone": _alone,
    }
