"""The aligner that links words with similar states. ``encoder_similarity`` computes them."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Positive, Share, Whole
from isogloss.data.formats.word_links import Aligned
from isogloss.features.alignment.matching import Matching


@dataclass(frozen=True, kw_only=True)
class EncoderSimilarity:
    """Align by the similarity of an encoder's states."""

    name: ClassVar[str] = "encoder"
    needs_encoder: ClassVar[bool] = True
    version: ClassVar[int] = 2

    matching: Matching = "argmax"
    """Rule that links subwords: argmax (mutual best), itermax (repeatedly) or match (one-to-one)."""

    layer: Whole | None = None
    """Layer whose states are compared: 0 the embeddings, -1 the last. Default: at two thirds of the depth."""

    unit: Literal["subword", "word"] = "subword"
    """Whether subwords are matched, or words as the mean of their subwords."""

    rounds: Positive = 2
    """Iterations of itermax."""

    distortion: Share = 0.0
    """Penalty on the similarity of words at different relative positions (kappa), 0 to 1."""

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Align every pair. Nothing is learned."""
        from isogloss.encoders.loading import load_model
        from isogloss.encoders.tokenizers import load_tokenizer
        from isogloss.features.alignment.encoder_similarity import Rule, align_pairs
        from isogloss.training.precision import device

        if not setting.encoder:
            raise ConfigError(
                "aligner encoder: no encoder is given. Name one (shipped, a folder, a hub name), or choose "
                "the aligner fast-align, which learns from the bitext alone."
            )
        model = load_model(setting.encoder).to(device())
        rule = Rule(
            matching=self.matching,
            layer=self.layer,
            unit=self.unit,
            rounds=self.rounds,
            distortion=self.distortion,
        )
        return align_pairs(model, load_tokenizer(setting.encoder), setting, rule)
