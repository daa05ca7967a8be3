"""The plain methods: one training each, on different labels, and models that were fine-tuned elsewhere.

With one seed they start from the same head. Bilingual without a second language, translate-train without a
target and few-shot with all shots equal the others to the bit.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal, Protocol

from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.core.run_parts import Conflict, Count, Whole
from isogloss.data.examples import Example, Per
from isogloss.encoders.family import Config
from isogloss.encoders.folders import load_encoder_config
from isogloss.tasks.task import CLASSES, LabelsAre, Task
from isogloss.training.setting import WATCHES, Method, Reads, Setting, Trained, WeightsFrom, language_pairs


class _Plain(Method, Protocol):
    """Train on the labels of the languages it reads, with only the task loss."""

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on the training languages. The mean score of the dev sets chooses the epoch."""
        from isogloss.training.fine_tuning import fine_tune

        return fine_tune(setting, self.reads(setting.source, setting.target))


@dataclass(frozen=True, kw_only=True)
class SourceOnly(_Plain):
    """Train on the source languages and test on any language (zero-shot transfer, θ_S of Wu 2022)."""

    name: ClassVar[str] = "source-only"
    uses: ClassVar[tuple[str, ...]] = ("source",)
    plain: ClassVar[bool] = True

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read only the source languages."""
        return Reads(train=source, dev=source)


@dataclass(frozen=True, kw_only=True)
class OracleStopping(_Plain):
    """Train on the source languages only, but let the targets' dev sets choose the epoch.

    Keung et al. (2020), "Don't Use English Dev": how much of a difference between systems is the choice of
    the epoch? Target labels are not used for training.
    """

    name: ClassVar[str] = "oracle-stopping"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    plain: ClassVar[bool] = True

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Train on the source, choose by the targets."""
        return Reads(train=source, dev=target)


