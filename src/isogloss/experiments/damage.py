"""Damage in a folder of runs (a machine that lost power, a copy cut short): set aside, and made again."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from isogloss.core.errors import InputError, StorageError
from isogloss.core.records import RECORD, writing
from isogloss.core.run_graph import run_id
from isogloss.core.runs import Run
from isogloss.encoders.folders import check_weights, read_config
from isogloss.experiments.run_context import WORK
from isogloss.experiments.store import Store

DAMAGED = "damaged-"
"""What the name of what was set aside begins with."""

ADVICE = re.compile(r"\. (Delete|Copy) .*", re.DOTALL)
"""What an error tells the user to do, and is done here."""


def set_damage_aside(store: Store, runs: Sequence[Run]) -> dict[str, str]:
    """Set damaged records, models and checkpoints aside; return what was wrong, by run.

    A run whose record or model was set aside has no record any more; one without its checkpoint starts over.
    """
    found: dict[str, str] = {}
    for run in runs:
        for path, why in _damage(store, run):
            _set_aside(path)
            found[run_id(run)] = f"{why} Set aside as {DAMAGED}{path.name}, and made again."
    return found


def _damage(store: Store, run: Run) -> Iterator[tuple[Path, str]]:
    if not store.is_finished(run):
        for checkpoint in sorted((store.folder(run) / WORK).rglob("checkpoint-*")):
            if why := _unreadable(checkpoint):
                yield checkpoint, f"{checkpoint}: this checkpoint is damaged ({why})."
        return
    record, model = store.folder(run) / RECORD, store.model(run)
    try:
        store.record(run)
    except StorageError as error:
        if isinstance(error.__cause__, OSError):  # It may be whole, and is not ours to read.
            raise
        yield record, ADVICE.sub(".", str(error))
        return
    if model.is_dir():
        try:
            read_config(model)
            check_weights(model, "AutoModel")
        except InputError as error:
            yield model, ADVICE.sub(".", str(error))
            _set_aside(record)  # Finished is what has a record: this run is so no longer.


def _unreadable(checkpoint: Path) -> str:
    """Say why a checkpoint cannot be read; nothing where it can, or is none."""
    from safetensors import SafetensorError, safe_open

    for path in sorted(checkpoint.iterdir()) if checkpoint.is_dir() else ():
        try:
            if path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
            elif path.suffix == ".safetensors":
                with safe_open(path, framework="numpy"):  # Compares its header with the file's length.
                    pass
        except (OSError, SafetensorError, ValueError) as error:
            return f"{path.name}: {' '.join(str(error).split())}"
    return ""


def _set_aside(path: Path) -> None:
    """Rename a file or folder; what was set aside before it goes."""
    aside = path.with_name(f"{DAMAGED}{path.name}")
    with writing(aside):
        if aside.is_dir():
            shutil.rmtree(aside)
        path.replace(aside)
