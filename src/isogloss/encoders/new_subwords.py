"""New subwords for an encoder: learned from text, added to its tokenizer, and given embeddings.

A vocabulary for a language that an encoder has little of, as Wang et al. (2020, "Extending Multilingual BERT
to Low-Resource Languages") extend mBERT's: it is learned from text of the language, and the subwords that the
tokenizer lacks are added behind all others, whose ids stay. Their embeddings are averages of those of the old
subwords they were split into, of those of the words they translate (in the spirit of WECHSEL, Minixhofer et
al. 2022, with word alignments in the place of static embeddings), or drawn with the mean and variance of
the old ones.
"""

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain, islice, pairwise
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
from isogloss.encoders.subwords import SplitWords, split_words
from isogloss.encoders.tokenizers import (
    SMALLEST_COUNT,
    ModelJson,
    check_size,
    reading,
    unigram_pieces,
    word_pieces,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

AT_ONCE = 1000
"""Lines, or translations, that are split in one call."""

CONTINUING = "##"
"""What a WordPiece that continues a word begins with."""

UNKNOWN = "<unk>"
"""The unknown subword of the Unigram model that is learned; it is added nowhere."""

CHARACTERS = 0x10000
"""First code point of those that stand for old subwords while merges are learned: none of them is a space."""

Parts = Mapping[int, float]
"""Old subwords, by id, with their weights in an average; empty for none."""


def add_subwords(tokenizer: "PreTrainedTokenizerFast", lines: Iterable[str], *, size: int) -> None:
    """Learn subwords from text and add those that a tokenizer lacks, ``size`` at most, with new ids.

    Old subwords keep their ids, and text in which no new one occurs is split as before: WordPiece takes the
    longest subword, Unigram the likeliest split, and the merges of BPE come after all old ones. ConfigError
    if ``size`` is too small for the characters of the text, ModelError for a tokenizer of another kind.
    """
    backend = tokenizer.backend_tokenizer
    state = json.loads(backend.to_str())
    model = state["model"]
    if model["type"] not in _LEARN:
        raise ModelError(
            f"{tokenizer.name_or_path}: new subwords can be added to {', '.join(_LEARN)}; this tokenizer is "
            f"{model['type']}. Leave vocabulary out."
        )
    _fill(model, {token["id"]: token["content"] for token in state["added_tokens"]})
    _LEARN[model["type"]](backend, model, lines, size)
    backend.model = _from_state(state).model


def read_subwords(tokenizer: "PreTrainedTokenizerFast", path: Path) -> None:
    """Read a file written by ``write_tokenizer`` into a tokenizer; StorageError for a damaged file."""
    with reading(path) as state:
        tokenizer.backend_tokenizer.model = _from_state(state).model


def added_subwords(old: "PreTrainedTokenizerFast", new: "PreTrainedTokenizerFast") -> dict[int, str]:
    """Return the subwords that were added to a tokenizer, by id, ascending."""
    last = max(old.get_vocab().values())
    return {number: piece for piece, number in _by_id(new.get_vocab()) if number > last}


def subword_averages(old: "PreTrainedTokenizerFast", added: Mapping[int, str]) -> dict[int, Parts]:
    """Split each new subword into old ones; unknown subwords are none."""
    state = json.loads(old.backend_tokenizer.to_str())
    words, inside = old.backend_tokenizer.model, None
    if state["model"]["type"] == "WordPiece":
        inside = _continuing(state)
    averages: dict[int, Parts] = {}
    for number, piece in added.items():
        continues = inside is not None and piece.startswith(CONTINUING)
        tokens = inside.tokenize(piece[2:]) if inside and continues else words.tokenize(piece)
        averages[number] = Counter(token.id for token in tokens if token.id != old.unk_token_id)
    return averages


def word_translations(
    old: "PreTrainedTokenizerFast",
    new: "PreTrainedTokenizerFast",
    added: Container[int],
    pairs: Iterable[Translation],
) -> dict[int, Parts]:
    """Return for each new subword the old ones of the words that its own words are linked to.

    The first language of the pairs is the one that the encoder knows. Each link counts once, each old subword
    of a word for its share of the word.
    """
    weights: dict[int, dict[int, float]] = {}
    rest = iter(pairs)
    while batch := list(islice(rest, AT_ONCE)):
        words = [pair_words(pair) for pair in batch]
        first_sides = map(_by_word, split_words([first for first, _ in words], old))
        second_sides = map(_by_word, split_words([second for _, second in words], new))
        for pair, first, second in zip(batch, first_sides, second_sides, strict=True):
            for i, j in pair.links or ():
                for subword in filter(added.__contains__, second[j]):
                    parts = weights.setdefault(subword, {})
                    for part in first[i]:
                        parts[part] = parts.get(part, 0) + 1 / len(first[i])
    for parts in weights.values():
        parts.pop(old.unk_token_id, None)
    return dict(weights)


def add_embeddings(
    model: "PreTrainedModel", sources: Mapping[int, Parts], *, special: Container[int], seed: int
) -> None:
    """Give new subwords their embeddings, and the biases and weights of the masked-LM head for them.

    ``sources`` are the parts that each of them, by id, is the average of; a subword without parts is drawn
    from the normal distribution of the old, ordinary ones, in each dimension, from the seed and its id.
    """
    old = min(sources)
    if max(sources) >= len(model.get_input_embeddings().weight):
        with torch.random.fork_rng(devices=[]):
            model.resize_token_embeddings(max(sources) + 1, mean_resizing=False)
        connect(model)  # The head's output embeddings are another module now.
    ordinary = torch.tensor([number for number in range(old) if number not in special])
    for name, table in _tables(model):
        with torch.no_grad():
            old_rows = table[ordinary]
            mean, spread = old_rows.mean(dim=0), old_rows.std(dim=0)
            for number, parts in sources.items():
                drawn = torch.Generator().manual_seed(derive(seed, name, number))
                noise = torch.randn(mean.shape, generator=drawn)
                table[number] = _average(table, parts) if parts else mean + spread * noise


def _tables(model: "PreTrainedModel") -> Iterator[tuple[str, nn.Parameter]]:
    """Yield each parameter with a row for each subword: the embeddings, and those of the head."""
    embeddings = model.get_input_embeddings().weight
    for name, weight in model.named_parameters():
        in_head = not name.startswith(encoder_prefix(model))
        if weight is embeddings or (in_head and len(weight) == len(embeddings)):
            yield name, weight


def _average(table: Tensor, parts: Parts) -> Tensor:
    weights = torch.tensor(list(parts.values()), dtype=table.dtype)
    mean: Tensor = torch.tensordot(weights / weights.sum(), table[torch.tensor(list(parts))], dims=1)
    return mean


def _by_word(split: SplitWords) -> list[tuple[int, ...]]:
    places = [*split.first(), len(split.subwords)]
    return [split.subwords[first:end] for first, end in pairwise(places)]


def _by_id(vocabulary: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(vocabulary.items(), key=lambda pair: pair[1])


def _from_state(state: Mapping[str, object]) -> "Tokenizer":
    from tokenizers import Tokenizer

    return Tokenizer.from_str(json.dumps(state))


def _fill(model: ModelJson, added: Mapping[int, str]) -> None:
    """Add the added tokens to a vocabulary, so that later subwords get the next free ids."""
    vocabulary = model["vocab"]
    unigram = isinstance(vocabulary, list)
    ids = set(range(len(vocabulary))) if unigram else set(vocabulary.values())
    for number in range(max((*ids, *added)) + 1):
        if number not in ids:
            name = added.get(number, f"<unused {number}>")
            vocabulary.append([name, 0.0]) if unigram else vocabulary.update({name: number})


def _add_word_pieces(backend: "Tokenizer", model: ModelJson, lines: Iterable[str], size: int) -> None:
    learned = word_pieces(list(lines), size, backend)
    check_size(len(learned), size, "vocabulary.size", of="")
    for piece, _ in _by_id(learned):
        model["vocab"].setdefault(piece, len(model["vocab"]))


def _add_unigrams(backend: "Tokenizer", model: ModelJson, lines: Iterable[str], size: int) -> None:
    from tokenizers import Tokenizer, models

    def make(unigrams: ModelJson | None) -> "Tokenizer":
        pieces = [(UNKNOWN, 0.0)] if unigrams is None else [(*pair,) for pair in unigrams["vocab"]]
        tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
        tokenizer.pre_tokenizer = backend.pre_tokenizer
        if backend.normalizer is not None:
            tokenizer.normalizer = backend.normalizer
        return tokenizer

    learned = unigram_pieces(list(lines), size, (UNKNOWN,), make)["vocab"][1:]
    check_size(len(learned), size, "vocabulary.size", of="")
    old = {piece for piece, _ in model["vocab"]}
    least = min(score for _, score in model["vocab"])  # Unknown characters cost a little more than the least.
    model["vocab"] += [[piece, max(score, least)] for piece, score in learned if piece not in old]


def _add_merges(backend: "Tokenizer", model: ModelJson, lines: Iterable[str], size: int) -> None:
    """Learn further merges, of the old subwords, each encoded as a character."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    names = {number: piece for piece, number in model["vocab"].items()}
    unknown = backend.token_to_id(str(model["unk_token"])) if model["unk_token"] else None
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    text = list(_as_characters(backend, lines, unknown))
    letters = len(set(chain.from_iterable(text)) - {" "})
    trainer = trainers.BpeTrainer(
        vocab_size=letters + size, min_frequency=SMALLEST_COUNT, show_progress=False
    )
    trained.train_from_iterator(text, trainer)
    for first, second in json.loads(trained.to_str())["model"]["merges"]:
        pair = ["".join(names[ord(letter) - CHARACTERS] for letter in part) for part in (first, second)]
        model["vocab"].setdefault("".join(pair), len(model["vocab"]))
        model["merges"].append(pair)


def _as_characters(backend: "Tokenizer", lines: Iterable[str], unknown: int | None) -> Iterator[str]:
    rest = iter(lines)
    while batch := list(islice(rest, AT_ONCE)):
        for encoding in backend.encode_batch(batch, add_special_tokens=False):
            text, last_word = "", None
            for number, word in zip(encoding.ids, encoding.word_ids, strict=True):
                apart = word != last_word or number == unknown
                text += (" " if apart else "") + ("" if number == unknown else chr(CHARACTERS + number))
                last_word = None if number == unknown else word
            yield text


def _continuing(state: Mapping[str, ModelJson]) -> "WordPiece":
    """Return a model that splits the rest of a word as WordPiece does after its first subword."""
    from tokenizers import models

    model = state["model"]
    vocabulary = {piece[2:]: n for piece, n in model["vocab"].items() if piece.startswith(CONTINUING)}
    unknown = model["unk_token"]
    return models.WordPiece(
        vocabulary | {unknown: model["vocab"][unknown]}, unk_token=unknown, continuing_subword_prefix=""
    )


_LEARN: dict[str, Callable[["Tokenizer", ModelJson, Iterable[str], int], None]] = {
    "WordPiece": _add_word_pieces,
    "Unigram": _add_unigrams,
    "BPE": _add_merges,
}
"""Functions that extend a tokenizer's model, by its type in tokenizer.json."""
