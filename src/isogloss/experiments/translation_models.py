"""Translation models that exist already: a folder (a run's too), or a name on the Hugging Face hub."""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from isogloss.core.runs import Pretrained, Run, Translate
from isogloss.encoders.seq2seq import load_subwords, seq2seq_folder
from isogloss.experiments.encoders import fingerprint, local_folder


def translation_model(source: str) -> Pretrained:
    """Name a translation model without the place where this machine keeps it, as encoders are named."""
    folder = model_folder(source)
    if folder is None:
        return Pretrained(source=source)
    seq2seq_folder(folder)
    name = folder.parent.name if folder.name == "model" else folder.name
    return Pretrained(source=name, data=fingerprint(folder))


def models_named(table: Mapping[str, Any]) -> list[str]:
    """List the models that a [translate] table names; one that is none is refused later, with its place."""
    model = table.get("model") or ()
    named = model.values() if isinstance(model, Mapping) else (model,) if isinstance(model, str) else ()
    return [source for source in named if isinstance(source, str)]


def model_folder(source: str) -> Path | None:
    """Return the folder of a model, which may lie within a run's; None for a name on the hub."""
    folder = local_folder(source)
    inside = None if folder is None else folder / "model"
    return inside if inside is not None and (inside / "config.json").is_file() else folder


def translator_places(sources: Iterable[str]) -> dict[str, str]:
    """Return where translation models are on this machine, by fingerprint."""
    folders = [(translation_model(source).data, model_folder(source)) for source in sources]
    return {data: str(folder) for data, folder in folders if folder is not None}


@lru_cache(maxsize=256)
def check_direction(folder: str, source: str, target: str) -> None:
    """Raise ModelError unless a model that is here knows how to be told these languages."""
    load_subwords(folder, (source, target))


def fetch_translators(runs: Iterable[Run]) -> None:
    """Make sure that translation models of the hub are whole on this machine."""
    models = [run.model for run in runs if isinstance(run, Translate)]
    for source in sorted({one.source for one in models if isinstance(one, Pretrained) and not one.data}):
        seq2seq_folder(source)
