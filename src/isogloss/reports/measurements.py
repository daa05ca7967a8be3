"""What a folder of runs holds: how each run ended, and one tidy frame for each kind of row.

A row of a record has ids and numbers; what a model is stands in its run. Here every model and encoder becomes
one line of facts (method and each of its fields, encoder, seed, languages …), and a frame is rows joined with
the facts of what they are about. Nothing is read from names.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from functools import cached_property, wraps
from pathlib import Path, PurePath
from typing import Any, TypeVar

import pandas as pd

from isogloss.core.errors import ConfigError, StorageError, unknown_name
from isogloss.core.identity import identity
from isogloss.core.plain_text import plain
from isogloss.core.records import MADE, RECORD, Record, read_record
from isogloss.core.rows import ROWS, kind_of
from isogloss.data.prediction_table import PREDICTIONS, Kept, read_predictions

PLAN, FAILED = "plan.json", "failed.json"

FRAMES: dict[str, Any] = {kind.frame: kind for kinds in ROWS.values() for kind in kinds}  # type: ignore[attr-defined]
"""The kinds of rows, by the name of their frame."""

ABOUT = {
    "interpolation": ("end", "start"),
    "plane": ("origin", "first", "second"),
    "deltas": ("origin", "first", "second"),
}
"""The columns of ids in frames about several models, that of the one whose facts a row carries first."""

FACTS = (
    *("kind", "task", "source", "target", "seed", "method", "way", "translator", "after.method"),
    *(
        "encoder",
        "encoder.run",
        "encoder.seed",
        "encoder.kind",
        "encoder.name",
        "encoder.languages",
        "encoder.method",
    ),
    *("encoder.modules", "encoder.adjusted", "encoder.pairs", "encoder.size", "encoder.original"),
)
"""Facts that every frame has a column of, known or not; the others (``method.mse`` …) as there are runs."""

SILENT = ("seed", "data", "conflict", "checkpoint_every", "precision", "version", "kind", "fields")
"""Fields that make no other system: replication, fingerprints, what only watches, and how it is computed."""

PLACE = ("corpus", "task", "source", "target", "treebanks", "encoder", "teacher", "dev_examples")
"""Fields of a fine-tuning that say where, and on what, not how it was trained."""

ENCODERS = ("pretrain", "pretrained", "adjust")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the plan and how it ended: finished, failed, damaged or missing."""

    id: str
    state: str
    folder: Path
    record: Record | None = None
    made: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def kind(self) -> str:
        """What was measured, for a measurement, or else the kind of run; "" where no record says it."""
        if self.record is None:
            return ""
        diagnostic = self.record.run.get("diagnostic")
        return str(diagnostic.get("kind")) if isinstance(diagnostic, Mapping) else self.record.kind


