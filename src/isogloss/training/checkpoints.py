"""Checkpoints, from which a training resumes exactly, as safetensors and JSON.

A checkpoint is written under a temporary name and renamed. Only then is the previous one removed: if the
process dies at any moment, one complete checkpoint (or none, before the first) exists.

``CheckpointTimes`` decides by time how often one is written: the state of a base encoder is 4.4 GB, and
writing it takes longer than two hundred updates on a GPU. On a GPU the training waits only while the state is
copied to host memory, and a thread writes it.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from isogloss.core.atomic_files import (
    atomic_folder,
    disk_error,
    reading_error,
    remove_folder,
    storage_error,
    sweep_folder,
)
from isogloss.core.checksums import CHECKSUMS, Checksum, as_text
from isogloss.core.errors import StorageError
from isogloss.core.processes import stop_if_lost
from isogloss.core.shared_files import create_file, entries, is_folder, read_file
from isogloss.core.untrusted import parse_json
from isogloss.encoders.family import unfrozen_parameters
from isogloss.training.distributed import as_share, gather_tensor, is_main_process, local, local_rows

_MODEL = "model.safetensors"
_OPTIMIZER = "optimizer.safetensors"
_BEST = "best.safetensors"
_STATE = "state.json"

CHECKPOINT_SHARE = 0.02
"""Maximum share of a training's time spent on checkpoints."""

