"""New subwords for an encoder: learned from text, added to its tokenizer, with their embeddings.

A vocabulary for a language of which an encoder has seen little, as Wang et al. (2020, "Extending Multilingual
BERT to Low-Resource Languages") extend mBERT's. It is learned from text of the language, and missing subwords
are added after all others, whose ids stay. New embeddings are averages of the embeddings of the old subwords
into which they were split, averages of the embeddings of the words they translate (in the spirit of WECHSEL,
Minixhofer et al. 2022, with word alignments instead of static embeddings), or drawn with the mean and
variance of the old ones.
"""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.core.identity import derive
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.encoders.added.language_modules import connect
from isogloss.encoders.family import encoder_prefix
from isogloss.encoders.learned_subwords import SMALLEST_COUNT, ModelJson, check_size, reading, unigram_pieces
from isogloss.encoders.subwords import SplitWords, split_words
from isogloss.features.pretraining.new_tokenizers import word_pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

AT_ONCE = 1000
"""Number of lines, or translations, that are tokenized in one call."""

CONTINUING = "##"
"""Prefix of a WordPiece that continues a word."""

UNKNOWN = "<unk>"
"""Unknown subword of the learned Unigram model. It is not added to the tokenizer."""

CHARACTERS = 0x10000
"""First code point of the characters that stand for old subwords while merges are learned. None is a
space."""

Parts = Mapping[int, float]
"""Ids of old subwords with their weights in an average, possibly empty."""


def add_subwords(tokenizer: "PreTrainedTokenizerFast", lines: Iterable[str], *, size: int) -> None:
    """Learn subwords from text and add those that a tokenizer lacks, ``size`` at most, with new ids.

    Old subwords keep their ids, and text without any new subword is split as before: WordPiece uses the
    longest subword, Unigram the likeliest split, and the merges of BPE come after all old ones. Raises
    ConfigError if ``size`` is too small for the characters of the text, ModelError for an unsupported kind of
    tokenizer.
    """
    backend = tokenizer.backend_tokenizer
    state = json.loads(backend.to_str())
    model = state["model"]
    if model["type"] not in _LEARN:
        raise ModelError(
            f"{tokenizer.name_or_path}: new subwords can be added to {', '.join(_LEARN)}; this tokenizer is "
            f"{model['type']}. Remove vocabulary."
        )
    _fill(model, {token["id"]: token["content"] for token in state["added_tokens"]})
    _LEARN[model["type"]](backend, model, lines, size)
    backend.model = _load_state(state).model


def read_subwords(tokenizer: "PreTrainedTokenizerFast", path: Path) -> None:
    """Read a file written by ``write_tokenizer`` into a tokenizer.

    Raises StorageError for a damaged file.
    """
    with reading(path) as state:
        tokenizer.backend_tokenizer.model = _load_state(state).model


def added_subwords(
    old_tokenizer: "PreTrainedTokenizerFast", new_tokenizer: "PreTrainedTokenizerFast"
) -> dict[int, str]:
    """Return the subwords that were added to a tokenizer, by id, ascending."""
    last_id = max(old_tokenizer.get_vocab().values())
    return {subword: piece for piece, subword in _sort_by_id(new_tokenizer.get_vocab()) if subword > last_id}


def subword_averages(
    old_tokenizer: "PreTrainedTokenizerFast", new_subwords: Mapping[int, str]
) -> dict[int, Parts]:
    """Split each new subword into old ones, without unknown subwords."""
    state = json.loads(old_tokenizer.backend_tokenizer.to_str())
    words = old_tokenizer.backend_tokenizer.model
    inside = None
    if state["model"]["type"] == "WordPiece":
        inside = _inner_word_piece(state)
    averages: dict[int, Parts] = {}
    for subword, piece in new_subwords.items():
        continues = inside is not None and piece.startswith(CONTINUING)
        tokens = inside.tokenize(piece[2:]) if inside and continues else words.tokenize(piece)
        averages[subword] = Counter(token.id for token in tokens if token.id != old_tokenizer.unk_token_id)
    return averages