@dataclass(frozen=True)
class Measurements:
    """Everything a report is made from."""

    runs: Sequence[Run]
    title: str = "Runs without a plan"
    recipe: str = ""
    command: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What the recipe calls encoders, by the ids of their runs."""
    notes: tuple[str, ...] = ()
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    _predictions: dict[str, dict[str, Kept]] = field(default_factory=dict)
    _made: dict[Callable[..., Any], Any] = field(default_factory=dict)

    def frame(self, name: str) -> pd.DataFrame:
        """Return all rows of a kind as a tidy frame: their fields, and the facts of what they are about.

        ``run`` is the run that recorded a row; equal rows of several runs count once. A path has the facts
        of the model at its end, a plane or delta those of its origin, and ``start.way`` and the like tell
        the other models. Without rows where nothing was measured; ConfigError for an unknown name.
        """
        if name not in FRAMES:
            raise unknown_name("frame", "frame", name, FRAMES)
        if name not in self._frames:
            self._frames[name] = self._joined(name)
        return self._frames[name]

    def predictions(self, run: str, language: str) -> Kept | None:
        """Return what a score run kept of a language, example by example; None where there is nothing."""
        if run not in self._predictions:
            path = self._by_id[run].folder / PREDICTIONS if run in self._by_id else Path()
            try:
                self._predictions[run] = read_predictions(path) if path.is_file() else {}
            except StorageError:
                self._predictions[run] = {}
        return self._predictions[run].get(language)

    def finished(self, kind: str) -> list[Run]:
        """Return the finished runs of a kind (or with measurements of a diagnostic)."""
        return [run for run in self.runs if run.record is not None and run.kind == kind]

    def kinds(self) -> list[str]:
        """Return the kinds of runs, and the diagnostics, that have records, in the order of the plan."""
        return list(dict.fromkeys(run.kind for run in self.runs if run.record and run.record.rows))

    def raw(self, kind: str) -> pd.DataFrame:
        """Return the rows of a kind of run, or of a diagnostic, as they were recorded."""
        records = [run.record for run in self.finished(kind) if run.record]
        return pd.DataFrame([{"run": one.id, **row} for one in records for row in one.rows])

    @cached_property
    def models(self) -> pd.DataFrame:
        """The facts of every model and encoder that a run is, starts from or looks at; by id."""
        found: dict[str, dict[str, Any]] = {}
        for run in self.runs:
            for part in _parts(run.record.run if run.record else {}):
                key = identity(part)
                if key not in found:
                    found[key] = model_facts(part)
        frame = pd.DataFrame.from_dict(found, orient="index")
        frame = frame.reindex(columns=list(dict.fromkeys((*FACTS, *frame.columns))))
        numbers = ["seed", "encoder.seed", "encoder.size"]
        texts = [name for name in FACTS if name not in numbers]
        # A fact that no model has is a column of nan, which takes no text before it is one of objects.
        kinds = {**dict.fromkeys(numbers, "Int64"), **dict.fromkeys(texts, object)}
        return frame.astype(kinds).fillna(dict.fromkeys(texts, ""))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a reader must know: notes, failures, damage, the runs' own warnings, rows left out."""
        words = {"failed": "failed", "damaged": "could not be read"}
        told = [f"Run {run.id} {words[run.state]}: {run.error}" for run in self.runs if run.state in words]
        own = [
            f"{run.record.title}: {text}" for run in self.runs if run.record for text in run.record.warnings
        ]
        return (*self.notes, *told, *dict.fromkeys(own))

    @cached_property
    def _by_id(self) -> dict[str, Run]:
        return {run.id: run for run in self.runs}

    @cached_property
    def _beside(self) -> set[tuple[str, str, str]]:
        """Treebanks that a run reads beside others, by corpus and language: alone they make no test set."""
        read = [treebanks_of(run.record) for run in self.runs]
        return {one for banks in read if len({bank for _, _, bank in banks}) > 1 for one in banks}

    @cached_property
    def _rows(self) -> dict[str, list[dict[str, Any]]]:
        """All rows of known kinds, by frame, with the ids of their runs."""
        found: dict[str, list[dict[str, Any]]] = {}
        for run in self.runs:
            for row in run.record.rows if run.record else ():
                kind: Any = kind_of(frozenset(row), ROWS.get(run.kind, ()))
                if kind is not None:
                    found.setdefault(kind.frame, []).append({"run": run.id, **row})
                elif run.record and run.record.kind == "measure" and run.kind in ROWS:
                    raise _of_another_version(run)
        return found

    def _joined(self, name: str) -> pd.DataFrame:
        columns = [one.name for one in fields(FRAMES[name])]
        rows = pd.DataFrame(self._rows.get(name, []), columns=["run", *columns])
        ids = [one for one in ABOUT.get(name, ("model",)) if one in columns]
        about = {run: tested(self._by_id[run].record, self._beside) for run in rows["run"].unique()}
        own = pd.DataFrame([about[run] for run in rows["run"]], columns=[*TESTED])
        rows = pd.concat([rows, own.drop(columns=rows.columns.intersection(own.columns))], axis=1)
        if ids:  # Equal scores of one model on inputs that came otherwise are two.
            rows = rows.drop_duplicates([*columns, *TESTED], ignore_index=True)
        facts = self.models[[one for one in self.models if one not in rows]]
        rows = rows.join(facts, on=ids[0] if ids else "run")
        for other in ids[1:]:
            rows = rows.join(self.models[["way", "method"]].add_prefix(f"{other}."), on=other)
        # As objects, all texts lie in one block: taking a part of the rows is then some ten times as fast.
        return rows.astype(dict.fromkeys(rows.select_dtypes("str"), object)).copy()


Made = TypeVar("Made")


def once(make: Callable[[Measurements], Made]) -> Callable[[Measurements], Made]:
    """Let what a function makes of measurements be made a single time, however many ask for it."""

    @wraps(make)
    def made(m: Measurements) -> Made:
        if make not in m._made:
            m._made[make] = make(m)
        found: Made = m._made[make]
        return found

    return made