FIRST_CHECKPOINT = 60.0
"""Seconds after which the first checkpoint is due, regardless of the number of updates."""

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Names of data types in safetensors files."""

Notes = dict[str, Any]
"""Plain data that JSON can represent."""


@dataclass(frozen=True)
class State:
    """The state of a training: the next step, the best weights so far, and further notes."""

    step: int
    notes: Notes
    best: dict[str, Tensor] | None


class CheckpointTimes:
    """Decides after which updates a checkpoint is written.

    One is due after each ``interval`` of updates (0: never), and the first also after ``FIRST_CHECKPOINT``
    seconds. A checkpoint is skipped while it would take more than ``CHECKPOINT_SHARE`` of the time since the
    last one.
    """

    def __init__(self, interval: int, clock: Callable[[], float] = monotonic) -> None:
        self._interval = interval
        self._clock = clock
        self._start = clock()
        self._last_end: float | None = None
        self._seconds = 0.0
        """Seconds that the training waited for the last checkpoint."""

    def is_due(self, step: int) -> bool:
        """Return whether to write a checkpoint after ``step`` updates."""
        if not self._interval:
            return False
        if self._last_end is None:
            return step % self._interval == 0 or self._clock() - self._start >= FIRST_CHECKPOINT
        return (
            step % self._interval == 0 and self._clock() - self._last_end >= self._seconds / CHECKPOINT_SHARE
        )

    @contextmanager
    def measure_wait(self) -> Iterator[None]:
        """Measure how long the training waits for a checkpoint."""
        start = self._clock()
        yield
        self._last_end = self._clock()
        self._seconds = self._last_end - start


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints of one run in ``folder``.

    ``every`` and ``clock`` are the arguments of ``CheckpointTimes``.
    """

    folder: Path
    every: int
    clock: Callable[[], float] = monotonic
    _writers: list["_WriterThread"] = field(default_factory=list, init=False, repr=False, compare=False)
    """The running writer thread, if any."""

    def times(self) -> CheckpointTimes:
        """Return a checkpoint schedule that starts now."""
        return CheckpointTimes(self.every, self.clock)

    def save(
        self, model: nn.Module, optimizer: torch.optim.Optimizer, state: State, *, uses_thread: bool = False
    ) -> None:
        """Write a checkpoint, then remove the previous one.

        All processes call it, but only the main one writes.

        With ``uses_thread`` the state is copied to host memory and written by a thread. Call ``finish`` to
        wait for it. Raises StorageError if the checkpoint cannot be written.
        """
        weights = dict(unfrozen_parameters(model))
        moments = _flat(optimizer)
        best_weights = state.best or {}
        if not is_main_process():
            for tensors, reference in ((weights, None), (moments, None), (best_weights, weights)):
                _gather(tensors, reference)
            return
        self.finish()
        files = {
            _MODEL: _gather(weights, copy=uses_thread),
            _OPTIMIZER: _gather(moments, copy=uses_thread),
        }
        if state.best is not None:
            files[_BEST] = _gather(best_weights, weights, copy=uses_thread)
        if uses_thread:
            self._writers.append(_WriterThread(partial(self._write, files, state)))
        else:
            self._write(files, state)

    def finish(self) -> None:
        """Wait until a thread has written the last checkpoint, and raise its error."""
        while self._writers:
            self._writers.pop().finish()

    def _write(self, files: Mapping[str, Mapping[str, Tensor]], state: State) -> None:
        final = self.folder / f"checkpoint-{state.step:09d}"
        try:
            sweep_folder(self.folder)
            previous = [path for path in self._all() if path < final]
            with atomic_folder(self.folder, final.name) as folder:
                checksums = {name: write_tensors(folder / name, tensors) for name, tensors in files.items()}
                body = json.dumps({"step": state.step, "notes": state.notes}).encode()
                create_file(folder, _STATE, body)
                checksums[_STATE] = Checksum.of(body)
                create_file(folder, CHECKSUMS, as_text(dict(sorted(checksums.items()))).encode())
        except OSError as error:
            raise storage_error(final, error) from error
        stop_if_lost()  # A different process may have resumed from the previous checkpoint.
        for checkpoint in previous:
            remove_folder(self.folder, checkpoint.name)

    def load(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> State | None:
        """Restore weights and moments from the last checkpoint, and return its state.

        The result is None without a checkpoint. Raises StorageError if the checkpoint is damaged or belongs
        to a different model.
        """
        if not (paths := self._all()):
            return None
        checkpoint = paths[-1]
        with _check_readable(checkpoint):
            parameters = unfrozen_parameters(model)
            weights = _read(checkpoint / _MODEL, parameters)
            moments = _read(checkpoint / _OPTIMIZER, _number_parameters(optimizer))
            best_path = checkpoint / _BEST
            best_weights = _read(best_path, parameters) if best_path.exists() else None
            body = _state(checkpoint)
            with torch.no_grad():
                for name, parameter in parameters.items():
                    local(parameter).copy_(weights[name])
        _restore(optimizer, moments)
        return State(body["step"], body["notes"], best_weights)

    def notes(self) -> Notes | None:
        """Return the notes of the last checkpoint, or None without one."""
        if not (paths := self._all()):
            return None
        with _check_readable(paths[-1]):
            notes: Notes = _state(paths[-1])["notes"]
        return notes

    def _all(self) -> list[Path]:
        if not is_folder(self.folder.parent, self.folder.name):
            return []
        folders = (entry.name for entry in entries(self.folder) if entry.is_folder)
        return [self.folder / name for name in folders if name.startswith("checkpoint-")]


@contextmanager
def _check_readable(checkpoint: Path) -> Iterator[None]:
    """Raise StorageError if the block cannot read the checkpoint."""
    try:
        yield
    except (OSError, SafetensorError, ValueError, KeyError, RuntimeError) as error:
        if failure := disk_error(error):
            raise reading_error(checkpoint, failure) from error
        raise StorageError(
            f"{checkpoint}: this checkpoint is damaged, or of another model ({type(error).__name__}: "
            f"{error}). Delete the folder and run again; only this training starts over."
        ) from error


def _state(checkpoint: Path) -> Notes:
    body: Notes = parse_json(read_file(checkpoint, _STATE), finite=False)
    return body


def _gather(
    tensors: Mapping[str, Tensor], reference: Mapping[str, Tensor] | None = None, *, copy: bool = False
) -> dict[str, Tensor]:
    """Gather tensors from all processes into host memory. Only the main process gets them.

    With ``reference``, ``tensors`` are this process's shares of tensors that are sharded like the references.
    With ``copy``, later updates do not change the result.
    """
    host_tensors = {}
    for name, tensor in tensors.items():
        complete = gather_tensor(as_share(tensor, reference[name]) if reference else tensor).detach()
        if is_main_process():
            host_tensors[name] = complete.to("cpu", copy=copy).contiguous()
    return host_tensors


class _WriterThread:
    """A thread that writes a checkpoint."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._error: BaseException | None = None
        self._thread = Thread(target=copy_context().run, args=(self._run,), name="checkpoint")
        self._thread.start()

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as error:  # Raised where the training waits for the thread.
            self._error = error

    def finish(self) -> None:
        """Wait for the thread, and raise its error."""
        self._thread.join()
        if self._error is not None:
            raise self._error


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> Checksum:
    """Write a safetensors file, and return its checksum.

    The checksum is computed while writing. ``safetensors.torch.save_file`` takes twice the processor time,
    because the file must be read again for its checksum.
    """
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # Tensors begin at a multiple of 8 bytes.
    crc = 0
    with path.open("wb") as file:
        parts: Iterator[bytes | memoryview] = chain(
            (len(text).to_bytes(8, "little"), text), (_bytes_of(tensor) for tensor in tensors.values())
        )
        for part in parts:
            file.write(part)
            crc = zlib.crc32(part, crc)
    return Checksum(8 + len(text) + end, f"{crc:08x}")


def _bytes_of(tensor: Tensor) -> memoryview:
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _read(path: Path, reference: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read tensors, or this process's shares of tensors whose parameters are sharded."""
    with safe_open(path, framework="pt") as file:
        return {
            name: local_rows(file.get_tensor(name), reference.get(name.partition("/")[0]))
            for name in file.keys()  # noqa: SIM118 (no mapping)
        }


def _number_parameters(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimizer's parameters by their numbers in its state."""
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    return {str(index): parameter for index, parameter in enumerate(parameters)}


def _flat(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimizer's state, by parameter number and name, with integers as int64 tensors."""
    state = optimizer.state_dict()["state"]
    return {
        # bitsandbytes shares its quantisation maps between parameters. A file cannot share tensors.
        f"{index}/{key}": value.clone() if key.startswith("qmap") else torch.as_tensor(value)
        for index, parts in state.items()
        for name, part in parts.items()  # In bitsandbytes, a part may be a dictionary.
        for key, value in (part.items() if isinstance(part, dict) else [(name, part)])
    }


def _restore(optimizer: torch.optim.Optimizer, flat: dict[str, Tensor]) -> None:
    groups = optimizer.state_dict()["param_groups"]
    parameters = _number_parameters(optimizer)
    state: dict[int, dict[str, object]] = {}
    for name, value in flat.items():
        index, key = name.split("/")
        part = int(value) if value.dtype == torch.int64 else as_share(value, parameters[index])
        state.setdefault(int(index), {})[key] = part
    optimizer.load_state_dict({"state": state, "param_groups": groups})
