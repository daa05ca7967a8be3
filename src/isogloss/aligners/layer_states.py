"""Hidden states of subwords in one layer of an encoder, without computing the layers above it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.encoders import family_of
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.subwords import (
    SplitWords,
    Window,
    pad_rows,
    padding_mask,
    special_subwords,
    windows,
)
from isogloss.training.evaluation import in_batches
from isogloss.training.precision import scoring
from isogloss.training.states import check_layers

States = Float[Tensor, "subword dim"]

WINDOW_OVERLAP = 64
"""Subwords shared by neighbouring windows of a sentence that is longer than the encoder's limit."""


def default_layer(layers: int) -> int:
    """Return the layer at two thirds of the depth: SimAlign's 8th of 12, best for mBERT and XLM-R base."""
    return max(1, round(layers * 2 / 3))


def subword_states(
    model: Model,
    tokenizer: Tokenizer,
    sentences: Sequence[SplitWords],
    *,
    layer: int,
    precision: str,
    languages: Sequence[str] = (),
) -> list[States]:
    """Return the states of each sentence's subwords, without special ones, in float32 on the model's device.

    Layer 0 is the embeddings, -1 the last; ConfigError for an unknown layer. ``languages``, one per
    sentence, are required by an encoder with language modules or maps. Long sentences are split into windows.
    """
    check_layers(model.config.num_hidden_layers, [layer])
    layer %= model.config.num_hidden_layers + 1
    opening, closing = special_subwords(tokenizer)
    limit = tokenizer.model_max_length - 2
    overlap = min(WINDOW_OVERLAP, limit // 2)
    parts: list[tuple[int, Window]] = [
        (number, window)
        for number, sentence in enumerate(sentences)
        for window in windows(len(sentence.subwords), limit=limit, overlap=overlap)
        if sentence.subwords
    ]
    empty = torch.empty(0, model.config.hidden_size, device=next(model.parameters()).device)
    window_states = [empty] * len(parts)
    lengths = [window.stop - window.start + 2 for _, window in parts]
    with scoring(model, precision) as device:
        for group in in_batches(lengths):
            rows = [
                [opening, *sentences[number].subwords[window.start : window.stop], closing]
                for number, window in (parts[index] for index in group)
            ]
            active = [languages[parts[index][0]] for index in group] if languages else ""
            with active_language(model, active):
                states = _states(model, rows, tokenizer.pad_token_id, layer, device)
            for index, state in zip(group, states, strict=True):
                window = parts[index][1]
                window_states[index] = state[
                    1 + window.own_start - window.start : 1 + window.own_stop - window.start
                ]
    of_sentences: list[list[Tensor]] = [[empty] for _ in sentences]
    for (number, _), state in zip(parts, window_states, strict=True):
        of_sentences[number].append(state)
    return [torch.cat(states) for states in of_sentences]


def _states(model: Model, rows: list[list[int]], padding: int, layer: int, device: torch.device) -> Tensor:
    ids = pad_rows(rows, padding).to(device)
    mask = padding_mask([len(row) for row in rows]).to(device)
    encoder = model.base_model
    if layer == model.config.num_hidden_layers:
        states: Tensor = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return states.float()
    sites = family_of(model).sites(model)
    with _stopping(sites[max(layer, 1) - 1].module(model, "block"), before=not layer) as reached:
        encoder(input_ids=ids, attention_mask=mask)
    return reached[0].float()


class _ReachedError(Exception):
    """The forward pass has computed the requested layer."""


@contextmanager
def _stopping(module: nn.Module, *, before: bool) -> Iterator[list[Tensor]]:
    """Stop a forward pass before or after a module; its first input, or output, is put into the list."""
    states: list[Tensor] = []

    def stop(_module: nn.Module, *values: Tensor | tuple[Tensor, ...]) -> None:
        last = values[-1]
        states.append(last[0] if isinstance(last, tuple) else last)
        raise _ReachedError

    hook = module.register_forward_pre_hook(stop) if before else module.register_forward_hook(stop)
    try:
        yield states
    except _ReachedError:
        pass
    finally:
        hook.remove()
