"""What is sent to processes, on other machines too: they find modules and files where they are found here."""

import os
import pickle
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import parts_within
from isogloss.runs.run import Run


@dataclass(frozen=True)
class Pickled:
    """A value as bytes, with the places its classes and relative paths are looked for in."""

    content: bytes
    modules: tuple[str, ...]
    folder: str

    def loaded(self) -> Any:
        """Return the value; ConfigError where a module of it, such as a plug-in's, cannot be imported."""
        sys.path += [path for path in self.modules if path not in sys.path]
        with suppress(OSError):  # Then all paths have to be absolute.
            os.chdir(self.folder)
        try:
            return pickle.loads(self.content)  # noqa: S301 (by the same user's process)
        except ImportError as error:
            raise ConfigError(
                f"a module that runs need cannot be imported on another machine ({error}). Install it there, "
                f"or let it lie in a folder that all machines see."
            ) from error


def pickled(value: object) -> Pickled:
    """Pack a value for a process on another machine."""
    return Pickled(
        pickle.dumps(value), tuple(str(Path(path).absolute()) for path in sys.path), str(Path.cwd())
    )


def check_importable(runs: Sequence[Run], instead: str) -> None:
    """Raise ConfigError where other processes cannot read a class of the runs."""
    if name := classes_in_main(runs):
        raise ConfigError(
            f"{name}: it is defined in the script that was started, which other processes do not read. Put "
            f"it into a module of its own next to the script and import it there, or make one run at a time "
            f"({instead})."
        )


def classes_in_main(runs: Sequence[Run]) -> str:
    """Return the name of a class among the runs' parts that the started script defines; empty if none."""
    kinds = (type(part) for part in parts_within(tuple(runs)))
    return next((kind.__qualname__ for kind in kinds if kind.__module__ == "__main__"), "")
