"""Inputs of a test set: original, translated into the source language, or partly in the source language.

Translate-test (XTREME; X-Mixup's baseline) reads translations. Cross-lingual adjustment, Section 4, tests on
examples with one text, or one part of a question, in the source language.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.languages import BOTH
from isogloss.data.examples import Example
from isogloss.data.projection.parallel_examples import mixed_pairs, mixed_questions
from isogloss.tasks import TASKS, find_task

ORIGINAL_INPUTS = ""


TRANSLATED = "translated"


PAIRED = "paired"
"""Each input with its translation into the source language, for models that mix them (X-Mixup)."""


Mix = Callable[[Sequence[Example], Sequence[Example]], Sequence[Example]]
"""From the examples of the target and of the source language to mixed examples."""


MIXED: Mapping[str, Mix] = {
    "mixed": partial(mixed_pairs, side="random"),
    "mixed-first": partial(mixed_pairs, side="first"),
    "mixed-second": partial(mixed_pairs, side="second"),
    "mixed-question": partial(mixed_questions, part="question"),
    "mixed-passage": partial(mixed_questions, part="passage"),
}
"""Inputs in two languages. One text of a pair (random by id), or one part of a question, is in the source
language."""


PARTS: Mapping[str, str] = {
    name: "question" if name in ("mixed-question", "mixed-passage") else "pair" for name in MIXED
}
"""The kind of examples that each mix applies to."""


Read = Callable[[str], list[Example]]


def check_inputs(inputs: str, task: str) -> None:
    """Raise ConfigError for unknown inputs, or if the task's examples lack the parts that they mix."""
    if inputs != ORIGINAL_INPUTS:
        check_named("", "kind of inputs", (TRANSLATED, PAIRED, *MIXED), inputs)
    parts = find_task(task).parts
    mixed_parts = PARTS.get(inputs)
    if mixed_parts not in (None, parts):
        choices = [TRANSLATED, *(name for name, part in PARTS.items() if part == parts)]
        tasks = " and ".join(name for name, entry in TASKS.items() if entry.parts == mixed_parts)
        raise ConfigError(
            f"{inputs!r} is for {tasks}, not for {task}. Choose {' or '.join(choices)}, or remove it."
        )


def codes_read(inputs: str, language: str, source: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages (or pairs) whose examples make up a language's inputs.

    Source inputs stay original.
    """
    if inputs == ORIGINAL_INPUTS or language in source or not source:
        return (language,)
    translation = f"{language}-{source[0]}"
    if inputs == PAIRED:
        return language, translation
    return (translation,) if inputs == TRANSLATED else (language, source[0])


def language_read(inputs: str, language: str, source: tuple[str, ...]) -> str:
    """Return the language (or pair) that a model reads: both, joined by +, if an example has both."""
    return BOTH.join(codes_read(inputs, language, source))


def examples_of(inputs: str, language: str, source: tuple[str, ...], read: Read) -> list[Example]:
    """Return a language's examples with these inputs. Raises DataError if a test set is not parallel."""
    examples, *source_examples = (read(code) for code in codes_read(inputs, language, source))
    return list(MIXED[inputs](examples, source_examples[0])) if source_examples else examples
