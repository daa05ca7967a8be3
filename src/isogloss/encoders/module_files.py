"""Language modules on disk: a file beside the weights, which are those of an ordinary encoder.

What model.safetensors holds is the encoder without what this file has: where each language has copies the
first language's model, as if there were no other; where there are adapters the encoder without them.
transformers reads that alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.records import writing
from isogloss.core.runs import Modules
from isogloss.encoders.language_modules import check_modules
from isogloss.encoders.module_places import (
    CARRIED,
    LanguageModules,
    ModuleTree,
    branch,
    encoder_of,
    grow,
    owners,
    tree_of,
)

FILE = "language_modules.safetensors"


@contextmanager
def left_out(model: Any) -> Iterator[None]:
    """Let a model have no language modules for a while, as for transformers to write an ordinary one."""
    encoder, tree = encoder_of(model), tree_of(model)
    if tree is None:
        yield
        return
    del encoder.language_modules
    try:
        yield
    finally:
        encoder.add_module(CARRIED, tree)


def write_language_modules(model: Any, folder: Path) -> None:
    """Write a model's language modules into its folder; nothing for one without."""
    from safetensors.torch import save_file

    tree = tree_of(model)
    if tree is None:
        return
    about, temporary = tree.about, folder / f".{FILE}.tmp"
    metadata = {
        "kind": about.how.kind,
        "reduction": str(about.how.reduction),
        "fallback": about.how.fallback,
        "languages": ",".join(about.languages),
    }
    weights = {name: weight.detach().cpu().contiguous() for name, weight in _weights(tree).items()}
    with writing(folder / FILE):
        save_file(weights, temporary, metadata=metadata)
        temporary.replace(folder / FILE)


def read_about(folder: Path, dim: int) -> LanguageModules | None:
    """Read which languages an encoder of some width has modules for; None where it has none."""
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            return _about(file.metadata() or {}, dim)
    except (SafetensorError, OSError, KeyError, ValueError, ConfigError) as error:
        raise _damaged(path, error) from error


def read_language_modules(model: Any, folder: Path) -> None:
    """Give a model the modules that lie in its folder, if there are any.

    ModelError when the file is damaged, or belongs to another encoder.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    encoder = encoder_of(model)
    about = read_about(folder, encoder.config.hidden_size)
    if about is None:
        return
    try:
        there = load_file(folder / FILE)
    except (SafetensorError, OSError) as error:
        raise _damaged(folder / FILE, error) from error
    grow(encoder, about, seed=0)
    _take(_weights(encoder.language_modules), there, folder / FILE)


def _about(metadata: dict[str, str], dim: int) -> LanguageModules:
    how = Modules(
        kind=metadata["kind"],  # type: ignore[arg-type]  # Checked below.
        reduction=int(metadata["reduction"]),
        fallback=metadata["fallback"],
    )
    languages = tuple(metadata["languages"].split(","))
    check_modules(how, languages, dim=dim)
    return LanguageModules(how, languages)


def _weights(tree: ModuleTree) -> dict[str, nn.Parameter]:
    """Return all weights by their names in the file: the language, then the name in the encoder."""
    return {
        f"{owner}/{name}": weight
        for owner in owners(tree.about)
        for name, weight in tree.get_submodule(branch(owner)).named_parameters()
    }


def _take(own: dict[str, nn.Parameter], there: dict[str, Tensor], path: Path) -> None:
    """Put weights in place; ModelError when they are not exactly what is expected."""
    expected: dict[str, Any] = {name: tuple(weight.shape) for name, weight in own.items()}
    found = {name: tuple(weight.shape) for name, weight in there.items()}
    wrong = sorted(name for name in expected | found if expected.get(name) != found.get(name))
    if wrong:
        name = wrong[0]
        raise ModelError(
            f"{path}: these modules are another encoder's: {name} has the shape {found.get(name)}, and "
            f"{expected.get(name)} is expected. Copy the encoder's own file there, or delete this one to "
            f"use the encoder without."
        )
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(there[name])


def _damaged(path: Path, error: Exception) -> ModelError:
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return ModelError(
        f"{path}: these language modules are damaged ({what}). Copy the file again; if a run of isogloss "
        f"made it, delete the run's folder and run again."
    )
