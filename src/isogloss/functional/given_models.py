"""Types of the models and tokenizers that functions take, of any library whose objects have these methods."""

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from torch import nn


@runtime_checkable
class TextModel(Protocol):
    """A model of transformers, peft or sentence-transformers, maybe wrapped by torch.

    Any ``torch.nn.Module`` has these methods; a function says in a ModelError what else it needs, such as
    hidden states.

    >>> import torch, isogloss
    >>> isinstance(torch.nn.Linear(1, 1), isogloss.TextModel)
    True
    """

    training: bool

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model."""

    def parameters(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        """Yield its parameters."""

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield its parameters with their names."""


@runtime_checkable
class TextTokenizer(Protocol):
    """A tokenizer that functions take, such as ``AutoTokenizer.from_pretrained`` returns.

    Functions on words need a fast one, which says which subwords are of which word.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Encode texts."""

    def convert_ids_to_tokens(self, *args: Any, **kwargs: Any) -> Any:
        """Return subwords by their ids."""

    def get_vocab(self) -> dict[str, int]:
        """Return the id of each subword."""
