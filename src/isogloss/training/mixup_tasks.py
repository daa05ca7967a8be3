"""X-Mixup's hyper-parameters for each kind of task (its Table 10 and Sections 4.2, 4.3 and 5.1)."""

from dataclasses import dataclass

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Share
from isogloss.tasks import TASKS, find_task
from isogloss.tasks.classification import MultiLabelClassification, Regression, TextClassification
from isogloss.tasks.multiple_choice import MultipleChoice
from isogloss.tasks.span_qa import SpanQA
from isogloss.tasks.tagging import Tagging

ORDINARY = 12
"""Layers of the encoders the paper chose its layers for (base)."""


@dataclass(frozen=True, kw_only=True)
class MixupTask:
    """The paper's choices for one kind of task."""

    alpha: Share
    """Weight of the source side's loss (Eq. 8, Table 10)."""

    decay: int
    """k of scheduled sampling (Table 10)."""

    layer: int
    """The layer that mixes in an encoder of 12 layers."""

    grows: bool = False
    """Whether that layer goes up with the encoder, as the paper has it for QA: 8 of 12, 16 of 24."""

    pseudo_labels: bool = False
    """Whether labels do not outlive translation, and a source-only model's probabilities take their place."""

    def layer_of(self, layers: int) -> int:
        """Return the layer that mixes in an encoder of ``layers``; the same proportion in a smaller one."""
        scaled = max(1, round(self.layer * layers / ORDINARY))
        return scaled if self.grows else min(self.layer, scaled)


CLASSIFICATION = MixupTask(alpha=0.4, decay=1000, layer=1)
STRUCTURED = MixupTask(alpha=0.8, decay=1000, layer=4, pseudo_labels=True)
QUESTIONS = MixupTask(alpha=0.2, decay=2000, layer=8, grows=True)

KINDS: dict[type, MixupTask] = {
    TextClassification: CLASSIFICATION,
    MultiLabelClassification: CLASSIFICATION,
    Regression: CLASSIFICATION,
    MultipleChoice: CLASSIFICATION,
    Tagging: STRUCTURED,
    SpanQA: QUESTIONS,
}


def mixup_task(task: str) -> MixupTask:
    """Return the paper's choices for a task; ConfigError for one that X-Mixup does not know."""
    found = KINDS.get(type(find_task(task)))
    if found is None:
        known = sorted(name for name, one in TASKS.items() if type(one) in KINDS)
        raise ConfigError(
            f"x-mixup: found task {task!r}; it is defined for {', '.join(known)}. "
            f"Choose one of these, or translate-train."
        )
    return found
