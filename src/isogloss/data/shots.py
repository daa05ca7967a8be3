"""Few-shot examples: a choice of k that depends on the seed and the examples' ids alone.

Every example has a rank, drawn from the seed and its id; the shots are the first in rank. So the order in
which files are read decides nothing, the shots of k = 5 are among those of k = 10, and corpora that are
parallel (equal ids in all languages) give the same shots in every language.

A text's lines are chosen in one pass, with the chosen ones alone in memory.
"""

import heapq
import random
from collections import Counter
from collections.abc import Iterable
from typing import Literal, TypeVar

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.seeds import derive
from isogloss.data.examples import Example, SentencePair

Kind = TypeVar("Kind", bound=Example)
Per = Literal["all", "label"]


def shots(examples: Iterable[Kind], count: int, *, seed: int, per: Per = "all") -> list[Kind]:
    """Choose ``count`` examples of all, or of each label, first in rank first; DataError if there are fewer.

    With ``per="label"`` every label that occurs counts, and examples must have one label each (pairs).
    """
    if count < 0:
        raise ConfigError(f"shots: {count} examples; expected 0 or more. Give how many to choose.")
    ranked = sorted(examples, key=lambda example: (derive(seed, "shots", example.id), example.id))
    if per == "all":
        if len(ranked) < count:
            raise _too_few(count, len(ranked), "there are")
        return ranked[:count]
    labels = [_label(example) for example in ranked]
    for label, there in sorted(Counter(labels).items()):
        if there < count:
            raise _too_few(count, there, f"label {label!r} has")
    taken: Counter[str] = Counter()
    chosen = []
    for example, label in zip(ranked, labels, strict=True):
        if taken[label] < count:
            taken[label] += 1
            chosen.append(example)
    return chosen


def _label(example: Example) -> str:
    if isinstance(example, SentencePair) and example.label:
        return example.label
    raise DataError(
        f"shots: example {example.id!r} ({type(example).__name__}) has no label of its own; expected pairs "
        f"with labels. Choose shots of all examples instead of each label (per = 'all')."
    )


def _too_few(wanted: int, there: int, where: str) -> DataError:
    return DataError(f"shots: {wanted} examples wanted, but {where} {there}. Choose at most {there}.")


def subsample(lines: Iterable[str], count: int, *, seed: int) -> list[str]:
    """Return ``count`` (1 or more) lines at random (all where there are fewer), in their order.

    Every line is given a random number, and the smallest are taken: of one seed, a smaller choice is part of
    a larger one.
    """
    draw = random.Random(seed)
    kept: list[tuple[float, int, str]] = []
    for number, line in enumerate(lines):
        one = (-draw.random(), number, line)
        if len(kept) < count:
            heapq.heappush(kept, one)
        elif one > kept[0]:
            heapq.heapreplace(kept, one)
    return [line for _, _, line in sorted(kept, key=lambda one: one[1])]