def read_measurements(out: Path) -> Measurements:
    """Read a folder of runs; a run that is missing, failed or damaged is said so, not raised.

    ConfigError for a folder without plan and records, and for measurements of an earlier version.
    """
    plan, notes = _read_json(out / PLAN)
    planned = [str(name) for name in plan.get("runs") or ()]
    present = sorted(path.parent.name for name in (RECORD, FAILED) for path in out.glob(f"*/{name}"))
    if not plan and not present:
        raise ConfigError(
            f"{out}: there is nothing to report on: neither {PLAN} nor a finished run. "
            f"Name the folder given to `isogloss run … --out`."
        )
    ids = dict.fromkeys(planned or present)
    if strangers := set(present) - set(ids):
        notes.append(f"{len(strangers)} more runs lie in the folder but not in the plan: they are left out.")
    labels = plan.get("labels")
    return Measurements(
        runs=[_read_run(out / name) for name in ids],
        title=without_folders(str(plan.get("title") or "Runs without a plan")),
        recipe=without_folders(str(plan.get("recipe", ""))),
        command=without_folders(str(plan.get("command", ""))),
        labels={key: plain(str(label)) for key, label in labels.items()} if isinstance(labels, dict) else {},
        notes=tuple(map(without_folders, notes)),
    )


def model_facts(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a fine-tuned model or of an encoder from its run, one level deep."""
    if run.get("kind") in ENCODERS:
        return {"kind": "encoder", "method": "", "way": "", "task": "", **_encoder_facts(run)}
    own = fields_of(run)
    first, source = run, own.get("source") or ()
    while not source and fields_of(first).get("start"):
        first = fields_of(first)["start"]
        source = fields_of(first).get("source") or ()
    return {
        "kind": "model",
        "task": own.get("task"),
        "source": "+".join(source),
        "target": "+".join(own.get("target") or ()),
        "seed": own.get("seed"),
        **_way(run),
        **_encoder_facts(own["encoder"]),
    }


def _way(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a model was trained, wherever: its method, optimization, translator, start, and their id."""
    own = fields_of(run)
    found = {"method": own["method"]["kind"], **_flat(own["method"], "method.")}
    found |= _flat(own["optimization"], "optimization.")
    found |= {name: own[name] for name in ("examples",) if own.get(name)}
    found |= translator_facts(own.get("translated") or (), "translator")
    if own.get("start"):
        found |= {f"after.{name}": value for name, value in _way(own["start"]).items()}
    return {**found, "way": identity(found)}


def translator_facts(translated: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return who made translations: the kind of translator, its fields, and its models."""
    if not translated:
        return {}
    first = fields_of(translated[0])
    models = dict.fromkeys(
        fields_of(model).get("source") or identity(model)
        for one in translated
        if (model := fields_of(one).get("model"))
    )
    found = {name: first["translator"]["kind"], **_flat(first["translator"], f"{name}.")}
    return found | ({f"{name}.model": "+".join(map(str, models))} if models else {})


def _encoder_facts(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return an encoder's facts; ``encoder`` is the id that its seeds share, so that they are one system."""
    base, adjustments = run, []
    while base["kind"] == "adjust":
        adjustments.append(fields_of(base))
        base = fields_of(base)["encoder"]
    own = fields_of(base)
    found: dict[str, Any] = {
        "encoder": identity(_seedless(run)),
        "encoder.run": identity(run),
        "encoder.seed": own.get("seed"),
        "encoder.kind": base["kind"],
        "encoder.original": identity(_seedless(base)),
        "encoder.name": plain(PurePath(str(own.get("source", ""))).name),
    }
    if base["kind"] == "pretrain":
        found |= {f"encoder.{one}": "+".join(own.get(one) or ()) for one in ("languages", "text")}
        found |= {"encoder.method": own["method"]["kind"], **_flat(own["method"], "encoder.method.")}
        modules = fields_of(own.get("modules") or {})
        found |= {"encoder.modules": modules.get("kind", ""), **_flat(own["architecture"], "encoder.")}
        found |= {"encoder.lines": json.dumps(own["lines"]) if own.get("lines") else ""}
    for last in adjustments[:1]:
        aligned = [fields_of(one) for one in last["aligned"]]
        found |= {"encoder.adjusted": last["method"]["kind"], **_flat(last["method"], "encoder.adjusted.")}
        found |= {"encoder.pairs": "+".join(one["languages"] for one in aligned)}
        found |= {"encoder.size": aligned[0].get("examples") or None, "encoder.depth": len(adjustments)}
    return found


TESTED = ("corpus", "inputs", "treebank", "inputs.translator")


def tested(record: Record | None, beside: Set[tuple[str, str, str]] = frozenset()) -> tuple[str, ...]:
    """Return what a measurement read: the corpus, how inputs came, the treebank if one is named for all.

    It does not count where other runs read the same ``beside`` those of other languages.
    """
    about, banks = fields_of(record.run) if record else {}, treebanks_of(record)
    named = {bank for _, _, bank in banks}
    who = translator_facts(about.get("translated") or (), "translator")
    return (
        str(about.get("corpus", "")),
        str(about.get("inputs") or ""),
        named.pop() if len(named) == 1 and not banks <= beside else "",
        json.dumps(who, sort_keys=True) if who else "",
    )


def treebanks_of(record: Record | None) -> set[tuple[str, str, str]]:
    """Return corpus, language and treebank of all that a measurement read; "" for a treebank not named."""
    about = fields_of(record.run) if record else {}
    banks = dict(about.get("treebanks") or ())
    return {
        (str(about.get("corpus", "")), code, banks.get(code, "")) for code in about.get("languages") or ()
    }


def fields_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a part of a run, wherever its content keeps them (``core.identity``)."""
    own = part.get("fields")
    return own if isinstance(own, Mapping) else part


def _flat(part: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return a part's plain fields as columns; a list becomes a text."""
    found = {name: value for name, value in fields_of(part).items() if name not in SILENT}
    return {
        f"{prefix}{name}": " ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in found.items()
        if not isinstance(value, Mapping)
    }


def _seedless(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: _seedless(value) for name, value in part.items() if name not in ("seed", "conflict")}
    return [_seedless(one) for one in part] if isinstance(part, list) else part


def _parts(run: Any) -> Iterator[Mapping[str, Any]]:
    """Give every model and encoder that stands in a run, itself included."""
    if isinstance(run, Mapping):
        if run.get("kind") in ("fine-tune", *ENCODERS):
            yield run
        for value in run.values():
            yield from _parts(value)
    elif isinstance(run, list | tuple):
        for value in run:
            yield from _parts(value)


def _read_run(folder: Path) -> Run:
    made, notes = _read_json(folder / MADE)
    if (folder / RECORD).exists():
        try:
            record = read_record(folder)
        except StorageError as error:
            return Run(id=folder.name, state="damaged", folder=folder, error=without_folders(str(error)))
        return Run(id=folder.name, state="finished", folder=folder, record=record, made=made)
    if (folder / FAILED).exists():
        failed, notes = _read_json(folder / FAILED)
        text = str(failed.get("error") or "; ".join(notes) or "no reason was written down")
        return Run(id=folder.name, state="failed", folder=folder, error=without_folders(text))
    return Run(id=folder.name, state="missing", folder=folder)


def _of_another_version(run: Run) -> ConfigError:
    return ConfigError(
        f"{run.folder}: this measurement was made by an earlier version: its rows have names where they now "
        f"have ids. Run the recipe again; models are kept, only measurements are repeated."
    )


def _read_json(path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return the JSON object in a file, empty where there is no file; a damaged one adds a note."""
    if not path.exists():
        return {}, []
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        return {}, [f"{path}: cannot be read ({error})."]
    return (body, []) if isinstance(body, dict) else ({}, [f"{path}: holds no JSON object."])


def without_folders(text: str) -> str:
    """Return a text, safe to show, without the folders of absolute paths: they belong to one machine."""
    text = plain(text)
    if "/" not in text and "\\" not in text:
        return text
    return "\n".join(" ".join(map(_last_part, line.split(" "))) for line in text.split("\n"))


def _last_part(word: str) -> str:
    opened = len(word) - len(word.lstrip("('\"`"))
    path = word[opened:]
    if not path.startswith(("/", "\\")) and path[1:3] not in (":/", ":\\"):
        return word
    return f"{word[:opened]}…/{path.replace(chr(92), '/').rsplit('/', 1)[1]}"
