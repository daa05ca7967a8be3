"""Examples of every task, and scores from which each task decodes exactly its gold answers."""

from dataclasses import replace

import numpy as np
import torch

from isogloss.data.examples import (
    Choice,
    LabelledText,
    ParsedSentence,
    Question,
    SentencePair,
    TaggedSentence,
)
from isogloss.features.parsing.task import PARSING
from isogloss.features.question_answering.task import AnswerMark
from isogloss.metrics.labels import repair
from isogloss.tasks import OF_ANY_LABELS, TASKS, find_task
from isogloss.tasks.classification import PAIR
from isogloss.tasks.tagging import UPOS

SMALL = replace(PARSING, arc_dim=16, relation_dim=8)
"""As PARSING, fast to learn."""

LABELS = {
    "word-tagging": ("NOUN", "VERB", "X"),
    "span-tagging": ("O", "B-DATE", "I-DATE"),
    "lemmas": ("?", "lower |", "title |", "lower | -1", "title | -1"),
}
SMALL_TASKS = {
    **TASKS,
    "parsing": SMALL,
    **{name: find_task(name, LABELS.get(name, ("sport", "news", "law"))) for name in OF_ANY_LABELS},
}
WORDS = ("the", "cat", "happened", "unbelievable", "xyz", "Anna", "slowly", "casings", "\u200b")
RELATIONS = tuple(label for label in PARSING.labels if label != "root")
TEXTS = ("the cat sat on the mat", "a dog ran over hills", "Anna saw Rome", "things happened slowly")
PASSAGE = "the cat sat on the mat . a dog ran over hills and saw Anna Lee in Rome Italy ."
ANSWERS = ("Anna Lee", "the mat", "a dog", "Rome Italy", "sat", "hills", "Rome", "the cat")


def make_tagged(words, tags=(), index=0):
    return TaggedSentence(id=f"s{index}", words=tuple(words), tags=tuple(tags))


def make_parsed(words, heads=(), relations=(), *, number=0, tags=()):
    return ParsedSentence(
        id=f"s{number}", words=tuple(words), tags=tuple(tags), heads=tuple(heads), relations=tuple(relations)
    )


def pair(first_text, second, label="", index=0):
    return SentencePair(id=f"p{index}", first=first_text, second=second, label=label)


def question(answer="", *, passage=PASSAGE, asked="what happened", number=0):
    answers = ((passage.index(answer), answer),) if answer else ()
    return Question(id=f"q{number}", passage=passage, question=asked, answers=answers)


def choice(context, options, label=None, index=0, **arguments):
    return Choice(id=f"c{index}", context=context, options=tuple(options), label=label, **arguments)


def random_tree(size, rng):
    """Attach each word, in random order, to one attached before."""
    order = (rng.permutation(size) + 1).tolist()
    heads = {word: order[rng.integers(n)] if n else 0 for n, word in enumerate(order)}
    relations = ["root" if heads[word] == 0 else str(rng.choice(RELATIONS)) for word in range(1, size + 1)]
    return [heads[word] for word in range(1, size + 1)], relations


def random_parsed(size, *, seed=0, number=0):
    rng = np.random.default_rng([seed, number, size])
    words, tags = ([str(item) for item in rng.choice(items, size)] for items in (WORDS, UPOS.labels))
    return make_parsed(words, *random_tree(size, rng), number=number, tags=tags)


def random_tagged(task, size, *, index=0):
    rng = np.random.default_rng([index, size])
    words, tags = ([str(item) for item in rng.choice(items, size)] for items in (WORDS, task.labels))
    if task.name == "lemmas":
        tags = [word[: -1 if value % 2 else None] or word for value, word in enumerate(words)]
    return make_tagged(words, repair(tags) if task.metric == "span_f1" else tags, index)


def examples_of(name, *, size=6):
    """Give eight examples of a task."""
    task = SMALL_TASKS[name]
    if task.labels_are == "word":
        return [random_tagged(task, size, index=n) for n in range(8)]
    if task.labels_are == "tree":
        return [random_parsed(size, seed=1, number=n) for n in range(8)]
    if task.labels_are == "span":
        return [question(a, asked=f"saw {a.lower()} there", number=n) for n, a in enumerate(ANSWERS)]
    if task.labels_are == "option":  # Two, three or four options each, the right one at any place.
        return [
            choice(TEXTS[n % 4], (*TEXTS, *WORDS)[n : n + 2 + n % 3], n % (2 + n % 3), n, prompt="cause")
            for n in range(8)
        ]
    labels = [label_of(task, n) for n in range(8)]
    if task.texts == PAIR:
        return [pair(TEXTS[n % 4], TEXTS[(3 * n + n // 4) % 4], label, n) for n, label in enumerate(labels)]
    return [
        LabelledText(id=f"t{n}", text=f"{WORDS[n]} {TEXTS[n % 4]}", label=label)
        for n, label in enumerate(labels)
    ]


def label_of(task, index):
    """Give one label, each set of labels in turn, or a number."""
    if task.metric == "micro_f1":
        return tuple(label for place, label in enumerate(task.labels) if index >> place & 1)
    return task.labels[index % len(task.labels)] if task.metric == "accuracy" else index / 4 - 1


def perfect(task, rows, examples):
    """Give the scores of each row whose best answers are the gold ones."""
    if task.labels_are == "tree":
        return [_tree_scores(task, row, examples[row.example]) for row in rows]
    if task.labels_are == "span":
        return [span_scores(row) for row in rows]
    if any(row.soft is not None for row in rows):  # Which labels hold, or a number.
        return [row.soft - (task.metric == "micro_f1") / 2 for row in rows]
    width = max((len(row.options) for row in rows), default=0) or len(task.labels)
    return [torch.eye(width)[list(row.gold)] for row in rows]


def span_scores(row):
    marks = torch.tensor(list(row.gold))
    return torch.stack((marks & AnswerMark.START, (marks & AnswerMark.END) // 2), dim=1) * 10.0


def _tree_scores(task, row, example):
    """Score arcs as far as the row goes, with some impossible candidates more, as in a longer batch."""
    count = len(row.words)
    scores = torch.zeros(count, count + 3, 2)
    scores[:, count + 1 :, 0] = -torch.inf
    for word, head, relation in zip(row.words, example.heads, example.relations, strict=False):
        if head <= count:
            scores[word, head] = torch.tensor([9.0, task.labels.index(relation)])
    return scores
