"""Objects that are pickled once for many workers."""

import os
import pickle
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError


@dataclass(frozen=True)
class Pickled:
    """A value as bytes, with the folders for resolving its classes and relative paths."""

    content: bytes
    modules: tuple[str, ...]
    folder: str

    def load(self) -> Any:
        """Return the value.

        Raises ConfigError if one of its modules, such as a plug-in's, cannot be imported.
        """
        sys.path += [path for path in self.modules if path not in sys.path]
        with suppress(OSError):  # Without the folder, all paths have to be absolute.
            os.chdir(self.folder)
        try:
            return pickle.loads(self.content)  # noqa: S301 (by the same user's process)
        except ImportError as error:
            raise ConfigError(
                f"a module that runs need cannot be imported on another machine ({error}). Install it there, "
                f"or let it lie in a folder that all machines see."
            ) from error


def pack(value: object) -> Pickled:
    """Pack a value for a process on another machine."""
    return Pickled(
        pickle.dumps(value), tuple(str(Path(path).absolute()) for path in sys.path), str(Path.cwd())
    )
