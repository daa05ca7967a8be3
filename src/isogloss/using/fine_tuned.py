"""A fine-tuned model: its provenance, and the interface that scoring, exporting and predicting use.

The provenance is read from a run's record, or from the config of an exported model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from isogloss.core.errors import ModelError, StorageError
from isogloss.core.foreign_json import fitting, parse_json, read_regular
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import RECORD, Record, Row, kind_of_run, read_made, read_record, understanding
from isogloss.core.run_parts import Count, Positive
from isogloss.data.examples import Example
from isogloss.encoders.family import Model as Network
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.hub import is_hub_name, pinned_name
from isogloss.encoders.loading import model_folder
from isogloss.encoders.mixup import Mixup
from isogloss.tasks import Task
from isogloss.training.evaluation import Evaluation
from isogloss.using.formats import Answered, Entry, Kind

CONFIG = "config.json"
ENTRY = "isogloss"
"""Key of the provenance in an exported model's config."""

SCORE_COLUMNS = ("corpus", "language", "split", "metric", "score", "baseline", "examples")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """A model's task, training data, row lengths, and measured scores."""

    run: str
    title: str
    task: str
    corpus: str
    method: str
    encoder: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    limit: Positive
    overlap: Count
    examples: int = 0
    treebanks: tuple[tuple[str, str], ...] = ()
    scores: tuple[Row, ...] = ()
    versions: Mapping[str, str]

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages it was trained on."""
        return tuple(dict.fromkeys((*self.source, *self.target)))


Translations = Sequence[Example | None] | None
"""The translation of each example into the source language, if any; None for a model that does not mix."""


class FineTuned(Protocol):
    """A fine-tuned model in use: ``model.Model`` as the functions see it that it calls with itself."""

    @property
    def network(self) -> Network:
        """Encoder and head."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Splits texts into subwords."""

    @property
    def task(self) -> Task:
        """Decodes and scores."""

    @property
    def provenance(self) -> Provenance:
        """How it was made."""

    @property
    def precision(self) -> str:
        """auto, float32 or bfloat16."""

    @property
    def mixup(self) -> Mixup | None:
        """Where and how much an input is mixed with its translation; None for a model that does not mix."""

    @property
    def links(self) -> Sequence[str]:
        """Files of its folder that are symbolic links; no run makes any."""

    @property
    def kind(self) -> Kind:
        """Forms of inputs and answers."""

    @property
    def longest(self) -> int:
        """Subwords of its longest row."""

    @property
    def into(self) -> str:
        """The language of translations."""

    def solving(self, task: Task) -> "FineTuned":
        """Return the same model with another task, whose labels are its own under other names."""

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError for languages it cannot read."""

    def check_mixes(self, option: str) -> Mixup:
        """Return where and how much it mixes; ConfigError, with the option, where it uses no translations."""

    def prepared(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> Evaluation:
        """Encode and batch examples."""

    def prepared_by_id(
        self, examples: Sequence[Example], translations: Sequence[Example], *, language: str = ""
    ) -> Evaluation:
        """Encode and batch examples, each with the translation of its id."""

    def answered(
        self,
        entries: Iterable[Entry],
        *,
        language: str = "",
        scores: bool = False,
        on_progress: OnProgress = no_progress,
    ) -> Iterator[Answered]:
        """Yield each entry with the prediction for its example."""


def folder_of(model: str | Path) -> Path:
    """Return the folder of a run or exported model; one on the hub (owner/name[@revision]) is downloaded."""
    return model_folder(str(model)) if is_on_hub(model) else Path(model)


def is_on_hub(model: str | Path) -> bool:
    """Return whether a model is given by its hub name, with its owner, and is no folder of this machine."""
    return "/" in str(model) and is_hub_name(str(model))


def provenance_of(folder: Path) -> tuple[Provenance, Path]:
    """Return a model's provenance and the folder of its weights, from a run's folder or an exported one."""
    if (folder / RECORD).exists():
        return _of_run(folder), folder / "model"
    entry = exported_entry(folder)
    if entry is None:
        raise ModelError(
            f"{folder}: no finished run is here ({RECORD} is missing), nor a model that isogloss exported. "
            f"Give the folder of a run.{_nearby(folder)}"
        )
    return _of_entry(entry, folder), folder


def exported_entry(folder: Path) -> object:
    """Return the provenance in an exported model's config, as plain data; None for any other folder."""
    try:
        body = parse_json(read_regular(folder / CONFIG))
    except (OSError, ValueError):
        return None
    return body.get(ENTRY) if isinstance(body, dict) else None


