"""A switch over copies of a module, one for each language: text runs through the copy of its language.

A batch may hold several languages. Each language's rows then make a batch of their own, in one pass, and
come back in their order: what a row gives does not depend on the rows beside it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from isogloss.core.errors import ConfigError

Run = Callable[..., Any]

PER_ROW = 3
"""Dimensions of the least that has something for each row, as states [row subword dim] do; what has fewer is
a table that all rows share, as that of DeBERTa's distances."""


@dataclass
class ActiveLanguage:
    """The language that is read now, said once for all switches of a model."""

    languages: tuple[str, ...] = ()
    """None, one for the whole batch, or one for each row."""


@dataclass(frozen=True)
class LanguageSwitch:
    """Runs, in place of one module's forward function, that of the language that is read now."""

    runs: Mapping[str, Run]
    """Of each language what its rows run through: equal in shape, not in weights."""

    speaking: ActiveLanguage = field(default_factory=ActiveLanguage)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run a batch; ConfigError where no language is said, or one without a module."""
        return routed(self._run, self.speaking, inputs, named)

    def _run(self, language: str) -> Run:
        if language in self.runs:
            return self.runs[language]
        each, known = "this encoder has modules for each language", ", ".join(sorted(self.runs))
        if language:
            raise ConfigError(f"{each}, and none for {language!r}. Known: {known}.")
        raise ConfigError(
            f"{each}, and it is not said which language it reads. Known: {known}. Name it (--language, or "
            f"language=; in Python run it within active_language(model, language))."
        )


def routed(
    run: Callable[[str], Run], speaking: ActiveLanguage, inputs: Sequence[Any], named: Mapping[str, Any]
) -> Any:
    """Run a batch through ``run(language)``: as a whole, or each language's rows alone, put back in order.

    The first input has all rows. ValueError where it has not as many as there are languages.
    """
    languages = speaking.languages
    if len(set(languages)) < 2:
        return run(languages[0] if languages else "")(*inputs, **named)
    count = len(inputs[0])
    if count != len(languages):
        raise ValueError(f"{len(languages)} languages for {count} rows: give one for each row.")
    numbers, order = _rows(languages, inputs[0].device)
    parts = [
        run(language)(
            *(_taken(value, own, count) for value in inputs),
            **{name: _taken(value, own, count) for name, value in named.items()},
        )
        for language, own in numbers.items()
    ]
    return _joined(parts, order)


@lru_cache(maxsize=8)
def _rows(languages: tuple[str, ...], device: torch.device) -> tuple[dict[str, Tensor], Tensor]:
    """Return each language's row numbers, in order of appearance, and where each row then stands.

    Kept for the other switches of a pass: a GPU would wait for every one of these numbers.
    """
    found: dict[str, list[int]] = {}
    for row, language in enumerate(languages):
        found.setdefault(language, []).append(row)
    with torch.inference_mode(mode=False):  # Or no training could use them later.
        numbers = {language: torch.tensor(own, device=device) for language, own in found.items()}
        return numbers, torch.cat(list(numbers.values())).argsort()


def _taken(value: Any, rows: Tensor, count: int) -> Any:
    """Return an input's part for some rows; what is not of single rows as it is."""
    if isinstance(value, tuple):  # Rotations: cosines and sines.
        return tuple(_taken(part, rows, count) for part in value)
    own = torch.is_tensor(value) and value.ndim >= PER_ROW and len(value) == count
    return value.index_select(0, rows) if own else value


def _joined(parts: Sequence[Any], order: Tensor) -> Any:
    """Put the outputs of all languages' rows together in the order of the rows."""
    if isinstance(parts[0], tuple):
        return tuple(_joined(each, order) for each in zip(*parts, strict=True))
    return torch.cat(list(parts)).index_select(0, order) if torch.is_tensor(parts[0]) else parts[0]