def word_translations(
    old_tokenizer: "PreTrainedTokenizerFast",
    new_tokenizer: "PreTrainedTokenizerFast",
    new_subwords: Container[int],
    pairs: Iterable[Translation],
) -> dict[int, Parts]:
    """Return for each new subword the old subwords of the words to which its words are linked.

    The encoder knows the first language of the pairs. Each link counts once, and each old subword of a word
    for its share of the word.
    """
    weights: dict[int, dict[int, float]] = {}
    pair_iterator = iter(pairs)
    while batch := list(islice(pair_iterator, AT_ONCE)):
        words = [pair_words(pair) for pair in batch]
        source_splits = split_words([source_words for source_words, _ in words], old_tokenizer)
        target_splits = split_words([target_words for _, target_words in words], new_tokenizer)
        for pair, source_split, target_split in zip(batch, source_splits, target_splits, strict=True):
            source = _subwords_by_word(source_split)
            target = _subwords_by_word(target_split)
            for i, j in pair.links or ():
                for subword in target[j]:
                    if subword not in new_subwords:
                        continue
                    parts = weights.setdefault(subword, {})
                    for part in source[i]:
                        parts[part] = parts.get(part, 0) + 1 / len(source[i])
    for parts in weights.values():
        parts.pop(old_tokenizer.unk_token_id, None)
    return dict(weights)


def add_embeddings(
    model: "PreTrainedModel", sources: Mapping[int, Parts], *, special: Container[int], seed: int
) -> None:
    """Set the embeddings of new subwords, and their biases and weights in the masked-LM head.

    ``sources`` are, by id, the parts of each new subword's average. A subword without parts is drawn from the
    normal distribution of the old, ordinary ones, in each dimension, from the seed and its id.
    """
    old_size = min(sources)
    if max(sources) >= len(model.get_input_embeddings().weight):
        with torch.random.fork_rng(devices=[]):
            model.resize_token_embeddings(max(sources) + 1, mean_resizing=False)
        connect(model)  # The head's output embeddings are a new module.
    ordinary = torch.tensor([subword for subword in range(old_size) if subword not in special])
    for name, table in _tables(model):
        with torch.no_grad():
            old_rows = table[ordinary]
            mean = old_rows.mean(dim=0)
            spread = old_rows.std(dim=0)
            for subword, parts in sources.items():
                generator = torch.Generator().manual_seed(derive(seed, name, subword))
                noise = torch.randn(mean.shape, generator=generator)
                table[subword] = _average(table, parts) if parts else mean + spread * noise


def _tables(model: "PreTrainedModel") -> Iterator[tuple[str, nn.Parameter]]:
    """Yield each parameter with a row for each subword: the embeddings, and the head's parameters."""
    embeddings = model.get_input_embeddings().weight
    for name, weight in model.named_parameters():
        is_in_head = not name.startswith(encoder_prefix(model))
        if weight is embeddings or (is_in_head and len(weight) == len(embeddings)):
            yield name, weight


def _average(table: Tensor, parts: Parts) -> Tensor:
    weights = torch.tensor(list(parts.values()), dtype=table.dtype)
    mean: Tensor = torch.tensordot(weights / weights.sum(), table[torch.tensor(list(parts))], dims=1)
    return mean


def _subwords_by_word(split: SplitWords) -> list[tuple[int, ...]]:
    edges = [*split.first(), len(split.subwords)]
    return [split.subwords[start:stop] for start, stop in pairwise(edges)]


