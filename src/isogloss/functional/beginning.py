"""Progress bars of functions that take long."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from isogloss.core.progress import OnProgress, Progress

SECONDS_BEFORE_BAR = 2
"""Functions that take longer show a progress bar."""


@contextmanager
def showing_progress(on_progress: OnProgress | None) -> Iterator[OnProgress]:
    """Report progress to a function. Default: a bar after two seconds, also in notebooks."""
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
