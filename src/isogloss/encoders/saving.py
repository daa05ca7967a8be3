"""Models written as ordinary Hugging Face folders, completely or not at all."""

from collections.abc import Callable, Iterable
from pathlib import Path

from isogloss.core.atomic_files import as_os_error, atomic_folder, storage_error, system_error
from isogloss.encoders.added.active_language import language_maps_of
from isogloss.encoders.added.added_weights import (
    without_added_modules,
    write_language_maps,
    write_language_modules,
)
from isogloss.encoders.added.task_adapters import write_task_adapter
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.folders import quiet
from isogloss.encoders.loading import HeadedEncoder


def save_model(
    model: Model,
    tokenizer: Tokenizer,
    folder: Path,
    extra_writers: Iterable[Callable[[Path], None]] = (),
    difference: Callable[[Path], None] | None = None,
) -> None:
    """Write model and tokenizer into a folder atomically, replacing an existing folder.

    ``extra_writers`` write further files. Language maps and language modules are written to separate files.
    ``difference`` writes the trained part of the weights, instead of all (``encoders.added.differences``).
    """
    try:
        with atomic_folder(folder.parent, folder.name) as new_folder, quiet():
            tokenizer.save_pretrained(new_folder)
            if difference:
                _save_config(model, new_folder)
                difference(new_folder)
            else:
                _save_whole(model, new_folder)
            for write in extra_writers:
                write(new_folder)
    except Exception as error:  # The writing libraries raise various errors.
        if system_error(error) is None:
            raise
        raise storage_error(folder, as_os_error(error)) from error


def _save_whole(model: Model, folder: Path) -> None:
    with without_added_modules(model):
        model.save_pretrained(folder)
    if maps := language_maps_of(model):
        write_language_maps(maps, folder)
    write_language_modules(model, folder)
    write_task_adapter(model, folder)


def _save_config(model: Model, folder: Path) -> None:
    """Write the configuration with the name of the class, like ``save_pretrained``."""
    saved_model = model.base_model if isinstance(model, HeadedEncoder) else model
    model.config.architectures = [type(saved_model).__name__]
    model.config.save_pretrained(folder)
