"""Few-shot: after training on the source, go on with a few labelled examples of the target.

Under-specified optimization, Section 6, asks for it: which shots are chosen is a part of the run, so runs
that differ in ``draw`` alone show how much the choice matters. Lauscher et al. (2020), "From Zero to Hero",
introduced the setting. Without shots the model stays as it was, to the bit.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from isogloss.core.runs import Count, Whole
from isogloss.data.examples import Example
from isogloss.data.shots import Per, shots
from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained, fine_tune


@dataclass(frozen=True, kw_only=True)
class FewShot:
    """Go on from a model (``start``, usually source-only) with a few examples of each target language."""

    name: ClassVar[str] = "few-shot"
    sides: ClassVar[tuple[str, ...]] = ("source", "target")
    goes_on: ClassVar[bool] = True

    shots: Count = 10
    """Examples of each target language."""

    per: Per = "all"
    """What shots are counted for: all examples, or each label (tasks with one label an example)."""

    draw: Whole = 0
    """Seed of the choice of shots; with one draw, fewer shots are the first of more."""

    dev: Literal["target", "source"] = "target"
    """Whose dev set chooses the epoch: the training language's, as in the paper, or one without target
    labels."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the targets; the dev sets of one side choose the epoch."""
        return Reads(train=target, dev=target if self.dev == "target" else source)

    def train(self, setting: Setting) -> Trained:
        """Train on the chosen examples alone."""

        def chosen(language: str) -> list[Example]:
            examples = setting.train(language)
            taken = {one.id for one in shots(examples, self.shots, seed=self.draw, per=self.per)}
            return [one for one in examples if one.id in taken]  # All of them, in order, is target-only.

        return fine_tune(replace(setting, train=chosen), self.reads(setting.source, setting.target))
