"""Checks of models and progress bars, for all functions that take a model."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from torch import nn

from isogloss.core.errors import ModelError, check_named
from isogloss.core.progress import OnProgress, Progress
from isogloss.encoders import FAMILIES
from isogloss.encoders.families import family_named
from isogloss.training.precision import PRECISIONS, resolved_precision

SECONDS_BEFORE_BAR = 2
"""Functions that take longer show a progress bar."""


def require_encoder(model: nn.Module, function: str) -> None:
    """Raise ModelError unless a model is one of transformers, of a family whose layers are known."""
    config: Any = getattr(model, "config", None)
    if not hasattr(config, "model_type"):
        raise ModelError(
            f"{function}: {type(model).__name__} has no config.model_type, so its layers are unknown. Give a "
            f"Hugging Face model of a known family: {', '.join(sorted(FAMILIES))}."
        )
    family_named(config.model_type, f"{function}: {type(model).__name__}")


def check_precision(function: str, model: nn.Module, precision: str) -> str:
    """Return the precision that a function computes in; ConfigError for an unknown one."""
    check_named(f"{function}: precision", "precision", PRECISIONS, precision)
    return resolved_precision(precision, next(model.parameters()).device)


@contextmanager
def showing_progress(on_progress: OnProgress | None) -> Iterator[OnProgress]:
    """Report progress to a function; without one a bar appears after two seconds, in notebooks too."""
    if on_progress is not None:
        yield on_progress
        return
    from tqdm.auto import tqdm

    begin = monotonic()
    bars = list[Any]()

    def show(progress: Progress) -> None:
        if not bars and monotonic() - begin > SECONDS_BEFORE_BAR:
            bars.append(tqdm(leave=False))
        for bar in bars:
            bar.total = progress.total
            bar.n = progress.done
            bar.set_description(f"{progress.what} {progress.remark}".strip())

    try:
        yield show
    finally:
        for bar in bars:
            bar.close()
