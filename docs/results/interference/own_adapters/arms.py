"""Adapters of a language's own, changed before or as the task is learned, or at the test."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_layers import disconnect
from isogloss.encoders.added.language_modules import TREE, add_modules, encoder_of, modules_of
from isogloss.encoders.family import Model, Tokenizer
from isogloss.features.pretraining.parameters import module_parameters
from isogloss.training.fine_tuning import Examples, Training, fine_tune, plain_training
from isogloss.training.setting import Method, Reads, Setting, Trained


def strip(model: nn.Module) -> None:
    """Throw the modules of all languages away."""
    disconnect(model)
    delattr(encoder_of(model), TREE)


@dataclass(frozen=True, kw_only=True)
class ChangedModules(Method):
    """Source-only on an encoder whose modules of languages are changed before the first step."""

    name: ClassVar[str] = "changed-modules"
    uses: ClassVar[tuple[str, ...]] = ("source",)

    arm: Literal["stripped", "frozen", "new"] = "stripped"
    """stripped: without modules. frozen: modules are not trained. new: modules start as the identity."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read only the source languages."""
        return Reads(train=source, dev=source)

    def train(self, setting: Setting) -> Trained:
        """Change the modules, and fine-tune as source-only does."""
        return fine_tune(setting, self.reads(setting.source, setting.target), prepare=self._prepare)

    def _prepare(self, setting: Setting, model: Model, tokenizer: Tokenizer, train: Examples) -> Training:
        info = modules_of(model)
        if info is None:
            raise ValueError("this encoder has no modules of languages")
        if self.arm == "frozen":
            for weight in module_parameters(model, info.languages).values():
                weight.requires_grad_(False)
        else:
            strip(model)
        if self.arm == "new":
            add_modules(model, info.modules, info.languages, seed=setting.seed)
        return plain_training(setting, model, tokenizer, train)


@dataclass(frozen=True, kw_only=True)
class Changed:
    """A row of the diagnostic below."""

    model: str
    language: str
    change: str
    metric: str
    score: float
    agreement: float
    """Share of examples with the same predictions as the unchanged model."""


@dataclass(frozen=True, kw_only=True)
class ModulesAtTest(Diagnostic):
    """Scores of a tuned model as it is, with its adapters taken out, and with each other's."""

    name: ClassVar[str] = "modules-at-test"
    subject: ClassVar[str] = "model"

    def measure(self, setting: MeasureSetting) -> Iterator[Changed]:
        """Yield a row for each language and change, for models with modules."""
        tuned_model = setting.load(setting.subjects[0])
        info = modules_of(tuned_model)
        if info is None:
            return
        source, target = info.languages
        zeroed_model = deepcopy(tuned_model)
        swapped_model = deepcopy(tuned_model)
        with torch.no_grad():
            for name, weight in module_parameters(zeroed_model, info.languages).items():
                if ".up." in name:
                    weight.zero_()
            pair = [
                language_parameters(swapped_model, language_code).values()
                for language_code in (source, target)
            ]
            for weight, other_item in zip(*pair, strict=True):
                original = weight.clone()
                weight.copy_(other_item)
                other_item.copy_(original)
        for language in setting.languages:
            evaluation = setting.evaluation(language)
            original_answers = evaluation.predict(tuned_model)
            for change, model in (
                ("none", tuned_model),
                ("zeroed", zeroed_model),
                ("swapped", swapped_model),
            ):
                answers = evaluation.predict(model)
                equal = [ours == theirs for ours, theirs in zip(answers, original_answers, strict=True)]
                yield Changed(
                    model=setting.subjects[0].id,
                    language=language,
                    change=change,
                    metric=evaluation.metric,
                    score=evaluation.score(model),
                    agreement=sum(equal) / len(equal),
                )
