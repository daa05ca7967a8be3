"""RoBERTa (Liu et al. 2019) and those built like it: XLM-R (Conneau et al. 2020), CamemBERT."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from isogloss.core.runs import Architecture
from isogloss.encoders.family import Ability, Site
from isogloss.encoders.post_norm import (
    POST_NORM_DROPOUTS,
    post_norm_embeddings,
    post_norm_shape,
    post_norm_sites,
    post_norm_tag_scores,
)

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Roberta:
    """BERT's layers, one segment, masked-LM head in ``lm_head``.

    Positions count from the padding's number (1) on: padding takes position 1, a text begins at 2.
    """

    name: str
    first_position: ClassVar[int] = 2
    lacks: ClassVar[Mapping[Ability, str]] = {}
    dropouts: ClassVar[tuple[str, ...]] = POST_NORM_DROPOUTS

    def sites(self, encoder: "PreTrainedModel") -> list[Site]:
        """List the layers from the first to the last."""
        return post_norm_sites(encoder)

    def embeddings(self, encoder: "PreTrainedModel") -> nn.Module:
        """Return the module whose output enters the first layer."""
        return post_norm_embeddings(encoder)

    def masked_lm_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run the head of RobertaForMaskedLM on last-layer states [… dim]; returns [… vocabulary]."""
        scores: Tensor = model.lm_head(states)
        return scores

    def tag_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run the head of RobertaForTokenClassification on last-layer states [… dim]; returns [… label]."""
        return post_norm_tag_scores(model, states)

    def longest_text(self, config: Any) -> int:
        """Return the most subwords, special ones included, that the encoder has positions for."""
        return int(config.max_position_embeddings) - self.first_position

    def shape(self, architecture: Architecture, *, padding: int) -> dict[str, Any]:
        """Say an architecture in the fields of RobertaConfig, which counts positions up to padding too."""
        own = {"max_position_embeddings": architecture.positions + padding + 1, "type_vocab_size": 1}
        return {**post_norm_shape(architecture), **own}
