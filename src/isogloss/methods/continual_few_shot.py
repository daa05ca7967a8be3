"""Continual few-shot: go on with a few target examples, and keep pulling translated words together.

Few-shot with Eq. 2 of "The Impact of Cross-Lingual Adjustment …" beside it, as ``continual`` has it by
default; what stays in place is the encoder of the model it goes on from. With α = 0 it is few-shot, to the
bit.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from torch import Tensor

from isogloss.core.runs import Count, Positive, Weight, Whole
from isogloss.data.examples import Example
from isogloss.data.shots import Per, shots
from isogloss.training.adjustment_terms import adjustment_terms, beside_a_task
from isogloss.training.aligned_batches import AlignedBatch
from isogloss.training.aligned_pairs import Reading
from isogloss.training.replay import Replay
from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained, fine_tune


@dataclass(frozen=True, kw_only=True)
class ContinualFewShot:
    """Go on from a model with a few target examples, and aligned sentence pairs beside them."""

    name: ClassVar[str] = "continual-few-shot"
    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    goes_on: ClassVar[bool] = True

    shots: Count = 10
    """Examples of each target language."""

    per: Per = "all"
    """What shots are counted for: all examples, or each label (tasks with one label an example)."""

    draw: Whole = 0
    """Seed of the choice of shots; with one draw, fewer shots are the first of more."""

    dev: Literal["target", "source"] = "target"
    """Whose dev set chooses the epoch: the training language's, or one without target labels."""

    bitext: str = ""
    """Corpus of translations the sentence pairs are drawn from."""

    alpha: Weight = 0.01
    """Weight of Eq. 1 beside the task's loss; 0 is plain few-shot."""

    pairs: Positive = 16
    """Sentence pairs a step."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the targets; the dev sets of one side choose the epoch."""
        return Reads(train=target, dev=target if self.dev == "target" else source)

    def train(self, setting: Setting) -> Trained:
        """Train on the chosen examples, with Eq. 1 beside."""

        def chosen(language: str) -> list[Example]:
            examples = setting.train(language)
            taken = {one.id for one in shots(examples, self.shots, seed=self.draw, per=self.per)}
            return [one for one in examples if one.id in taken]

        replay = Replay(reading=Reading(), size=self.pairs, kept="float16", loss=self._weighted)
        few, reads = replace(setting, train=chosen), self.reads(setting.source, setting.target)
        return fine_tune(few, reads, beside=replay if self.alpha else None)

    def _weighted(self, model: Any, batch: AlignedBatch) -> Tensor:
        """Return α·L_align (Eq. 2)."""
        terms = adjustment_terms(model, batch, layer=-1, form="mean")
        return beside_a_task(terms, alpha=self.alpha, weighs="both")
