"""DeBERTa-v2 and v3 (He et al. 2021, 2023), and with them mDeBERTa-v3: attention that weighs distances.

In config.json all of them are ``deberta-v2``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
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

V3: dict[str, Any] = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
    "position_biased_input": False,
    "type_vocab_size": 0,
}
"""The configuration of mDeBERTa-v3: distances alone, no segments."""

POSITIONS_PER_BUCKET = 2
"""mDeBERTa-v3 tells 256 distances to either side apart, of 512."""


@dataclass(frozen=True)
class Deberta:
    """DeBERTa-v2: BERT's layers around its own attention, distances shared by all layers.

    Where the first layer is followed by a convolution (v2-xlarge), that is part of no site. A layer and its
    attention return tuples.
    """

    name: ClassVar[str] = "deberta-v2"
    first_position: ClassVar[int] = 0
    lacks: ClassVar[Mapping[Ability, str]] = {
        "projections": "projects distances with the matrices of queries and keys as well",
        "new-positions": "sees how far apart subwords stand, and no positions",
        "attention-kinds": "computes attention in its own way",
    }
    dropouts: ClassVar[tuple[str, ...]] = POST_NORM_DROPOUTS

    def sites(self, encoder: "PreTrainedModel") -> list[Site]:
        """List the layers from the first to the last."""
        return [
            replace(site, query=None, key=None, value=None, attention_dropout="", output_dropout="")
            for site in post_norm_sites(encoder)
        ]

    def embeddings(self, encoder: "PreTrainedModel") -> nn.Module:
        """Return the module whose output enters the first layer."""
        return post_norm_embeddings(encoder)

    def masked_lm_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run the head of DebertaV2ForMaskedLM on last-layer states [… dim]; returns [… vocabulary].

        ``legacy`` in config.json chooses between two heads.
        """
        if model.config.legacy:
            scores: Tensor = model.cls(states)
        else:
            scores = model.lm_predictions(states, model.deberta.embeddings.word_embeddings)
        return scores

    def tag_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run the head of DebertaV2ForTokenClassification on last-layer states; returns [… label]."""
        return post_norm_tag_scores(model, states)

    def longest_text(self, config: Any) -> int:
        """Return the most subwords, special ones included, of a text as in pretraining.

        Longer ones work with less accuracy, unless the configuration adds positions to distances.
        """
        return int(config.max_position_embeddings)

    def shape(self, architecture: Architecture, *, padding: int) -> dict[str, Any]:
        """Say an architecture in the fields of DebertaV2Config, otherwise as mDeBERTa-v3."""
        del padding
        buckets = max(1, architecture.positions // POSITIONS_PER_BUCKET)
        return {**post_norm_shape(architecture), **V3, "position_buckets": buckets}
