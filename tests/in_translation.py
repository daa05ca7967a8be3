"""Artificial examples with artificial translations: each language respells the words of English."""

import random
from dataclasses import replace

from isogloss.core.run_parts import Optimization, with_fields
from isogloss.data.examples import Choice, ParsedSentence, Question, SentencePair, TaggedSentence
from isogloss.tasks import TASKS
from isogloss.tasks.task import FurtherTask
from isogloss.training.setting import Setting
from made_up import TEXT

WORDS = sorted({word for word in TEXT.split() if word.isalpha()})
LABELS = ("entailment", "neutral", "contradiction")


def spell_words(words, language):
    """Translate words. "en-de-en" is English again, one word poorer."""
    if language == "en":
        return tuple(words)
    if language.count("-") == 2:
        return tuple(words[1:]) or tuple(words)
    shift = sum(ord(value) for value in language)
    return tuple(WORDS[(WORDS.index(word) + shift) % len(WORDS)] for word in reversed(words))


def draw_sentences(count, seed, shortest=2, longest=7):
    rng = random.Random(seed)
    return [tuple(rng.choices(WORDS, k=rng.randint(shortest, longest))) for _ in range(count)]


def pairs(language, count=24, *, seed=0):
    """Pairs with a label determined by the first text's length."""
    firsts = draw_sentences(count, seed)
    seconds = draw_sentences(count, seed + 100)
    return [
        SentencePair(
            id=str(index),
            first=" ".join(spell_words(first_part, language)),
            second=" ".join(spell_words(second, language)),
            label=LABELS[len(first_part) % 3],
        )
        for index, (first_part, second) in enumerate(zip(firsts, seconds, strict=True))
    ]


def sentences(language, count=24, *, seed=0, longest=7):
    tags = {"e": "DET", "t": "NOUN", "s": "NOUN", "y": "ADV", "d": "VERB"}
    return [
        TaggedSentence(
            id=str(index),
            words=spell_words(words, language),
            tags=tuple(tags.get(word[-1], "X") for word in spell_words(words, language)),
        )
        for index, words in enumerate(draw_sentences(count, seed, longest=longest))
    ]


def link_words(examples):
    """Replace the tags of sentences by links of their words to the words they translate.

    Translations have the reverse order of words, in any direction. Back-translations lack the last word.
    """
    return [
        replace(
            example, tags=(), links=tuple((len(example.words) - 1 - n, n) for n in range(len(example.words)))
        )
        for example in examples
    ]


def questions(language, count=24, *, seed=0):
    """The answer is the passage's second word. A few are lost in translation."""
    result = []
    for index, words in enumerate(draw_sentences(count, seed, shortest=4)):
        passage = spell_words(words, language)
        begin = len(passage[0]) + 1
        answers = ((begin, passage[1]),)
        if language == "en" or index % 8:
            result.append(
                Question(
                    id=str(index),
                    passage=" ".join(passage),
                    question=" ".join(passage[:2]),
                    answers=answers,
                )
            )
    return result


def choices(language, count=24, *, seed=0):
    """Items of two to four options. The context's length tells the right one."""
    contexts = draw_sentences(count, seed)
    options = draw_sentences(4 * count, seed + 100)
    return [
        Choice(
            id=str(index),
            context=" ".join(spell_words(context, language)),
            options=tuple(
                " ".join(spell_words(option, language))
                for option in options[4 * index :][: 2 + (index + seed) % 3]
            ),
            label=len(context) % (2 + (index + seed) % 3),
            prompt="cause",
        )
        for index, context in enumerate(contexts)
    ]


def parsed_sentences(language, count=24, *, seed=0):
    """Trees in which each word is the head of the next, with the tags of sentences."""
    return [
        ParsedSentence(
            id=tagged_sentence.id,
            words=tagged_sentence.words,
            tags=tagged_sentence.tags,
            heads=tuple(range(len(tagged_sentence.words))),
            relations=("root", *("dep",) * (len(tagged_sentence.words) - 1)),
        )
        for tagged_sentence in sentences(language, count, seed=seed)
    ]


READ = {
    "nli": pairs,
    "upos": sentences,
    "qa": questions,
    "multiple-choice": choices,
    "parsing": parsed_sentences,
}


def further(task):
    """A task that is learned in addition."""
    return FurtherTask(
        task=TASKS[task],
        corpus="made-up",
        train=lambda language: READ[task](language, 16, seed=3),
        dev=lambda language: READ[task](language, 12, seed=7),
        limit=40,
        overlap=8,
    )


def setting(task, start, folder, *, seed=0, teacher="", target=("de",), **optimization):
    options = {
        "epochs": 1,
        "learning_rate": 1e-3,
        "batch_size": 4,
        "limit": 40,
        "overlap": 8,
        "precision": "float32",
        "checkpoint_every": 3,
    }
    read = READ[task]
    return Setting(
        task=TASKS[task],
        start=str(start),
        train=read,
        dev=lambda language: read(language, 12, seed=7),
        source=("en",),
        target=target,
        optimization=with_fields(Optimization(), **(options | optimization)),
        folder=folder,
        seed=seed,
        teacher=str(teacher),
    )


def without_tags(examples):
    return [replace(example, tags=()) for example in examples]
