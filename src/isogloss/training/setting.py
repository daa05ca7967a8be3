"""What a method is given: the run's parts as things to use, and nothing about where they came from."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Architecture, Modules, Optimization
from isogloss.data.examples import Example, Translation
from isogloss.tasks import Task


@dataclass(frozen=True, kw_only=True)
class TextSetting:
    """What a pretraining method is given."""

    text: Callable[[str], Iterator[str]]
    """Lines of one language."""
    translations: Callable[[str, str], Iterator[Translation]] | None
    """Translations between two languages; None when the run names no bitext."""
    languages: tuple[str, ...]
    architecture: Architecture
    folder: Path
    """A folder of its own, kept until the run is finished."""
    seed: int
    modules: Modules | None = None
    """What each language has for itself; None when all is shared."""
    held_out: Callable[[str], Iterator[str]] | None = None
    """Lines of one language that are not among those of ``text``; None when none are held out."""
    on_progress: OnProgress = no_progress


@dataclass(frozen=True, kw_only=True)
class AdjustSetting:
    """What a method that adjusts an encoder is given."""

    start: str
    """Folder or name of the encoder."""
    bitext: Mapping[str, list[Translation]]
    """By pair of languages (en-es, the source first): translations with the links of their words."""
    folder: Path
    """A folder of its own, kept until the run is finished."""
    seed: int
    on_progress: OnProgress = no_progress


@dataclass(frozen=True, kw_only=True)
class TranslationSetting:
    """What a method that trains a translation model is given."""

    bitext: Mapping[str, list[Translation]]
    """By pair of languages (en-es): translations, trained on in both directions."""
    dev: Mapping[str, list[Translation]]
    """By pair of languages: translations that choose among the weights on the way; none when empty."""
    folder: Path
    """A folder of its own, kept until the run is finished."""
    seed: int
    on_progress: OnProgress = no_progress


@dataclass(frozen=True, kw_only=True)
class Reads:
    """What a method reads: languages, or pairs such as en-sw for what was translated from en into sw."""

    train: tuple[str, ...]
    """Those whose training examples it trains on."""
    dev: tuple[str, ...]
    """Those whose development examples choose the epoch."""
    bitext: str = ""
    """Corpus of translations it trains on beside them; none when empty."""
    pairs: tuple[str, ...] = ()
    """Pairs of languages it reads there with their words aligned, the source first."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a fine-tuning method is given."""

    task: Task
    start: str
    """Folder or name of the encoder, or of the model it goes on from."""
    train: Callable[[str], list[Example]]
    """Training examples of one language (or pair)."""
    dev: Callable[[str], list[Example]]
    """Development examples of one language."""
    source: tuple[str, ...]
    target: tuple[str, ...]
    optimization: Optimization
    folder: Path
    seed: int
    bitext: Mapping[str, list[Translation]] = field(default_factory=dict)
    """By pair (en-es, the source first): translations with links, where the method reads some."""
    teacher: str = ""
    """Folder of the model that labels translations, where the method needs one."""
    on_progress: OnProgress = no_progress
