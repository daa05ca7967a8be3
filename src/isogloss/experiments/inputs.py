"""How the inputs of a target language come to a model: as they are, or translated.

Translated into the source language is translate-test (XTREME; X-Mixup's baseline).
"""

from collections.abc import Callable

from isogloss.data.examples import Example

AS_THEY_ARE = ""
TRANSLATED = "translated"
INPUTS = (AS_THEY_ARE, TRANSLATED)

Read = Callable[[str], list[Example]]


def codes_read(inputs: str, language: str, source: tuple[str, ...]) -> tuple[str, ...]:
    """Return the languages (or pairs) whose examples make up a language's inputs; the source's are plain."""
    if inputs == AS_THEY_ARE or language in source or not source:
        return (language,)
    return (f"{language}-{source[0]}",)


def examples_of(inputs: str, language: str, source: tuple[str, ...], read: Read) -> list[Example]:
    """Return a language's examples with their inputs as asked."""
    (code,) = codes_read(inputs, language, source)
    return read(code)
