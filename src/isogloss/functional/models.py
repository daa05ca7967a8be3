"""Encoders and corpora by name, and what every function does: check a model, show progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from torch import nn

from isogloss.core.errors import ModelError
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.untrusted import from_home
from isogloss.data.corpus import Split
from isogloss.data.examples import Example
from isogloss.data.sources import Sources
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.peft_folders import completed
from isogloss.encoders.families import family_named
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.folders import SHIPPED, shipped_folder
from isogloss.encoders.hub import is_hub_name
from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.recipes.descriptions import register_corpus

SECONDS_BEFORE_BAR = 2
"""What takes longer shows a bar."""


def load_encoder(name: str | Path) -> tuple[Model, Tokenizer]:
    """Load an encoder, without a head and in evaluation mode, and its tokenizer.

    ``name`` is "shipped", a folder of Hugging Face files or of adapters of peft, which are merged into their
    base, or a name on the hub (name@revision). ModelError says what is missing.

    >>> import isogloss
    >>> model, tokenizer = isogloss.load_encoder("shipped")
    >>> model.config.num_hidden_layers
    4
    """
    source: str | Path = shipped_folder() if name == SHIPPED else name
    if not (isinstance(source, str) and is_hub_name(source)):
        source = completed(from_home(source))
    return load_model(source), load_tokenizer(source)


def load_corpus(
    name: str, language: str, split: Split = "train", *, data: str | Path = "", examples: int = 0
) -> list[Example]:
    """Read a split of a corpus in a language, or of bitext in a pair of languages such as "en-sw".

    ``data`` is a folder, "hub" for the Hugging Face hub, or nothing for the built-in languages (qaa to qai);
    with ``examples`` so many are drawn. What ``isogloss list corpora`` names can be read, and the file of a
    description. ConfigError for an unknown name, DataError for a broken or missing file.

    >>> import isogloss
    >>> [sentence] = isogloss.load_corpus("ud", "qaa", "test", examples=1)
    >>> len(sentence.words) == len(sentence.tags)
    True
    """
    corpus = register_corpus(name, str(data))
    return Sources(data=str(data)).examples(corpus, language, split, examples=examples)


def require_encoder(model: nn.Module, function: str) -> None:
    """Raise ModelError unless a model is one of transformers, of a family whose layers are known."""
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "model_type"):
        raise ModelError(
            f"{function}: {type(model).__name__} has no config.model_type, so its layers are unknown. Give a "
            f"Hugging Face model of a known family: {', '.join(sorted(FAMILIES))}."
        )
    family_named(config.model_type, f"{function}: {type(model).__name__}")


@contextmanager
def showing_progress(on_progress: OnProgress | None) -> Iterator[OnProgress]:
    """Report progress to a function; without one a bar appears after two seconds, in notebooks too."""
    if on_progress is not None:
        yield on_progress
        return
    from tqdm.auto import tqdm

    begin, bars = monotonic(), list[Any]()

    def show(progress: Progress) -> None:
        if not bars and monotonic() - begin > SECONDS_BEFORE_BAR:
            bars.append(tqdm(leave=False))
        for bar in bars:
            bar.total, bar.n = progress.total, progress.done
            bar.set_description(f"{progress.what} {progress.remark}".strip())

    try:
        yield show
    finally:
        for bar in bars:
            bar.close()
