"""Classes of transformers by the names that higher floors, which may not import it, annotate with."""

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

Network: TypeAlias = "PreTrainedModel"
"""An encoder, with or without a head."""

Tokenizer: TypeAlias = "PreTrainedTokenizerFast"
