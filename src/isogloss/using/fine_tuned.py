"""What scoring, exporting and model cards ask of a model, which calls them, so that they cannot see it."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from isogloss.data.examples import Example
from isogloss.encoders.mixup import Mixup
from isogloss.tasks import Task
from isogloss.training.evaluation import Evaluation
from isogloss.using.formats import Kind
from isogloss.using.origin import Origin

Translations = Sequence[Example | None] | None
"""Of each example, in the source language, None for one that has none; None where the model does not mix."""


class FineTuned(Protocol):
    """A fine-tuned model in use (``model.Model``)."""

    @property
    def network(self) -> Any:
        """Encoder and head."""

    @property
    def tokenizer(self) -> Any:
        """What makes subwords of texts."""

    @property
    def task(self) -> Task:
        """What decodes and scores."""

    @property
    def origin(self) -> Origin:
        """How it was made."""

    @property
    def mixup(self) -> Mixup | None:
        """Where and how much an input is mixed with its translation; None for a model that does not mix."""

    @property
    def kind(self) -> Kind:
        """What goes into it and comes out."""

    @property
    def longest(self) -> int:
        """Subwords of its longest row."""

    @property
    def into(self) -> str:
        """The language that translations are in."""

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError for languages it cannot read."""

    def check_mixes(self, where: str) -> None:
        """Raise ConfigError for a model that has no use for translations of its inputs."""

    def prepared(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> Evaluation:
        """Encode and batch examples."""

    def prepared_by_id(
        self, examples: Sequence[Example], translations: Sequence[Example], *, language: str = ""
    ) -> Evaluation:
        """Encode and batch examples, each beside the translation of its id."""
