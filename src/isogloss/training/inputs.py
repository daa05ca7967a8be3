"""How the inputs of a target language come to a model: as they are, translated, or mixed with the source.

Translated into the source language is translate-test (XTREME; X-Mixup's baseline). Mixed has a part of each
example in the source language: the mixed-language test sets of cross-lingual adjustment, Section 4.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.languages import BOTH
from isogloss.data.examples import Example
from isogloss.data.parallel_examples import mixed_pairs, mixed_questions

ORIGINAL_INPUTS = ""
TRANSLATED = "translated"
PAIRED = "paired"
"""Each input beside its translation into the source language, for models that mix the two (X-Mixup)."""

Mix = Callable[[Any, Any], Sequence[Example]]
"""From the examples of the target and of the source language."""

MIXED: Mapping[str, Mix] = {
    "mixed": partial(mixed_pairs, side="random"),
    "mixed-first": partial(mixed_pairs, side="first"),
    "mixed-second": partial(mixed_pairs, side="second"),
    "mixed-question": partial(mixed_questions, part="question"),
    "mixed-passage": partial(mixed_questions, part="passage"),
}
"""What is in the source language: one text of a pair (at random, by the id), or one part of a question."""

TASKS = {
    name: ("qa",) if name in ("mixed-question", "mixed-passage") else ("nli", "paraphrase") for name in MIXED
}
"""Tasks whose examples have these parts."""

Read = Callable[[str], list[Example]]


def check_inputs(inputs: str, task: str, where: str) -> None:
    """Raise ConfigError unless there are such inputs, and the task's examples have the parts they mix."""
    if inputs not in (ORIGINAL_INPUTS, TRANSLATED, PAIRED, *MIXED):
        raise unknown_name(where, "kind of inputs", inputs, (TRANSLATED, PAIRED, *MIXED))
    if task not in TASKS.get(inputs, (task,)):
        fitting = [TRANSLATED, *(name for name, tasks in TASKS.items() if task in tasks)]
        raise ConfigError(
            f"{where}: {inputs!r} is for {' and '.join(TASKS[inputs])}, not for {task}. "
            f"Choose {' or '.join(fitting)}, or leave it out."
        )


def codes_read(inputs: str, language: str, source: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages (or pairs) whose examples make up a language's inputs; the source's are plain."""
    if inputs == ORIGINAL_INPUTS or language in source or not source:
        return (language,)
    translation = f"{language}-{source[0]}"
    if inputs == PAIRED:
        return language, translation
    return (translation,) if inputs == TRANSLATED else (language, source[0])


def language_read(inputs: str, language: str, source: tuple[str, ...]) -> str:
    """Return the language (or pair) that a model reads: both, joined by +, where an example has both."""
    return BOTH.join(codes_read(inputs, language, source))


def examples_of(inputs: str, language: str, source: tuple[str, ...], read: Read) -> list[Example]:
    """Return a language's examples with their inputs as asked; DataError where a test set is not parallel."""
    own, *others = (read(code) for code in codes_read(inputs, language, source))
    return list(MIXED[inputs](own, others[0])) if others else own