def _of_entry(entry: object, folder: Path) -> Provenance:
    names = {field.name for field in fields(Provenance)}
    if not isinstance(entry, dict) or entry.keys() != names:
        raise ModelError(
            f"{folder / CONFIG}: its entry {ENTRY!r} is not what this version of isogloss writes. "
            f"Export the model again."
        )
    try:
        return fitting(Provenance, entry)
    except ValueError as error:
        raise ModelError(f"{folder / CONFIG}: entry {ENTRY!r}: {error}. Export the model again.") from error


def _of_run(folder: Path) -> Provenance:
    record = read_record(folder.resolve())
    if record.kind != "fine-tune":
        raise ModelError(
            f"{folder}: run {record.id} is a {record.kind}, not a fine-tune; it has no head to predict with."
        )
    with understanding(folder / RECORD):
        return fitting(Provenance, _provenance(record, folder))


def _provenance(record: Record, folder: Path) -> Mapping[str, object]:
    run = record.run
    optimization = run["optimization"]
    return {
        "run": record.id,
        "title": record.title,
        "task": run["task"],
        "corpus": run["corpus"],
        "method": " + ".join(run[part]["kind"] for part in ("method", "auxiliary", "peft") if run.get(part)),
        "encoder": _encoder(run["encoder"]),
        "source": run["source"],
        "target": run["target"],
        "limit": optimization["limit"],
        "overlap": optimization["overlap"],
        "examples": run["examples"],
        "treebanks": run["treebanks"],
        "scores": tuple(_scores(record, folder.resolve().parent)),
        "versions": read_made(folder).versions,
    }


def _encoder(encoder: Mapping[str, Any]) -> str:
    """Return a description of an encoder, given its content in a record."""
    if "source" in encoder:
        return pinned_name(str(encoder["source"]), encoder.get("revision"))
    if "aligned" in encoder:
        pairs = "+".join(bitext["languages"] for bitext in encoder["aligned"])
        return f"{_encoder(encoder['encoder'])}, {encoder['method']['kind']} on {pairs}"
    text = " ".join(encoder["languages"])
    if "start" in encoder:
        return f"{_encoder(encoder['start'])}, pretrained further on {text}"
    shape = encoder["architecture"]
    return f"{shape['family']} {shape['layers']}x{shape['dim']}, pretrained on {text}"


def _scores(record: Record, store: Path) -> Iterator[Row]:
    """Yield the scores of the selected epoch, and those of finished measurements of this model alone."""
    for row in record.rows:
        if row.get("chosen"):
            yield _score(row, record.run["corpus"])
    for path in sorted(store.glob(f"*/{RECORD}")):
        with suppress(StorageError):  # A damaged neighbour is no reason not to use this model.
            yield from _measured(path, record.id)


def _measured(path: Path, model: str) -> list[Row]:
    """Return the scores in a record, if it is the measurement of a model alone."""
    other = read_record(path.parent)
    if other.needs != (model,) or kind_of_run(other.kind, other.run) != "scores":
        return []
    with understanding(path):
        return [_score(row, _test_set(other.run)) for row in other.rows if row.get("main")]


def _test_set(run: Mapping[str, Any]) -> str:
    """Return the name of a test set: corpus, the treebank if all languages share one, form of the inputs."""
    named = {dict(run["treebanks"]).get(language, "") for language in run["languages"]}
    treebank = named.pop() if len(named) == 1 else ""
    by = "+".join(
        dict.fromkeys(translation["translator"]["kind"] for translation in run.get("translated", ()))
    )
    return " ".join(filter(None, (run["corpus"], treebank, run.get("inputs", ""), by and f"by {by}")))


def _score(row: Row, corpus: str) -> Row:
    return {name: row.get(name) for name in SCORE_COLUMNS} | {"corpus": corpus}


def _nearby(folder: Path) -> str:
    """Return a hint at runs directly above or below a folder."""
    if (folder.parent / RECORD).exists():
        return f" One is above: {folder.parent}."
    inside = sorted(path.parent.name for path in folder.glob(f"*/{RECORD}"))
    return f" Runs in it: {', '.join(inside[:6])}{' …' if len(inside) > 6 else ''}." if inside else ""
