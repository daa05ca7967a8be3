"""Compute the states of an encoder on your own texts, and keep them for comparisons.

The model is any of transformers, with or without a head, that returns hidden states: an encoder, a decoder,
or one with both, of which the encoder is read. It may be wrapped by torch, peft or sentence-transformers.
It is not changed: states are computed by a copy in evaluation mode, on the same device, that shares its
weights. Other threads may use the model meanwhile. In bfloat16 the copy needs half of the memory of the
matrices in addition. A tokenizer is not safe to share: a thread that calls it at the same time needs a copy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError, add_location
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.run_parts import Positive, Precision, Whole
from isogloss.encoders.added.active_language import active_language
from isogloss.functional.beginning import showing_progress
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.functional.preparing import prepare
from isogloss.training.states import (
    Pooling,
    StateOptions,
    Words,
    compute_language_states,
    layers_once,
    word_states,
)

Sentence = str | Sequence[str]
"""A text, or its words."""

TEXTS_PER_BLOCK = 1024
"""Texts that are read between two reports of progress."""


@dataclass(frozen=True, eq=False)
class States:
    """States of texts, or of their words, in some layers of an encoder, as ``states`` returns them.

    Keep them to compare an encoder before and after a training, or two encoders.

    >>> import torch
    >>> States(torch.zeros(2, 5, 8), layers=(0, 1), precision="float32")
    States(5 texts, layers 0, 1, 8 dimensions)
    """

    vectors: Float[Tensor, "layer item dim"]
    """In float32, on the CPU."""
    layers: tuple[int, ...]
    """The number of each layer: 0 is the embeddings."""
    precision: str
    """The precision they were computed in: float32 or bfloat16."""
    sentences: tuple[int, ...] | None = None
    """The sentence of each word, by its number. None for states of whole texts."""

    def __len__(self) -> int:
        """Return the number of texts, or of words."""
        return self.vectors.shape[1]

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return the vectors as an array [layer, item, dim]."""
        return np.array(self.vectors.numpy(), dtype=dtype, copy=bool(copy))

    def __repr__(self) -> str:
        """Describe them in a line."""
        items = "texts" if self.sentences is None else "words"
        layers = ", ".join(map(str, self.layers))
        return f"States({len(self)} {items}, layers {layers}, {self.vectors.shape[2]} dimensions)"

    def layer(self, number: int) -> Float[Tensor, "item dim"]:
        """Return the states in one layer. Raises ConfigError if it is not among ``layers``."""
        if number not in self.layers:
            raise ConfigError(
                f"layer {number}: these are states of layers {', '.join(map(str, self.layers))}. Ask for one "
                f"of these, or for states of more layers."
            )
        return self.vectors[self.layers.index(number)]


StatesLike = States | Tensor | npt.NDArray[Any] | Sequence[Any]
"""States, or an array [item, dim] or [layer, item, dim] of vectors from anywhere."""


