"""Examples of the built-in languages in translation: labels stay, answers are found again in the passage.

The answer's words lead to theirs in the translation. Where noise dropped them all, or put a word of something
else among them, the answer is lost, and the question left out. Words of sentences carry the tags, entities
and trees that belong to what the translation says: a method that knows no target labels must not look there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.data.examples import Example, ParsedSentence, Question, SentencePair, TaggedSentence
from isogloss.data.languages.family import find_language
from isogloss.data.languages.generating import examples
from isogloss.data.languages.lexicon import lexicon
from isogloss.data.languages.rendering import has_spaces
from isogloss.data.languages.translating import LinkedPlaces, Translator
from isogloss.data.languages.treebank import parsed, tagged


def translated(
    corpus: str, languages: str, split: str, *, noise: float = 0.0, seed: int = 0
) -> Iterator[Example]:
    """Give a split of the first language of ``qaa-qab`` translated into the second, under the same ids.

    ``qaa-qab-qaa`` is translated back. ``noise`` is the translators' rate of errors.
    """
    first, *others = languages.split("-")
    if not others:
        raise ConfigError(f"built-in translations: {languages!r} is no pair; expected two as in qaa-qab.")
    if corpus not in _TRANSLATED:
        raise unknown_name("built-in translations", "corpus", corpus, _TRANSLATED)
    found: Iterable[Example] = examples(corpus, first, split)
    for source, target in zip([first, *others], others, strict=False):
        found = _TRANSLATED[corpus](found, Translator(source, target, noise=noise, seed=seed))
    return iter(found)


def count_lost(languages: str, split: str, *, noise: float = 0.0, seed: int = 0) -> int:
    """Count the questions whose answer is lost in translation."""
    there = sum(1 for _ in examples("squad", languages.partition("-")[0], split))
    return there - sum(1 for _ in translated("squad", languages, split, noise=noise, seed=seed))


def _pairs(pairs: Iterable[Example], translator: Translator) -> Iterator[SentencePair]:
    for pair in pairs:
        if isinstance(pair, SentencePair):
            first, second = translator.translate(pair.first), translator.translate(pair.second)
            yield replace(pair, first=first, second=second)


def _trees(sentences: Iterable[Example], translator: Translator) -> Iterator[ParsedSentence]:
    spaces = has_spaces(lexicon(find_language(translator.target)))
    for sentence in sentences:
        if isinstance(sentence, ParsedSentence):
            yield parsed(sentence.id, translator.translate_analysed(sentence.words), spaces=spaces)


def _tags(sentences: Iterable[Example], translator: Translator) -> Iterator[TaggedSentence]:
    for sentence in sentences:
        if isinstance(sentence, TaggedSentence):
            yield tagged(sentence.id, translator.translate_analysed(sentence.words))


def _questions(questions: Iterable[Example], translator: Translator) -> Iterator[Question]:
    for question in questions:
        if isinstance(question, Question):
            passage, links = translator.translate_linked(question.passage)
            found = (_answer(start, text, passage, links) for start, text in question.answers)
            answers = tuple(answer for answer in found if answer is not None)
            if answers:
                asked = translator.translate(question.question)
                yield replace(question, passage=passage, question=asked, answers=answers)


def _answer(start: int, text: str, passage: str, links: Sequence[LinkedPlaces]) -> tuple[int, str] | None:
    """Find an answer again: from the first to the last word that is linked to it, and to nothing else."""
    stop = start + len(text)
    inside = {target for source, target in links if start <= source[0] and source[1] <= stop}
    outside = {target for source, target in links if source[0] < start or source[1] > stop}
    if not inside:
        return None
    first, last = min(begin for begin, _ in inside), max(end for _, end in inside)
    if any(first <= begin < last for begin, _ in outside - inside):
        return None
    return first, passage[first:last]


_TRANSLATED: Mapping[str, Callable[[Iterable[Example], Translator], Iterator[Example]]] = {
    "xnli": _pairs,
    "pawsx": _pairs,
    "squad": _questions,
    "ud": _trees,
    "wikiann": _tags,
}
"""The corpora that are there in translation."""
