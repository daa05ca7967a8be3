"""Encoders and corpora by name."""

from pathlib import Path
from typing import Any, Literal, overload

from isogloss.core.arguments import checks_arguments
from isogloss.core.run_parts import Count
from isogloss.core.untrusted import from_home
from isogloss.data.corpora.own import register_corpus
from isogloss.data.corpus import Split
from isogloss.data.examples import ParsedSentence, Question, SentencePair, TaggedSentence, Translation
from isogloss.data.sources import Sources
from isogloss.encoders.added.peft_folders import complete_folder
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.folders import SHIPPED, shipped_folder
from isogloss.encoders.hub import is_hub_name
from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer


def load_encoder(name: str | Path) -> tuple[Model, Tokenizer]:
    """Load an encoder, without a head and in evaluation mode, and its tokenizer.

    ``name`` is "shipped", a folder of Hugging Face files or of adapters of peft, which are merged into their
    base, or a name on the hub (name@revision). ModelError says what is missing.

    Device: the CPU; move the model by its ``to``. Cost: reads the folder once; a name on the hub is
    downloaded unless it is in the cache.

    >>> import isogloss
    >>> model, tokenizer = isogloss.load_encoder("shipped")
    >>> model.config.num_hidden_layers
    4
    """
    source: str | Path = shipped_folder() if name == SHIPPED else name
    if not (isinstance(source, str) and is_hub_name(source)):
        source = complete_folder(from_home(source))
    return load_model(source), load_tokenizer(source)


@overload
def load_corpus(
    name: Literal["ud"],
    language: str,
    split: Split = "train",
    *,
    data: str | Path = "",
    examples: Count = 0,
) -> list[ParsedSentence]: ...
@overload
def load_corpus(
    name: Literal["bitext", "flores200", "ntrex"],
    language: str,
    split: Split = "train",
    *,
    data: str | Path = "",
    examples: Count = 0,
) -> list[Translation]: ...
@overload
def load_corpus(
    name: Literal["masakhaner", "masakhaner2", "massive-slots", "wikiann"],
    language: str,
    split: Split = "train",
    *,
    data: str | Path = "",
    examples: Count = 0,
) -> list[TaggedSentence]: ...
@overload
def load_corpus(
    name: Literal["mrpc", "multinli", "pawsx", "snli", "xnli"],
    language: str,
    split: Split = "train",
    *,
    data: str | Path = "",
    examples: Count = 0,
) -> list[SentencePair]: ...
@overload
def load_corpus(
    name: Literal["mlqa", "squad", "tydiqa"],
    language: str,
    split: Split = "train",
    *,
    data: str | Path = "",
    examples: Count = 0,
) -> list[Question]: ...
@overload
def load_corpus(
    name: str, language: str, split: Split = "train", *, data: str | Path = "", examples: Count = 0
) -> list[Any]: ...
@checks_arguments
def load_corpus(
    name: str, language: str, split: Split = "train", *, data: str | Path = "", examples: Count = 0
) -> list[Any]:
    """Read a split of a corpus in a language, or of bitext in a pair of languages such as "en-sw".

    ``data`` is a folder, "hub" for the Hugging Face hub, or nothing for the built-in languages (qaa to qai);
    with ``examples`` so many are drawn. What ``isogloss list corpora`` names can be read, and the file of a
    description. ConfigError for an unknown name, DataError for a broken or missing file.

    Device: none. Cost: reads the file of the split; text of the built-in languages is generated at the
    first call.

    >>> import isogloss
    >>> [sentence] = isogloss.load_corpus("ud", "qaa", "test", examples=1)
    >>> len(sentence.words) == len(sentence.tags)
    True
    """
    corpus = register_corpus(name, str(data))
    return Sources(data=str(data)).examples(corpus, language, split, examples=examples)
