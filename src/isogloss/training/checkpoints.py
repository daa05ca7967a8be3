"""Checkpoints: the state from which a training resumes exactly, as safetensors and JSON.

A checkpoint is written under a temporary name and renamed, and only then is the previous one removed:
whenever the process dies, one complete checkpoint (or none, before the first) exists.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from isogloss.core.atomic_files import (
    as_os_error,
    atomic_folder,
    disk_error,
    reading_error,
    remove_folder,
    storage_error,
    sweep_folder,
)
from isogloss.core.checksums import CHECKSUMS, as_text, checksums_of
from isogloss.core.errors import StorageError
from isogloss.core.processes import stop_if_lost
from isogloss.encoders.family import unfrozen
from isogloss.training.distributed import as_share, gathered, is_main_process, local, local_rows

_MODEL, _OPTIMIZER, _BEST, _STATE = (
    "model.safetensors",
    "optimizer.safetensors",
    "best.safetensors",
    "state.json",
)


Notes = dict[str, Any]
"""Plain data, as in JSON."""


@dataclass(frozen=True)
class State:
    """The state of a training: the next step, the best weights so far, and its notes."""

    step: int
    notes: Notes
    best: dict[str, Tensor] | None


@dataclass(frozen=True)
class Checkpoints:
    """Checkpoints of one run under ``folder``, written every ``every`` steps (0: never)."""

    folder: Path
    every: int

    def save(self, model: nn.Module, optimizer: torch.optim.Optimizer, state: State) -> None:
        """Write a checkpoint, then remove the previous one; other processes only send their shares."""
        weights, moments, best = dict(unfrozen(model)), _flat(optimizer), state.best or {}
        if not is_main_process():
            for tensors, reference in ((weights, None), (moments, None), (best, weights)):
                _gathered(tensors, reference)
            return
        final = self.folder / f"checkpoint-{state.step:09d}"
        try:
            sweep_folder(self.folder)
            previous = [path for path in self._all() if path < final]
            with atomic_folder(final) as new:
                save_file(_gathered(weights), new / _MODEL)
                save_file(_gathered(moments), new / _OPTIMIZER)
                if state.best is not None:
                    save_file(_gathered(best, weights), new / _BEST)
                body = json.dumps({"step": state.step, "notes": state.notes})
                (new / _STATE).write_text(body, encoding="utf-8")
                (new / CHECKSUMS).write_text(as_text(checksums_of(new)), encoding="utf-8")
        except (OSError, SafetensorError) as error:
            raise storage_error(final, as_os_error(error)) from error
        stop_if_lost()  # Else another process may be going on from the previous one.
        for old in previous:
            remove_folder(old)

    def load(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> State | None:
        """Restore weights and moments from the last checkpoint and return its state; None without one."""
        if not (paths := self._all()):
            return None
        last = paths[-1]
        with _undamaged(last):
            trained = unfrozen(model)
            weights, moments = _read(last / _MODEL, trained), _read(last / _OPTIMIZER, _by_number(optimizer))
            best = _read(last / _BEST, trained) if (last / _BEST).exists() else None
            body = _state(last)
            with torch.no_grad():
                for name, weight in trained.items():
                    local(weight).copy_(weights[name])
        _restore(optimizer, moments)
        return State(body["step"], body["notes"], best)

    def notes(self) -> Notes | None:
        """Return the notes of the last checkpoint; None without one."""
        if not (paths := self._all()):
            return None
        with _undamaged(paths[-1]):
            notes: Notes = _state(paths[-1])["notes"]
        return notes

    def _all(self) -> list[Path]:
        return sorted(self.folder.glob("checkpoint-*"))


@contextmanager
def _undamaged(checkpoint: Path) -> Iterator[None]:
    """Raise StorageError for a checkpoint that cannot be read: the disk fails, or it is damaged."""
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
    body: Notes = json.loads((checkpoint / _STATE).read_text(encoding="utf-8"))
    return body


def _gathered(
    tensors: Mapping[str, Tensor], reference: Mapping[str, Tensor] | None = None
) -> dict[str, Tensor]:
    """Gather tensors in the main process, detached and contiguous as safetensors requires.

    With ``like``, ``tensors`` are this process's shares of tensors that are sharded in the same way.
    """
    full = {}
    for name, tensor in tensors.items():
        weight = gathered(as_share(tensor, reference[name]) if reference else tensor).detach()
        if is_main_process():
            full[name] = weight.contiguous().cpu()
    return full


def _read(path: Path, reference: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read tensors, or this process's shares of those whose parameters are sharded."""
    with safe_open(path, framework="pt") as file:
        return {
            name: local_rows(file.get_tensor(name), reference.get(name.partition("/")[0]))
            for name in file.keys()  # noqa: SIM118 (no mapping)
        }


def _by_number(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimizer's parameters by their numbers in its state."""
    parameters = (parameter for group in optimizer.param_groups for parameter in group["params"])
    return {str(number): parameter for number, parameter in enumerate(parameters)}


def _flat(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimizer's state by the parameter's number and the name; an int becomes int64."""
    state = optimizer.state_dict()["state"]
    return {
        # Parameters share bitsandbytes' maps of codes, and a file has no shared tensors.
        f"{number}/{key}": value.clone() if key.startswith("qmap") else torch.as_tensor(value)
        for number, parts in state.items()
        for name, part in parts.items()  # Of bitsandbytes a part may be a dictionary.
        for key, value in (part.items() if isinstance(part, dict) else [(name, part)])
    }


def _restore(optimizer: torch.optim.Optimizer, flat: dict[str, Tensor]) -> None:
    groups, parameters = optimizer.state_dict()["param_groups"], _by_number(optimizer)
    state: dict[int, dict[str, object]] = {}
    for name, value in flat.items():
        number, key = name.split("/")
        restored = int(value) if value.dtype == torch.int64 else as_share(value, parameters[number])
        state.setdefault(int(number), {})[key] = restored
    optimizer.load_state_dict({"state": state, "param_groups": groups})
