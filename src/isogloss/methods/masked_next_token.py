"""Masked next-token prediction: a decoder learns to read on both sides.

BehnamGhader et al. (2024), "LLM2Vec: Large Language Models Are Secretly Powerful Text Encoders", Section 2.1:
the mask of a decoder is lifted, subwords are hidden, and each is predicted from the state of the subword
before it, as the decoder was trained to. All weights are trained here; the paper trains LoRA's.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import NESTED, Modules, TextTraining, Updates, nested_fields
from isogloss.encoders import fastest_attention, load_encoder_config
from isogloss.encoders.families import is_causal
from isogloss.training.memory import Cost
from isogloss.training.pretraining import begin, check_fields, check_objective, cost_of_text, train_on_text
from isogloss.training.setting import Pretraining, TextSetting, Trained


@dataclass(frozen=True, kw_only=True)
class MaskedNextToken(Pretraining):
    """Predict hidden subwords from the state before them, in a decoder whose mask is lifted (LLM2Vec)."""

    name: ClassVar[str] = "masked-next-token"
    version: ClassVar[int] = (
        2  # In the first, decoders that close texts with their padding did not see the ends.
    )
    replays: ClassVar[bool] = True

    training: TextTraining = field(default=TextTraining(steps=1000, masked=0.2), metadata=NESTED)
    """How long (the paper: 1000 steps), on what batches of text, and how that is followed."""

    mask: str = ""
    """Subword of the vocabulary that hidden ones are replaced by ("_" in the paper); the tokenizer's own mask
    when left out."""

    mixed: bool = False
    """True: rows of one batch come from all languages; False: a batch holds one language."""

    updates: Updates = field(default=Updates(learning_rate=5e-5, checkpoint_every=500), metadata=NESTED)
    """How weights are updated."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        check_fields(self, {})

    def cost(self) -> Cost:
        """Return the cost of batches of text, each run forward and back once."""
        return cost_of_text(self.training, self.updates)

    def check(self, family: str, modules: Modules | None, languages: tuple[str, ...]) -> None:
        """Raise ConfigError for an encoder that is no decoder."""
        del modules, languages
        check_objective(self.name, family, next_token=True)

    def check_mask(self, start: str, *, causal: bool) -> None:
        """Raise ConfigError for a decoder whose mask is not lifted."""
        if causal:
            raise ConfigError(
                f"{self.name}: {start} reads with its mask, so a hidden subword is predicted from one side. "
                f'Name it as an encoder of its own with attention = "bidirectional" and a label, and start '
                f"from that label."
            )

    def train(self, setting: TextSetting) -> Trained:
        """Train the decoder with its language-model head.

        ConfigError unless the mask is lifted, and for a mask that is no subword.
        """
        self.check(setting.family, None, ())
        self.check_mask(setting.start, causal=is_causal(load_encoder_config(setting.start)))
        start = begin(setting, self, attention=fastest_attention(), mask=self.mask)
        return train_on_text(start, setting, self)
