"""Import each module below a folder of isogloss first in a new process, and print those that fail.

    python tests/import_each.py src/isogloss/features

Libraries are imported once, by the process that the others are forked from.
"""

import os
import sys
import traceback
from importlib import import_module
from pathlib import Path

LIBRARIES = ("numpy", "pandas", "torch", "transformers", "pydantic", "typer", "scipy.stats")


def main(folder: Path) -> int:
    """Return the number of modules that cannot be imported first."""
    root = next(path for path in (folder, *folder.parents) if path.name == "isogloss")
    for name in LIBRARIES:
        import_module(name)
    failures = 0
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if parts[-1] == "__main__":
            continue
        process = os.fork()
        if not process:
            os._exit(import_alone(name))
        failures += os.waitpid(process, 0)[1] != 0
    return failures


def import_alone(name: str) -> int:
    """Import a module and return 0. Print the error and return 1 if it fails for a reason of ours."""
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("isogloss"):  # An optional package.
            return 0
        traceback.print_exc()
        return 1
    except BaseException:
        sys.stderr.write(f"{name}\n")
        traceback.print_exc(limit=-3)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(min(main(Path(sys.argv[1]).resolve()), 1))
