"""Translate examples with their labels: classes are kept, answers and tags are located in the translation.

Answers are located by marks, word links or their own translation, tags by word links (``words``). Questions
whose answer, and sentences whose entities or tags, were not located are dropped and reported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, cast

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.tag_schemes import are_bio
from isogloss.data.examples import (
    Example,
    ParsedSentence,
    Question,
    TaggedSentence,
    Translation,
)
from isogloss.data.projection.example_texts import (
    Translated,
    TranslatedSentence,
    TranslateTexts,
    own_links,
    texts_of,
    with_texts,
)
from isogloss.data.projection.words import Answer, WordLinks, locate_by_links, project_tags
from isogloss.features.translation.locating import (
    MARKS,
    add_marks,
    locate_by_text,
    remove_marks,
    span_links,
)

FindLinks = Callable[[Sequence[Translation]], Iterable[Iterable[tuple[int, int]]]]
"""Function from texts and translations to the 0-based links between their words.

Words are the stated ones, or otherwise ``tokenize``'s.
"""


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
    """Methods that locate labels in translations.

    Ways to find answers are tried in order on questions without an answer so far. Without any way, questions
    lose their answers. Then the translation does not depend on the answers, as test inputs require.
    """

    answers: tuple[Way, ...] = ("marks", "alone")
    """Ways to locate answers. links: the translator's word links. marks: marks around the answer, which the
    translation keeps. alignment: ``find_links``. alone: the only occurrence of the answer's own
    translation in the translated passage."""
    tags: TagWay | None = None
    """Word links that project tags: links (the translator's) or alignment. Default: translations have no
    tags."""
    links: TagWay | None = None
    """Word links between sentences and translations, stored with these: links (the translator's) or
    alignment. Default: none are stored."""
    find_links: FindLinks | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError for unknown ways, and for alignment without an aligner."""
        check_named("answers", "way to find them again", WAYS, *self.answers)
        for name, way in (("tags", self.tags), ("links", self.links)):
            if way is not None:
                check_named(name, "way to find them again", TAG_WAYS, way)
        if "alignment" in (*self.answers, self.tags, self.links) and self.find_links is None:
            raise ConfigError("alignment needs a word aligner (find_links). Give one, or choose other ways.")


def translate_examples(
    examples: Iterable[Example],
    translate: TranslateTexts,
    *,
    projection: Projection | None = None,
    language: str = "",
) -> TranslatedExamples:
    """Translate examples under the same ids.

    Texts, pairs and choices keep their labels. A Translation becomes its first text with a new translation.
    Tagged and parsed sentences become words, with tags if they are projected and with links if they are
    stored. ``language`` is the target language, for questions that state the language of their passage.
    """
    originals = list(examples)
    projection = projection or Projection()
    questions = [example for example in originals if isinstance(example, Question)]
    question_results = _Questions(questions, translate, projection, language)
    non_questions = [example for example in originals if not isinstance(example, Question)]
    texts = [list(texts_of(example)) for example in non_questions]
    translations = iter(translate(text for parts in texts for text in parts))
    results: dict[int, Example | None] = {
        id(example): question_results.examples.get(example.id) for example in questions
    }
    cuts = question_results.cuts
    sentences = list[TranslatedSentence]()
    for example, parts in zip(non_questions, texts, strict=True):
        part_translations = [next(translations) for _ in parts]
        cuts += sum(text.cuts for text in part_translations)
        result = with_texts(example, part_translations)
        results[id(example)] = result
        if isinstance(example, TaggedSentence | ParsedSentence):
            words = cast(TaggedSentence, result)
            sentences.append(TranslatedSentence(example, words, parts[0], part_translations[0]))
    results |= _label_words(sentences, projection)
    lost_sentences = [
        sentence.original.id for sentence in sentences if results[id(sentence.original)] is None
    ]
    lost_ids = (*question_results.lost, *lost_sentences)
    ordered_results = [results[id(example)] for example in originals]
    return TranslatedExamples([example for example in ordered_results if example is not None], lost_ids, cuts)


def _label_words(
    sentences: Sequence[TranslatedSentence], projection: Projection
) -> dict[int, Example | None]:
    """Return each translated sentence with its tags and links, by the id() of its original.

    None replaces sentences whose tags cannot be projected.
    """
    ways = dict.fromkeys(way for way in (projection.tags, projection.links) if way is not None)
    if not ways:
        return {}
    links = {way: list(_links(sentences, way, projection.find_links)) for way in ways}
    bio = are_bio(tag for sentence in sentences for tag in sentence.original.tags)
    results = dict[int, Example | None]()
    for index, sentence in enumerate(sentences):
        words: TaggedSentence | None = sentence.words
        if projection.tags is not None:
            tags = project_tags(
                sentence.original.tags, len(sentence.words.words), links[projection.tags][index], bio=bio
            )
            words = None if tags is None else replace(sentence.words, tags=tags)
        if words is not None and projection.links is not None:
            words = replace(words, links=tuple(links[projection.links][index]))
        results[id(sentence.original)] = words
    return results


def _links(
    sentences: Sequence[TranslatedSentence], way: TagWay, find_links: FindLinks | None
) -> Iterable[WordLinks]:
    """Yield the links between the words of each sentence and the words of its translation."""
    if way == "alignment" and find_links is not None:
        pairs = [
            Translation(
                id=str(index),
                first=sentence.text,
                second=sentence.translated.text,
                words=(sentence.original.words, sentence.words.words),
            )
            for index, sentence in enumerate(sentences)
        ]
        return (list(links) for links in find_links(pairs))
    return (own_links(sentence) for sentence in sentences)


Located = tuple[Question, str, Iterable[Answer | None]]
"""A question, its translated passage, and its answers there, with None for answers not located."""


class _Questions:
    """Translated questions, whose answers are located way by way."""

    def __init__(
        self, questions: list[Question], translate: TranslateTexts, projection: Projection, language: str
    ) -> None:
        self.translate = translate
        self.find_links = projection.find_links
        self.cuts = 0
        self.passages: dict[str, Translated] = {}
        self.passage: dict[str, str] = {}
        self.answers: dict[str, tuple[Answer, ...]] = {}
        if not projection.answers:
            for question, translation in self._translate_passages(questions):
                self.passage[question.id] = translation.text
                self.answers[question.id] = ()
        for way in projection.answers:
            if missing := self._missing(questions):
                for question, passage, locations in self._ways[way](self, missing):
                    if answers := tuple(dict.fromkeys(answer for answer in locations if answer is not None)):
                        self.passage[question.id] = passage
                        self.answers[question.id] = answers
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
        translations = dict(zip(distinct, self.translate(distinct), strict=True))
        self.cuts += sum(translation.cuts for translation in translations.values())
        return translations

    def _translate_passages(self, questions: Sequence[Question]) -> list[tuple[Question, Translated]]:
        """Return each question with its translated passage without marks.

        Every passage is translated once.
        """
        passages = (question.passage for question in questions)
        self.passages |= self._texts(passage for passage in passages if passage not in self.passages)
        return [(question, self.passages[question.passage]) for question in questions]

    def _locate_by_own_links(self, questions: list[Question]) -> Iterator[Located]:
        for question, (text, _, _, links) in self._translate_passages(questions):
            if links is not None:
                yield question, text, [locate_by_links(answer, text, links) for answer in question.answers]

    def _locate_by_marks(self, questions: list[Question]) -> Iterator[Located]:
        """Locate the first answer of each question by each kind of marks in turn.

        The passage is the translation with the marks removed.
        """
        for mark in MARKS:
            missing = self._missing(questions)
            marked_passages = {
                question.id: add_marks(question.passage, question.answers[0], mark)
                for question in missing
                if question.answers
            }
            texts = self._texts(text for text in marked_passages.values() if text is not None)
            for question in missing:
                text = marked_passages.get(question.id)
                location = None if text is None else remove_marks(texts[text].text, mark)
                if location is not None:
                    passage, answer = location
                    yield question, passage, [answer]

    def _locate_by_alignment(self, questions: list[Question]) -> Iterator[Located]:
        if self.find_links is None:
            return
        translations = self._translate_passages(questions)
        pairs = [
            Translation(id=str(index), first=passage, second=translation.text)
            for index, (passage, translation) in enumerate(self.passages.items())
        ]
        links = {
            pair.first: span_links(pair.first, pair.second, word_pairs)
            for pair, word_pairs in zip(pairs, self.find_links(pairs), strict=True)
        }
        for question, (text, *_) in translations:
            spans = links[question.passage]
            yield question, text, [locate_by_links(answer, text, spans) for answer in question.answers]

    def _locate_by_text(self, questions: list[Question]) -> Iterator[Located]:
        translations = self._translate_passages(questions)
        texts = self._texts(text for question in questions for _, text in question.answers)
        for question, (passage, *_) in translations:
            yield (
                question,
                passage,
                [locate_by_text(texts[text].text, passage) for _, text in question.answers],
            )

    _ways: Mapping[str, Callable[["_Questions", list[Question]], Iterator[Located]]] = {
        "links": _locate_by_own_links,
        "marks": _locate_by_marks,
        "alignment": _locate_by_alignment,
        "alone": _locate_by_text,
    }
