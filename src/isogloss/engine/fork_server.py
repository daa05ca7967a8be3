"""The process that forks the workers of ``--jobs``.

It imports everything that runs need, but computes nothing.

This module is cheap to import: the server begins before this process imports torch, and both import at the
same time.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from multiprocessing.forkserver import ensure_running
from pathlib import Path

from isogloss.core.processes import is_launched

IMPORTED_ONCE = (
    "isogloss.engine.workers",
    *(f"isogloss.runs.{module}" for module in ("pretrained", "average")),
    "isogloss.runs.measure",
    *(f"isogloss.training.{module}" for module in ("fine_tuning", "evaluation")),
    *(f"isogloss.training.{module}" for module in ("states", "parallel_text", "bitext")),
    *(f"isogloss.tasks.{module}" for module in ("tagging", "lemmas", "classification")),
    *(f"isogloss.encoders.{module}" for module in ("loading", "prepared", "saving", "tokenizers")),
    *(f"isogloss.diagnostics.{module}" for module in ("scores", "weight_space")),
    "isogloss.metrics.texts",
    "transformers.models.bert.modeling_bert",
    "transformers.models.auto.tokenization_auto",
)
"""Modules that take seconds to import and start no thread (unlike pyarrow)."""

PRELOADED = "isogloss.engine.preloaded"
"""The module that imports them."""

GPU_FILES = ("/dev/nvidiactl", "/dev/kfd")
"""Files of the drivers for GPUs of NVIDIA and of AMD."""


def start_method(*, uses_devices: bool) -> BaseContext:
    """Return the start method of processes: fork from a server that has imported everything, if possible.

    GPUs need new processes, because each process gets its GPU before it starts. On a Mac, processes that
    loaded the libraries cannot be forked.
    """
    if uses_devices or sys.platform == "darwin" or "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    return context


def start_early(processes: int) -> None:
    """Start the server's imports before this process plans, if several processes will be forked from it."""
    if processes < 2 or is_launched() or any(Path(file).exists() for file in GPU_FILES):
        return
    if start_method(uses_devices=False).get_start_method() == "forkserver":
        with hangups_blocked():
            ensure_running()


@contextmanager
def hangups_blocked() -> Iterator[None]:
    """Keep SIGHUP from new processes. If the terminal closes, this process receives it and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