def _sort_by_id(vocabulary: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(vocabulary.items(), key=itemgetter(1))


def _load_state(state: Mapping[str, object]) -> "Tokenizer":
    from tokenizers import Tokenizer

    return Tokenizer.from_str(json.dumps(state))


def _fill(model: ModelJson, added: Mapping[int, str]) -> None:
    """Add the added tokens to a vocabulary, so that later subwords get the next free ids."""
    vocabulary = model["vocab"]
    is_unigram = isinstance(vocabulary, list)
    ids = set(range(len(vocabulary))) if is_unigram else set(vocabulary.values())
    for subword in range(max((*ids, *added)) + 1):
        if subword not in ids:
            name = added.get(subword, f"<unused {subword}>")
            vocabulary.append([name, 0.0]) if is_unigram else vocabulary.update({name: subword})


def _add_word_pieces(backend: "Tokenizer", model: ModelJson, lines: Iterable[str], size: int) -> None:
    new_ids = word_pieces(list(lines), size, backend)
    check_size(len(new_ids), size, "vocabulary.size", content="")
    for piece, _ in _sort_by_id(new_ids):
        model["vocab"].setdefault(piece, len(model["vocab"]))


def _add_unigrams(backend: "Tokenizer", model: ModelJson, lines: Iterable[str], size: int) -> None:
    from tokenizers import Tokenizer, models

    def make(unigrams: ModelJson | None) -> "Tokenizer":
        pieces = [(UNKNOWN, 0.0)] if unigrams is None else [tuple(pair) for pair in unigrams["vocab"]]
        tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
        tokenizer.pre_tokenizer = backend.pre_tokenizer
        if backend.normalizer is not None:
            tokenizer.normalizer = backend.normalizer
        return tokenizer

    new_pieces = unigram_pieces(list(lines), size, (UNKNOWN,), make)["vocab"][1:]
    check_size(len(new_pieces), size, "vocabulary.size", content="")
    old_pieces = {piece for piece, _ in model["vocab"]}
    minimum = min(score for _, score in model["vocab"])  # Unknown characters cost a little more than it.
    model["vocab"] += [[piece, max(score, minimum)] for piece, score in new_pieces if piece not in old_pieces]


def _add_merges(backend: "Tokenizer", model: ModelJson, lines: Iterable[str], size: int) -> None:
    """Learn further merges of the old subwords, each encoded as a character."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    names = {subword: piece for piece, subword in model["vocab"].items()}
    unknown_id = backend.token_to_id(str(model["unk_token"])) if model["unk_token"] else None
    merge_tokenizer = Tokenizer(models.BPE())
    merge_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    text = list(_encode_as_characters(backend, lines, unknown_id))
    letters = len(set(chain.from_iterable(text)) - {" "})
    trainer = trainers.BpeTrainer(
        vocab_size=letters + size, min_frequency=SMALLEST_COUNT, show_progress=False
    )
    merge_tokenizer.train_from_iterator(text, trainer)
    for left, right in json.loads(merge_tokenizer.to_str())["model"]["merges"]:
        pair = ["".join(names[ord(letter) - CHARACTERS] for letter in part) for part in (left, right)]
        model["vocab"].setdefault("".join(pair), len(model["vocab"]))
        model["merges"].append(pair)


def _encode_as_characters(
    backend: "Tokenizer", lines: Iterable[str], unknown_id: int | None
) -> Iterator[str]:
    line_iterator = iter(lines)
    while batch := list(islice(line_iterator, AT_ONCE)):
        for encoding in backend.encode_batch(batch, add_special_tokens=False):
            text = ""
            last_word = None
            for subword, word in zip(encoding.ids, encoding.word_ids, strict=True):
                is_unknown = subword == unknown_id
                text += " " if word != last_word or is_unknown else ""
                text += "" if is_unknown else chr(CHARACTERS + subword)
                last_word = None if is_unknown else word
            yield text


def _inner_word_piece(state: Mapping[str, ModelJson]) -> "WordPiece":
    """Return a model that splits the inside of a word like WordPiece after its first subword."""
    from tokenizers import models

    model = state["model"]
    vocabulary = {piece[2:]: n for piece, n in model["vocab"].items() if piece.startswith(CONTINUING)}
    unknown_piece = model["unk_token"]
    return models.WordPiece(
        vocabulary | {unknown_piece: model["vocab"][unknown_piece]},
        unk_token=unknown_piece,
        continuing_subword_prefix="",
    )


_LEARN: dict[str, Callable[["Tokenizer", ModelJson, Iterable[str], int], None]] = {
    "WordPiece": _add_word_pieces,
    "Unigram": _add_unigrams,
    "BPE": _add_merges,
}
"""Functions that extend a tokenizer's model, by its type in tokenizer.json."""
