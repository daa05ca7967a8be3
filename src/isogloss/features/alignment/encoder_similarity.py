"""Alignment by similar encoder states (SimAlign, Jalili Sabet, Dufter, Yvon & Schütze 2020).

No statistics of the bitext are needed, so a single pair can be aligned. Subwords are matched (Sec. 2: argmax,
itermax or match), and two words are linked if any of their subwords are; or words, as the mean of their
subwords, are matched directly. No layer above the compared one is computed.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from isogloss.aligners.setting import AlignSetting
from isogloss.core.progress import Progress
from isogloss.data.formats.word_links import Aligned, pair_words
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.families import family_of, has_known_layers
from isogloss.encoders.family import Model, Tokenizer, check_layers
from isogloss.encoders.subwords import (
    SplitWords,
    Window,
    pad_rows,
    padding_mask,
    padding_of,
    split_words,
    text_frame,
    windows,
)
from isogloss.features.alignment.matching import Matching
from isogloss.training.length_batches import in_batches
from isogloss.training.precision import scoring

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
    opening, closing = text_frame(tokenizer)
    special = len(opening) + len(closing)
    limit = tokenizer.model_max_length - special
    overlap = min(WINDOW_OVERLAP, limit // 2)
    parts: list[tuple[int, Window]] = [
        (sentence_index, window)
        for sentence_index, sentence in enumerate(sentences)
        for window in windows(len(sentence.subwords), limit=limit, overlap=overlap)
        if sentence.subwords
    ]
    no_states = torch.empty(0, model.config.hidden_size, device=next(model.parameters()).device)
    window_states = [no_states] * len(parts)
    lengths = [window.stop - window.start + special for _, window in parts]
    with scoring(model, precision) as device:
        for group in in_batches(lengths):
            rows = [
                [*opening, *sentences[sentence_index].subwords[window.start : window.stop], *closing]
                for sentence_index, window in (parts[index] for index in group)
            ]
            active = [languages[parts[index][0]] for index in group] if languages else ""
            with active_language(model, active):
                states = _states(model, rows, padding_of(tokenizer), layer, device)
            for index, state in zip(group, states, strict=True):
                window = parts[index][1]
                start = len(opening) - window.start
                window_states[index] = state[start + window.own_start : start + window.own_stop]
    sentence_states: list[list[Tensor]] = [[no_states] for _ in sentences]
    for (sentence_index, _), state in zip(parts, window_states, strict=True):
        sentence_states[sentence_index].append(state)
    return [torch.cat(states) for states in sentence_states]


def _states(model: Model, rows: list[list[int]], padding: int, layer: int, device: torch.device) -> Tensor:
    ids = pad_rows(rows, padding).to(device)
    mask = padding_mask([len(row) for row in rows]).to(device)
    encoder = model.base_model
    if layer == model.config.num_hidden_layers:
        states: Tensor = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        return states.float()
    if not has_known_layers(model):
        states = encoder(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[layer]
        return states.float()
    sites = family_of(model).sites(model)
    with _stopping(sites[max(layer, 1) - 1].module(model, "block"), at_input=not layer) as outputs:
        encoder(input_ids=ids, attention_mask=mask)
    return outputs[0].float()


class _ReachedError(Exception):
    """The forward pass has computed the requested layer."""


@contextmanager
def _stopping(module: nn.Module, *, at_input: bool) -> Iterator[list[Tensor]]:
    """Stop a forward pass at the input, or output, of a module, and yield a list that receives it."""
    states: list[Tensor] = []

    def stop(_module: nn.Module, *values: Tensor | tuple[Tensor, ...]) -> None:
        output = values[-1]
        states.append(output[0] if isinstance(output, tuple) else output)
        raise _ReachedError

    hook = module.register_forward_pre_hook(stop) if at_input else module.register_forward_hook(stop)
    with hook, suppress(_ReachedError):
        yield states


PAIRS_PER_BLOCK = 1024
"""Pairs whose states are in memory at a time."""

SIMILARITIES_PER_BATCH = 1 << 20
"""Similarities computed at a time, padding included."""

Similarity = Float[Tensor, "pair first second"]
Linked = Bool[Tensor, "pair first second"]

DISCOUNT = 0.9
"""Factor of a similarity with a word that is linked already (SimAlign's α)."""

PADDING_SIMILARITY = -1.0
"""Below every similarity: padding is never chosen."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How words are linked. The fields are those of the aligner ``encoder``."""

    matching: Matching = "argmax"
    layer: int | None = None
    unit: Literal["subword", "word"] = "subword"
    rounds: int = 2
    distortion: float = 0.0


def align_pairs(model: Model, tokenizer: Tokenizer, setting: AlignSetting, rule: Rule) -> list[Aligned]:
    """Align every pair by the states of a loaded encoder, on its device."""
    layers = model.config.num_hidden_layers
    layer = default_layer(layers) if rule.layer is None else rule.layer
    aligned: list[Aligned] = []
    for start in range(0, len(setting.pairs), PAIRS_PER_BLOCK):
        block = setting.pairs[start : start + PAIRS_PER_BLOCK]
        texts = [words for pair in block for words in pair_words(pair)]
        splits = split_words(texts, tokenizer)
        states = subword_states(
            model,
            tokenizer,
            splits,
            layer=layer,
            precision=setting.precision,
            languages=setting.languages * len(block),
        )
        aligned += _align_block(splits, states, rule)
        setting.on_progress(Progress(what="alignment", done=len(aligned), total=len(setting.pairs)))
    return aligned


def _align_block(splits: Sequence[SplitWords], states: Sequence[Tensor], rule: Rule) -> list[Aligned]:
    """Align a block of pairs. Their two sides alternate."""
    units = [_units(split, state, rule.unit) for split, state in zip(splits, states, strict=True)]
    pairs = range(len(splits) // 2)
    results = [Aligned(links=())] * len(pairs)
    sizes = [(len(units[2 * pair][1]), len(units[2 * pair + 1][1])) for pair in pairs]
    for group in _groups(sizes):
        links = _links([(units[2 * pair], units[2 * pair + 1]) for pair in group], rule)
        for pair, aligned in zip(group, links, strict=True):
            results[pair] = aligned
    return results


def _units(split: SplitWords, states: Tensor, unit: str) -> tuple[tuple[int, ...], Tensor]:
    """Return the word and the unit vector of each unit that is matched."""
    words = split.words
    if unit == "word" and words:
        indices = torch.tensor(words, device=states.device)
        sums = torch.zeros(words[-1] + 1, states.shape[1], device=states.device)
        states = sums.index_add_(0, indices, states)  # The mean has the same direction.
        words = tuple(range(words[-1] + 1))
    return words, torch.nn.functional.normalize(states, dim=1)


def _links(group: list[tuple[tuple[tuple[int, ...], Tensor], ...]], rule: Rule) -> Iterator[Aligned]:
    sides = [[pair[side] for pair in group] for side in (0, 1)]
    first, second = (pad_sequence([vectors for _, vectors in side], batch_first=True) for side in sides)
    lengths = [torch.tensor([len(words) for words, _ in side], device=first.device) for side in sides]
    similar = apply_distortion(cosine_similarities(first, second, (lengths[0], lengths[1])), rule.distortion)
    matched = match_subwords(similar, rule.matching, rounds=rule.rounds).nonzero()
    scores = similar.values[matched.unbind(1)].tolist()
    scored_links: list[dict[tuple[int, int], float]] = [{} for _ in group]
    for (pair, row, column), score in zip(matched.tolist(), scores, strict=True):
        link = (group[pair][0][0][row], group[pair][1][0][column])
        scored_links[pair][link] = max(score, scored_links[pair].get(link, 0.0))
    for links in scored_links:
        order = sorted(links)
        yield Aligned(links=tuple(order), scores=tuple(links[link] for link in order))


def _groups(sizes: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield groups of pairs of similar size, which need little padding.

    Pairs with an empty side are skipped.
    """
    group: list[int] = []
    longest = (0, 0)
    for index in sorted(range(len(sizes)), key=sizes.__getitem__):
        rows, columns = sizes[index]
        if not rows or not columns:
            continue
        longest = (max(longest[0], rows), max(longest[1], columns))
        if group and (len(group) + 1) * longest[0] * longest[1] > SIMILARITIES_PER_BATCH:
            yield group
            group, longest = [], (rows, columns)
        group.append(index)
    if group:
        yield group


@dataclass(frozen=True)
class Similarities:
    """Similarities in [0, 1] of the subwords of sentence pairs, and a mask of subwords without padding."""

    values: Similarity
    real: Linked


def cosine_similarities(
    source_vectors: Float[Tensor, "pair first dim"],
    target_vectors: Float[Tensor, "pair second dim"],
    lengths: tuple[Tensor, Tensor],
) -> Similarities:
    """Return (c + 1) / 2 of the cosines c of unit vectors. ``lengths`` are their numbers without padding."""
    rows, columns = (
        torch.arange(side.shape[1], device=side.device)[None, :] < length[:, None]
        for side, length in zip((source_vectors, target_vectors), lengths, strict=True)
    )
    values = (torch.bmm(source_vectors, target_vectors.transpose(1, 2)) + 1) / 2
    return Similarities(values.clamp(0, 1), rows[:, :, None] & columns[:, None, :])


def apply_distortion(similarities: Similarities, weight: float) -> Similarities:
    """Multiply similarities by 1 − κ·(x/(m−1) − y/(n−1))², with κ the weight.

    x and y are positions from 0 in texts of m and n subwords: both ends of a text have the relative positions
    0 and 1. A pair with a side of a single subword stays unchanged.
    """
    if not weight:
        return similarities
    rows, columns = similarities.real.any(2).sum(1), similarities.real.any(1).sum(1)
    device = similarities.values.device
    row_positions, column_positions = (
        torch.arange(size, device=device)[None, :] / (count - 1).clamp(min=1)[:, None]
        for size, count in zip(similarities.values.shape[1:], (rows, columns), strict=True)
    )
    factor = 1 - weight * (row_positions[:, :, None] - column_positions[:, None, :]) ** 2
    factor[(rows < 2) | (columns < 2)] = 1.0
    return Similarities(similarities.values * factor, similarities.real)


def match_subwords(similarities: Similarities, matching: Matching, *, rounds: int) -> Linked:
    """Return the links of every pair. ``rounds`` is the number of iterations of itermax. Argmax has one."""
    if matching == "match":
        return match(similarities)
    return itermax(similarities, rounds if matching == "itermax" else 1)


def itermax(similarities: Similarities, rounds: int) -> Linked:
    """Link subwords that are each other's most similar one (the first of equals), and repeat that.

    Links are kept; an unlinked subword may be linked, at a discount, to a linked one.

    Pairs with a side of at most two subwords have a single iteration; the others end when all subwords of one
    side are linked.
    """
    values, is_word = similarities.values, similarities.real
    links = _mutual(values, is_word)
    is_small = torch.minimum(is_word.any(2).sum(1), is_word.any(1).sum(1)) <= 2
    for _ in range(rounds - 1):
        free_first, free_second = is_word.any(2) & ~links.any(2), is_word.any(1) & ~links.any(1)
        is_complete = is_small | ~free_first.any(1) | ~free_second.any(1)
        free_words = free_first[:, :, None].float() + free_second[:, None, :].float()
        candidates = (free_words > 0) & ~is_complete[:, None, None] & is_word
        new_links = _mutual(values * (DISCOUNT * free_words).clamp(max=1), is_word) & candidates
        if not (new_links & ~links).any():
            break
        links = links | new_links
    return links


def match(similarities: Similarities) -> Linked:
    """Return the one-to-one links with the greatest sum of similarities (maximum matching)."""
    from scipy.optimize import linear_sum_assignment

    links = torch.zeros_like(similarities.real)
    values = similarities.values.double().cpu().numpy()
    rows = similarities.real.any(2).sum(1).tolist()
    columns = similarities.real.any(1).sum(1).tolist()
    for pair, (height, width) in enumerate(zip(rows, columns, strict=True)):
        row_indices, column_indices = linear_sum_assignment(values[pair, :height, :width], maximize=True)
        links[pair, torch.from_numpy(row_indices), torch.from_numpy(column_indices)] = True
    return links


def _mutual(values: Similarity, is_word: Linked) -> Linked:
    values = values.masked_fill(~is_word, PADDING_SIMILARITY)
    forward = torch.zeros_like(is_word).scatter_(2, values.argmax(2, keepdim=True), value=True)
    backward = torch.zeros_like(is_word).scatter_(1, values.argmax(1, keepdim=True), value=True)
    return forward & backward & is_word