@checks_arguments
def states(
    model: TextModel,
    tokenizer: TextTokenizer,
    texts: Sequence[Sentence],
    *,
    layers: Sequence[Whole] = (),
    words: Words | None = None,
    language: str = "text",
    limit: Positive = 128,
    pooling: Pooling | None = None,
    precision: Precision = "float32",
    on_progress: OnProgress | None = None,
) -> States:
    """Return the states of texts in some layers, each the mean of its subwords' states.

    ``words`` asks for the states of words instead, in their order: the average of a word's subwords, its
    first or its last one. Layer 0 is the embeddings, -1 the last; all ``layers`` if none are named. A text is
    cut after ``limit`` subwords, and words at the encoder's last position. ``language`` is required by
    encoders with language modules. ``pooling`` "model" returns the vectors that the encoder's folder of
    sentence-transformers makes, of the last layer. ``precision`` is float32, bfloat16, or auto (the faster
    one on this machine, as in runs).

    ConfigError for a layer that the encoder lacks, ModelError where states are not finite.

    Device: as the model; the result is on the CPU. Cost: one pass over the texts; the result has
    texts × layers × width numbers in float32.

    >>> import isogloss
    >>> model, tokenizer = isogloss.load_encoder("shipped")
    >>> isogloss.states(model, tokenizer, ["ka lomi", "sute"], layers=[0, -1]).vectors.shape[:2]
    torch.Size([2, 2])
    """
    if not texts:
        raise DataError("states: no texts. Give at least one.")
    encoder = prepare(model, tokenizer, "states", precision, words=words is not None)
    last_layer = encoder.layers
    requested_layers = tuple(layers) or ((last_layer,) if pooling else tuple(range(last_layer + 1)))
    with add_location("states"):
        layer_indices = layers_once(encoder.encoder, requested_layers)
    resolved = encoder.precision
    labels = tuple(layer % (last_layer + 1) for layer in layer_indices)
    if words is not None:
        split = [split_sentence(text) for text in texts]
        with active_language(encoder.encoder, language):
            sentence_states = word_states(
                *encoder.loaded, split, layers=layer_indices, words=words, precision=resolved
            )
        sentences = tuple(index for index, part in enumerate(sentence_states) for _ in range(part.shape[1]))
        return States(torch.cat(sentence_states, dim=1).cpu(), labels, resolved, sentences)
    options = StateOptions(layers=layer_indices, limit=limit, precision=resolved, pooling=pooling)
    lines = [join_words(text) for text in texts]
    blocks = []
    count = -(-len(lines) // TEXTS_PER_BLOCK)
    with showing_progress(on_progress) as progress:
        for index in range(count):
            block = lines[index * TEXTS_PER_BLOCK : (index + 1) * TEXTS_PER_BLOCK]
            blocks.append(compute_language_states(encoder.loaded, block, language, options))
            progress(Progress("states", index + 1, count))
    return States(torch.cat(blocks, dim=1), labels, resolved)


def join_words(sentence: Sentence) -> str:
    """Return a sentence as a text."""
    return sentence if isinstance(sentence, str) else " ".join(sentence)


def split_sentence(sentence: Sentence) -> tuple[str, ...]:
    """Return the words of a sentence. A text is split by the rules of isogloss."""
    if not isinstance(sentence, str):
        return tuple(sentence)
    from isogloss.data.projection.words import tokenize

    return tokenize(sentence)


def read_states(values: StatesLike, name: str) -> States:
    """Return states as such. ``name`` is their name in messages. Raises DataError for other arrays."""
    if isinstance(values, States):
        return values
    vectors = values if isinstance(values, Tensor) else torch.as_tensor(np.asarray(values))
    if vectors.ndim == 2:
        vectors = vectors.unsqueeze(0)
    if vectors.ndim != 3 or not vectors.is_floating_point() or 0 in vectors.shape:
        raise DataError(
            f"{name}: found {vectors.dtype} of shape {list(vectors.shape)}; expected floating-point numbers "
            f"[item, dim] or [layer, item, dim], or what isogloss.states returns."
        )
    if not bool(vectors.isfinite().all()):
        raise DataError(f"{name}: not all numbers are finite. Remove the items that are not.")
    return States(vectors.detach().cpu().float(), tuple(range(len(vectors))), "float32")


def read_both(first_states: StatesLike, second_states: StatesLike, function: str) -> tuple[States, States]:
    """Return the states of the same items on two sides. Raises DataError if their numbers differ."""
    sides = read_states(first_states, f"{function}: first"), read_states(second_states, f"{function}: second")
    if len(sides[0]) != len(sides[1]):
        raise DataError(
            f"{function}: {len(sides[0])} items and {len(sides[1])}; expected the same ones on both sides, "
            f"in the same order."
        )
    return sides


def read_layers(first_states: States, second_states: States, function: str) -> tuple[int, ...]:
    """Pair the layers of two sides by their order. Raises DataError if their numbers differ."""
    if len(first_states.layers) != len(second_states.layers):
        raise DataError(
            f"{function}: {len(first_states.layers)} layers and {len(second_states.layers)}; expected as "
            f"many, which are compared in order. Choose layers, or compare all with all (across=True of cka)."
        )
    return first_states.layers


def choose_layer(
    vectors: Float[Tensor, "layer item dim"], layer: int, function: str
) -> Float[Tensor, "item dim"]:
    """Return the states of one layer, by its position among the layers.

    Raises ConfigError for a layer that the states lack.
    """
    if not -len(vectors) <= layer < len(vectors):
        raise ConfigError(
            f"{function}: layer {layer} of states of {len(vectors)} layers, which are counted from 0; -1 is "
            f"the last."
        )
    return vectors[layer]


DEFAULTS: Mapping[str, object] = {
    "languages": ("first", "second"),
    "layers": (),
    "limit": 128,
    "pooling": None,
    "precision": "float32",
    "words": "average",
}
"""Values of the arguments of functions that read states or compute them."""


def refuse_settings(function: str, **settings: object) -> None:
    """Raise ConfigError for a setting of the computation of states, where states are given."""
    for name, value in settings.items():
        if (tuple(value) if name == "layers" else value) != DEFAULTS[name]:  # type: ignore[arg-type]
            raise ConfigError(
                f"{function}: {name} says how states are made of a model's sentences, and states are given. "
                f"Set it where they are made: isogloss.states(…, {name}=…)."
            )
