"""Copies of the methods of isogloss under other names, as another package would add them."""

import inspect
import re
import sys
from pathlib import Path

from isogloss.methods import ADJUSTMENTS, AUXILIARY_LOSSES, METHODS, PEFT

SUFFIX = "-own"
"""Suffixes of the names of copies, which sort like the names of the originals."""

NAME = re.compile(r'(    name: ClassVar\[str\] = "[\w-]+)"')


def write_copies(folder: Path) -> dict[str, str]:
    """Write the modules of methods under other names. Return the class of each method's copy, by its name."""
    kinds = {**METHODS, **AUXILIARY_LOSSES, **PEFT, **ADJUSTMENTS}
    copies = {}
    for name, kind in kinds.items():
        module = "_".join(kind.__module__.split(".")[2:])
        path = folder / f"own_{module}.py"
        if not path.exists():
            source = inspect.getsource(sys.modules[kind.__module__])
            path.write_text(NAME.sub(rf'\1{SUFFIX}"', source), encoding="utf-8")
        copies[name] = f"own_{module}:{kind.__name__}"
    return copies
