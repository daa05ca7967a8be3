"""A fine-tuned model of torch in use: encoding examples, predicting and scoring them in batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, cast

from isogloss.core.run_parts import Optimization, Updates, with_fields
from isogloss.data.examples import Example
from isogloss.encoders.added.active_language import check_languages
from isogloss.encoders.family import Model as Network
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.loading import has_own_head
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.shared_weights import evaluation_copy
from isogloss.tasks.batch import Scores
from isogloss.tasks.encoded_examples import EncodedExamples
from isogloss.tasks.task import Task
from isogloss.training.evaluation import Evaluation, evaluation, pair_with_translations
from isogloss.using.formats import InputForm
from isogloss.using.kinds import kind_of
from isogloss.using.predictor import Predictor, Translations
from isogloss.using.provenance import Provenance

Self = TypeVar("Self", bound="FineTuned")


@dataclass(frozen=True, repr=False)
class FineTuned(Predictor):
    """Encoder, head and tokenizer of a fine-tuned model, with the task that decodes it."""

    network: Network
    """Stays as it is: copies that share its weights run instead, so that threads can use one model."""
    tokenizer: Tokenizer
    task: Task
    provenance: Provenance
    """Its provenance."""
    precision: str = "auto"
    """auto (what pays on this machine), float32 or bfloat16."""
    mixup: Mixup | None = None
    """Layer and amount of mixing an input with its translation. None for a model that does not mix."""
    links: tuple[str, ...] = ()
    """Files of its folder that are symbolic links."""
    folder: Path = Path()
    """The folder of its weights."""

    @property
    def kind(self) -> InputForm:
        """Forms of inputs and answers."""
        kind = kind_of(self.task)
        return replace(kind, auto_class="", hub_tag="", pipeline="") if has_own_head(self.network) else kind

    @property
    def longest(self) -> int:
        """Subwords of its longest row, special ones included."""
        return (
            int(self.tokenizer.model_max_length) if self.task.evaluates_full_length else self.provenance.limit
        )

    def scores_of(self, encoded_examples: EncodedExamples) -> Sequence[Scores]:
        """Return the raw scores of the rows of prepared examples."""
        return cast(Evaluation, encoded_examples).scores(evaluation_copy(self.network))

    def score(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> float:
        """Return the task's metric on labelled examples."""
        evaluation = self.prepare(examples, language=language, translations=translations)
        return evaluation.score(evaluation_copy(self.network))

    def measures(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> dict[str, float]:
        """Return all measures of labelled examples, the task's metric first."""
        evaluation = self.prepare(examples, language=language, translations=translations)
        return evaluation.measures(evaluation_copy(self.network))

    def solving(self: Self, task: Task) -> Self:
        """Return the same model with a different task, whose labels replace the labels of its task."""
        return replace(self, task=task)

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError if its encoder has language modules or maps, but none for one of these."""
        check_languages(self.network, languages)

    def prepare(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> Evaluation:
        """Encode and batch examples, each with its translation if the model mixes the two."""
        if self.mixup is None or translations is None:
            return self._evaluation(examples, language)
        originals = [replace(example, id=str(index)) for index, example in enumerate(examples)]
        counterparts = [
            replace(translation, id=example.id)
            for example, translation in zip(originals, translations, strict=True)
            if translation is not None
        ]
        return self.prepare_by_id(originals, counterparts, language=language)

    def prepare_by_id(
        self, examples: Sequence[Example], translations: Sequence[Example], *, language: str = ""
    ) -> Evaluation:
        """Encode and batch examples, each with the translation of its id, if any.

        ConfigError for a model that does not mix.
        """
        return pair_with_translations(
            self._evaluation(examples, language),
            translations,
            self.tokenizer,
            self._optimization,
            mixup=self.check_mixes("translations"),
            source=next(iter(self.provenance.source), ""),
        )

    def _evaluation(self, examples: Sequence[Example], language: str) -> Evaluation:
        return evaluation(self.task, examples, self.tokenizer, self._optimization, language=language)

    @property
    def _optimization(self) -> Optimization:
        updates = with_fields(Updates(), precision=self.precision)
        return Optimization(limit=self.provenance.limit, overlap=self.provenance.overlap, updates=updates)