@dataclass(frozen=True, kw_only=True)
class TargetOnly(_Plain):
    """Train on the target language's own labels (θ_T of Wu 2022)."""

    name: ClassVar[str] = "target-only"
    uses: ClassVar[tuple[str, ...]] = ("target",)
    plain: ClassVar[bool] = True

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read only the target languages."""
        return Reads(train=target, dev=target)


@dataclass(frozen=True, kw_only=True)
class Bilingual(Method):
    """Train on source and target labels together (θ_ST of Wu 2022), one language a batch."""

    name: ClassVar[str] = "bilingual"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    plain: ClassVar[bool] = True

    conflict: Conflict | None = field(default=None, metadata=WATCHES)
    """Gradient conflict between the languages, measured during training: every, batch and layers. Default:
    none."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read both sides. The mean of their dev scores chooses the epoch."""
        return Reads(train=(*source, *target), dev=(*source, *target))

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on both sides. The mean of their dev scores chooses the epoch."""
        from isogloss.training.fine_tuning import fine_tune

        splits = self.reads(setting.source, setting.target)
        return fine_tune(setting, splits, conflict=self.conflict)


@dataclass(frozen=True, kw_only=True)
class FewShot(Method):
    """Continue from a model (``start``, usually source-only) with a few examples of each target language.

    Under-specified optimization, Section 6, proposes it. The choice of shots is a setting of the run, so runs
    that differ only in ``draw`` show how much the choice matters. Lauscher et al. (2020), "From Zero to
    Hero", introduced the setting.
    """

    name: ClassVar[str] = "few-shot"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    plain: ClassVar[bool] = True
    needs_start: ClassVar[bool] = True

    shots: Count = 10
    """Examples of each target language."""

    per: Per = "all"
    """Unit of ``shots``: all examples, or each label (tasks with one label per example)."""

    draw: Whole = 0
    """Seed of the choice of shots. With one draw, fewer shots are the first of more."""

    dev: Literal["target", "source", "shots", "none"] = "target"
    """Data that chooses the epoch. target: the training language's dev set, as in the paper. source: its dev
    set, without target labels. shots: as many further training examples, so that only few examples are
    labelled. none: the model of the last epoch is kept."""

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Refuse to count examples of each label where an example has several, a number, or none."""
        classes = task.one_answer is CLASSES
        if self.per == "label" and not classes:
            raise ConfigError(
                f"{self.name}: per = 'label' counts examples of each label, and those of {task.name} have no "
                f"one label each. Remove it: shots are counted of all examples (per = 'all')."
            )

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the shots of the targets. The dev sets of one side, if any, choose the epoch."""
        examples = self.shots if self.per == "all" else None  # The number of labels is not known here.
        dev = {"target": target, "source": source}.get(self.dev, ())
        return Reads(train=target, examples=examples, dev=dev)

    def train(self, setting: Setting) -> Trained:
        """Train on the chosen examples only. Without shots the model stays unchanged, bit for bit."""
        from isogloss.training.fine_tuning import few_examples, fine_tune

        few_shot_setting = few_examples(setting, self.shots, draw=self.draw, per=self.per)
        splits = self.reads(setting.source, setting.target)
        if self.dev == "shots" and self.shots:
            few_shot_setting = replace(few_shot_setting, dev=self._further(setting))
            splits = replace(splits, dev=setting.target)
        return fine_tune(few_shot_setting, splits)

    def _further(self, setting: Setting) -> Callable[[str], list[Example]]:
        """Return a reader of as many further examples of a language as it has shots."""
        from isogloss.training.fine_tuning import few_examples

        further = few_examples(setting, 2 * self.shots, draw=self.draw, per=self.per, but=self.shots)

        def read(language: str) -> list[Example]:
            try:
                return further.train(language)
            except DataError as error:
                raise DataError(
                    f'{self.name}: dev = "shots" takes {self.shots} examples of {language} again: {error} '
                    f"Those are shots and dev together."
                ) from error

        return read


@dataclass(frozen=True, kw_only=True)
class TranslateTrain(Method):
    """Train on the source languages and their translations together.

    The strongest plain baseline of X-Mixup and of XTREME (Hu et al., 2020). Translations are examples of a
    pair: en-sw is text written in en and translated into sw, with its labels; tags are projected along word
    links. Or a source-only model labels the words of translations, as for X-Mixup: a baseline with the same
    information.
    """

    name: ClassVar[str] = "translate-train"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    plain: ClassVar[bool] = True

    with_source: bool = True
    """Whether the source examples are also trained on."""

    labels: Literal["teacher"] | None = None
    """teacher: in tagging, a source-only model labels the translations, and their projected tags are ignored.
    Default: translations have the labels of their examples."""

    conflict: Conflict | None = field(default=None, metadata=WATCHES)
    """Gradient conflict between the languages, measured during training: every, batch and layers. Default:
    none."""

    def __post_init__(self) -> None:
        """Raise ConfigError if gradients are measured on a teacher's labels."""
        if self.labels and self.conflict:
            raise ConfigError(
                f"{self.name}: conflict is watched on labelled examples, and labels = {self.labels!r} has "
                f"translations without. Leave one of the two out."
            )

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations. No target labels are read, not even to choose the epoch."""
        untranslated = source if self.with_source else ()
        teacher: tuple[LabelsAre, ...] = ("word",) if self.labels else ()
        return Reads(train=(*untranslated, *language_pairs(source, target)), dev=source, teacher=teacher)

    def train(self, setting: Setting) -> Trained:
        """Fine-tune on all of them, one language a batch."""
        from isogloss.training.fine_tuning import fine_tune, plain_training
        from isogloss.training.pairs import with_labels

        splits = self.reads(setting.source, setting.target)
        prepare = partial(plain_training, pseudo=splits.needs_teacher(setting.task))
        return fine_tune(with_labels(setting, splits), splits, prepare=prepare, conflict=self.conflict)


@dataclass(frozen=True, kw_only=True)
class GivenWeights(Method):
    """Train nothing: take a model that was fine-tuned elsewhere, as if it were trained on the source."""

    name: ClassVar[str] = "given"
    uses: ClassVar[tuple[str, ...]] = ("source",)
    weights_from: ClassVar[WeightsFrom] = "model"

    model: str = ""
    """Folder of the model, or its name on the hub (name@revision). {seed} stands for a seed of the grid."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read nothing."""
        return Reads()

    def train(self, setting: Setting) -> Trained:
        """Load model and head.

        Raises ModelError if the head does not fit the task and the corpus's labels.
        """
        import torch

        from isogloss.encoders.computation import fastest_attention
        from isogloss.encoders.tokenizers import load_tokenizer

        model, reseeded_model = (
            setting.task.head(setting.start, seed=seed, attention=fastest_attention()) for seed in (0, 1)
        )
        # Weights that depend on the seed are not from the folder.
        if not all(map(torch.equal, model.parameters(), reseeded_model.parameters())):
            config = load_encoder_config(setting.start)
            labels = ", ".join(map(str, config.id2label.values()))
            raise ModelError(
                f"{setting.start}: this model has no head for task {setting.task.name} with the labels "
                f"{', '.join(setting.task.labels)}: its config.json says "
                f"{' '.join(config.architectures or ())} with {labels}. Give a model that was fine-tuned on "
                f"them; if its labels have no names, write them into config.json (id2label)."
            )
        return Trained(model, load_tokenizer(setting.start), rows=[])
