"""A fine-tuned model: how it was made, and what scoring, exporting and model cards ask of it.

How it was made is in a run's record, or in the config of an exported model.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from isogloss.core.errors import ModelError, StorageError
from isogloss.core.records import MADE, RECORD, Record, Row, read_record
from isogloss.data.examples import Example
from isogloss.encoders.mixup import Mixup
from isogloss.tasks import Task
from isogloss.training.evaluation import Evaluation
from isogloss.using.formats import Kind

CONFIG = "config.json"
ENTRY = "isogloss"
"""Where an exported model's config says what follows here."""

SCORE_COLUMNS = ("corpus", "language", "split", "metric", "score", "baseline", "examples")


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """A model's task, data and lengths, and the scores that were measured."""

    run: str
    title: str
    task: str
    corpus: str
    method: str
    encoder: str
    source: tuple[str, ...]
    target: tuple[str, ...]
    limit: int
    overlap: int
    examples: int = 0
    treebanks: tuple[tuple[str, str], ...] = ()
    scores: tuple[Row, ...] = ()
    versions: Mapping[str, str]

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages it was trained on."""
        return tuple(dict.fromkeys((*self.source, *self.target)))


Translations = Sequence[Example | None] | None
"""Of each example, in the source language, None for one that has none; None where the model does not mix."""


class FineTuned(Protocol):
    """A fine-tuned model in use (``model.Model``), for what it calls itself, which cannot see it."""

    @property
    def network(self) -> Any:
        """Encoder and head."""

    @property
    def tokenizer(self) -> Any:
        """What makes subwords of texts."""

    @property
    def task(self) -> Task:
        """What decodes and scores."""

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
    def kind(self) -> Kind:
        """What goes into it and comes out."""

    @property
    def longest(self) -> int:
        """Subwords of its longest row."""

    @property
    def into(self) -> str:
        """The language that translations are in."""

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError for languages it cannot read."""

    def check_mixes(self, where: str) -> Mixup:
        """Return where and how much it mixes; ConfigError for a model without use for translations."""

    def prepared(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> Evaluation:
        """Encode and batch examples."""

    def prepared_by_id(
        self, examples: Sequence[Example], translations: Sequence[Example], *, language: str = ""
    ) -> Evaluation:
        """Encode and batch examples, each beside the translation of its id."""


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
    """Return what the config of an exported model says of its provenance; None for any other folder."""
    try:
        body = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return body.get(ENTRY) if isinstance(body, dict) else None


def entry_of(provenance: Provenance) -> dict[str, Any]:
    """Return a provenance as plain data."""
    return asdict(provenance)


def _of_entry(entry: object, folder: Path) -> Provenance:
    known = {field.name for field in fields(Provenance)}
    if not isinstance(entry, dict) or entry.keys() != known:
        raise ModelError(
            f"{folder / CONFIG}: its entry {ENTRY!r} is not what this version of isogloss writes. "
            f"Export the model again."
        )
    lists = {name: tuple(entry[name]) for name in ("source", "target", "scores")}
    treebanks = tuple((language, treebank) for language, treebank in entry["treebanks"])
    return Provenance(**{**entry, **lists, "treebanks": treebanks})


def _of_run(folder: Path) -> Provenance:
    record = read_record(folder.resolve())
    if record.kind != "fine-tune":
        raise ModelError(
            f"{folder}: run {record.id} is a {record.kind}, not a fine-tune; it has no head to predict with."
        )
    run = record.run
    how = run["optimization"]
    return Provenance(
        run=record.id,
        title=record.title,
        task=run["task"],
        corpus=run["corpus"],
        method=run["method"]["kind"],
        encoder=_encoder(run["encoder"]),
        source=tuple(run["source"]),
        target=tuple(run["target"]),
        limit=how["limit"],
        overlap=how["overlap"],
        examples=run["examples"],
        treebanks=tuple((language, treebank) for language, treebank in run["treebanks"]),
        scores=(*_own_scores(record), *_measured_scores(record, folder.resolve().parent)),
        versions=_versions(folder),
    )


def _encoder(encoder: Mapping[str, Any]) -> str:
    """Say which encoder it was."""
    if "source" in encoder:
        return str(encoder["source"])
    if "aligned" in encoder:
        pairs = "+".join(one["languages"] for one in encoder["aligned"])
        return f"{_encoder(encoder['encoder'])}, {encoder['method']['kind']} on {pairs}"
    shape = encoder["architecture"]
    return (
        f"{shape['family']} {shape['layers']}x{shape['dim']}, pretrained on {' '.join(encoder['languages'])}"
    )


def _own_scores(record: Record) -> Iterator[Row]:
    """Give the scores of the epoch that was chosen."""
    for row in record.rows:
        if row.get("chosen"):
            yield _score({**row, "corpus": record.run["corpus"]})


def _measured_scores(record: Record, store: Path) -> Iterator[Row]:
    """Give what finished measurements beside the run say of this model alone."""
    for path in sorted(store.glob(f"*/{RECORD}")):
        try:
            other = read_record(path.parent)
        except StorageError:
            continue  # A damaged neighbour is no reason not to use this model.
        of_it_alone = other.kind == "measure" and tuple(other.needs) == (record.id,)
        if of_it_alone and other.run["diagnostic"]["kind"] == "scores":
            corpus = _test_set(other.run)
            yield from (_score({**row, "corpus": corpus}) for row in other.rows if row.get("main"))


def _test_set(run: Mapping[str, Any]) -> str:
    """Name what a measurement read: the corpus, its treebank if one is named for all, how inputs came."""
    named = {dict(run["treebanks"]).get(language, "") for language in run["languages"]}
    treebank = named.pop() if len(named) == 1 else ""
    by = "+".join(dict.fromkeys(one["translator"]["kind"] for one in run.get("translated", ())))
    return " ".join(filter(None, (run["corpus"], treebank, run.get("inputs", ""), by and f"by {by}")))


def _score(row: Row) -> Row:
    return {name: row.get(name) for name in SCORE_COLUMNS}


def _versions(folder: Path) -> Mapping[str, str]:
    """Return the versions the run was made with; none where that is not known."""
    try:
        made = json.loads((folder / MADE).read_text(encoding="utf-8"))
        return {str(name): str(number) for name, number in made["versions"].items()}
    except (OSError, ValueError, LookupError, AttributeError):
        return {}


def _nearby(folder: Path) -> str:
    """Say where a run is, if one is just above or below."""
    if (folder.parent / RECORD).exists():
        return f" One is above: {folder.parent}."
    inside = sorted(path.parent.name for path in folder.glob(f"*/{RECORD}"))
    return f" Runs in it: {', '.join(inside[:6])}{' …' if len(inside) > 6 else ''}." if inside else ""
