"""States of subwords in one layer of an encoder; later layers are not computed, long sentences windowed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.encoders import family_of
from isogloss.encoders.language_context import active_language
from isogloss.encoders.subwords import SplitWords, Window, special_subwords, windows
from isogloss.training.evaluation import in_batches
from isogloss.training.precision import scoring
from isogloss.training.states import check_layers

States = Float[Tensor, "subword dim"]

OVERLAP = 64
"""Subwords that neighbouring windows of a sentence longer than the encoder takes share."""


def default_layer(layers: int) -> int:
    """Return the layer two thirds of the way up: SimAlign's 8th of 12, the best for mBERT and XLM-R base."""
    return max(1, round(layers * 2 / 3))


def subword_states(
    model: Any,
    tokenizer: Any,
    sentences: Sequence[SplitWords],
    *,
    layer: int,
    precision: str,
    languages: Sequence[str] = (),
) -> list[States]:
    """Return for each sentence the states of its subwords, special ones left out, in float32.

    They stay on the model's device. Layer 0 is the embeddings, -1 the last; ConfigError when there is none.
    ``languages`` are the sentences', which an encoder with language modules or maps must know.
    """
    check_layers(model, [layer])
    layer %= model.config.num_hidden_layers + 1
    opening, closing = special_subwords(tokenizer)
    limit = tokenizer.model_max_length - 2
    overlap = min(OVERLAP, limit // 2)
    places: list[tuple[int, Window]] = [
        (number, window)
        for number, sentence in enumerate(sentences)
        for window in windows(len(sentence.subwords), limit=limit, overlap=overlap)
        if sentence.subwords
    ]
    found: list[list[Tensor]] = [[] for _ in sentences]
    parts: list[Tensor] = [torch.empty(0)] * len(places)
    lengths = [window.stop - window.start + 2 for _, window in places]
    with scoring(model, precision) as device:
        for group in in_batches(lengths):
            rows = [
                [opening, *sentences[number].subwords[window.start : window.stop], closing]
                for number, window in (places[place] for place in group)
            ]
            own = [languages[number] for number, _ in (places[place] for place in group)] if languages else ""
            with active_language(model, own):
                states = _states(model, rows, tokenizer.pad_token_id, layer, device)
            for place, state in zip(group, states, strict=True):
                window = places[place][1]
                parts[place] = state[1 + window.own_start - window.start : 1 + window.own_stop - window.start]
    for (number, _), part in zip(places, parts, strict=True):
        found[number].append(part)
    dim = model.config.hidden_size
    return [
        torch.cat(own) if own else torch.empty(0, dim, device=next(model.parameters()).device)
        for own in found
    ]


def _states(model: Any, rows: list[list[int]], padding: int, layer: int, device: torch.device) -> Tensor:
    longest = max(map(len, rows))
    given = torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows], device=device)
    lengths = torch.tensor([len(row) for row in rows], device=device)
    mask = (torch.arange(longest, device=device)[None, :] < lengths[:, None]).long()
    encoder = model.base_model
    if layer == model.config.num_hidden_layers:
        states: Tensor = encoder(input_ids=given, attention_mask=mask).last_hidden_state
        return states.float()
    with _stopping_after(_module(model, layer)) as reached:
        encoder(input_ids=given, attention_mask=mask)
    return reached[0].float()


def _module(model: Any, layer: int) -> nn.Module:
    """Return the module whose output is the states of a layer."""
    family = family_of(model)
    return family.sites(model)[layer - 1].module(model, "block") if layer else family.embeddings(model)


class _ReachedError(Exception):
    """The forward pass has come as far as it need."""


@contextmanager
def _stopping_after(module: nn.Module) -> Iterator[list[Tensor]]:
    """Let a forward pass within end at a module; its states are put into the list."""
    states: list[Tensor] = []

    def stop(_module: nn.Module, _given: Any, output: Any) -> None:
        states.append(output[0] if type(output) is tuple else output)
        raise _ReachedError

    hook = module.register_forward_hook(stop)
    try:
        yield states
    except _ReachedError:
        pass
    finally:
        hook.remove()
