"""The classes of transformers by the names that annotations use: it is imported late, and by few floors."""

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
    from transformers.utils import ModelOutput

    Config: TypeAlias = PretrainedConfig
    Model: TypeAlias = PreTrainedModel
    """An encoder, with or without a head."""
    Output: TypeAlias = ModelOutput
    Tokenizer: TypeAlias = PreTrainedTokenizerFast
else:
    Config = Model = Output = Tokenizer = Any
