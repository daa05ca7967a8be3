"""The measurements of a folder of runs: the state of each run, and one tidy frame for each kind of row.

A row of a record has ids and numbers; what a model is stands in its run. Here every model and encoder becomes
one row of facts (method and each of its fields, encoder, seed, languages …), and a frame is the rows of one
kind joined with the facts of their models. Nothing is parsed from names.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property, wraps
from itertools import chain
from pathlib import Path, PurePath
from typing import Any, TypeVar, cast

import pandas as pd

from isogloss.core.errors import ConfigError, StorageError, unknown_name
from isogloss.core.identity import identity
from isogloss.core.plain_text import plain, without_folders
from isogloss.core.records import MADE, RECORD, Record, read_record
from isogloss.core.rows import ROWS, kind_of
from isogloss.data.result_files import PREDICTIONS, StoredPredictions, read_answers, read_predictions

PLAN, FAILED = "plan.json", "failed.json"

FRAMES = {kind.frame: kind for kinds in ROWS.values() for kind in kinds}
"""The kinds of rows, by the name of their frame."""

CORNERS = ("origin", "first", "second")
ABOUT = {"interpolation": ("end", "start"), "plane": CORNERS, "deltas": CORNERS}
"""Columns of ids in frames about several models; the first is of the model whose facts are joined."""

FACTS = (
    *(
        "kind",
        "task",
        "source",
        "target",
        "seed",
        "method",
        "way",
        "translator",
        "after.method",
        "of",
        "encoder",
    ),
    *("auxiliary", "auxiliary.method"),
    *(f"encoder.{one}" for one in ("run", "seed", "kind", "name", "languages", "method", "modules")),
    *(f"encoder.{one}" for one in ("adjusted", "pairs", "size", "original")),
)
"""Facts that every frame has as columns; others (``method.mse`` …) depend on the runs."""

TESTED = ("corpus", "inputs", "treebank", "inputs.translator")
"""Inputs of a measurement: corpus, form of the inputs, treebank if all share one, translator."""

IGNORED = (
    "seed",
    "data",
    "conflict",
    "checkpoint_every",
    "precision",
    "version",
    "package",
    "kind",
    "fields",
)
"""Fields that do not distinguish systems: replication, fingerprints, monitoring, and computation."""

ENCODERS = ("pretrain", "pretrained", "adjust")

EARLIER = (
    "this measurement was made by an earlier version: its rows have names where they now have ids. "
    "Run the recipe again; models are kept, only measurements are repeated."
)


CONTINUAL = {"continual": "source-only", "continual-few-shot": "few-shot"}
"""What earlier versions recorded as methods: these, with an alignment loss …"""

SHOTS = ("kind", "version", "shots", "per", "draw", "dev")
"""… and the fields that were the method's; the others were the loss's."""

Content = Mapping[str, Any]
"""A run, or a part of one, as recorded."""

Facts = dict[str, Any]
"""Facts by name, as columns of a frame."""

NO_RECORD = Record(id="", kind="", title="", run={})


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run of the plan and its state: finished, failed, damaged or missing."""

    id: str
    state: str
    folder: Path
    record: Record = NO_RECORD
    """Empty where the run did not finish."""
    made: Content = field(default_factory=dict)
    error: str = ""

    @property
    def kind(self) -> str:
        """The diagnostic of a measurement, else the kind of run; "" without a record."""
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
    """The recipe's names of encoders, by the ids of their runs."""
    methods: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The ids of the models of each method, by the recipe's name of it."""
    scale: str = ""
    published: Sequence[Mapping[str, object]] = ()
    """What a paper printed: rows of ``experiments.published.COLUMNS``."""
    notes: tuple[str, ...] = ()
    _frames: dict[str, pd.DataFrame] = field(default_factory=dict)
    _predictions: dict[str, dict[str, StoredPredictions]] = field(default_factory=dict)
    _cache: dict[Callable[..., object], object] = field(default_factory=dict)

    def frame(self, name: str) -> pd.DataFrame:
        """Return all rows of a kind as a tidy frame: their fields, and the facts of their models.

        ``run`` is the run that recorded a row; equal rows of several runs count once. A path has the facts
        of the model at its end, a plane or delta those of its origin; ``start.way`` and the like are of the
        other models. Rows of a plug-in's diagnostic are under its name. Empty where nothing was measured;
        ConfigError for an unknown name.
        """
        if name not in FRAMES and name not in self._rows:
            raise unknown_name("frame", "frame", name, {**FRAMES, **self._rows})
        if name not in self._frames:
            self._frames[name] = self._joined(name)
        return self._frames[name]

    @property
    def frames(self) -> list[str]:
        """The names of the kinds of rows that there are."""
        return list(self._rows)

    def has_rows(self, name: str) -> bool:
        """Return whether there are rows of a kind, be it known here or not."""
        return (name in FRAMES or name in self._rows) and len(self.frame(name)) > 0

    def predictions(self, run: str, language: str) -> StoredPredictions | None:
        """Return the recorded predictions of a score run on a language; None where there are none."""
        if run not in self._predictions:
            self._predictions[run] = {}
            with suppress(StorageError, KeyError):
                path = self._by_id[run].folder / PREDICTIONS
                self._predictions[run] = read_predictions(path) if path.is_file() else {}
        return self._predictions[run].get(language)

    def answers(self, run: str) -> dict[str, dict[str, str]]:
        """Return what a run's model predicted, as JSON, by language and example's id; empty where unknown."""
        with suppress(StorageError, KeyError):
            return read_answers(self._by_id[run].folder / PREDICTIONS)
        return {}

    def finished(self, kind: str) -> list[Run]:
        """Return the finished runs of a kind, or the measurements of a diagnostic."""
        return [run for run in self.runs if run.state == "finished" and run.kind == kind]

    def kinds(self) -> list[str]:
        """Return the kinds of runs and the diagnostics with records, in the order of the plan."""
        return list(dict.fromkeys(run.kind for run in self.runs if run.record.rows))

    def raw(self, kind: str) -> pd.DataFrame:
        """Return the rows of a kind of run, or of a diagnostic, as recorded."""
        rows = [{"run": run.id, **row} for run in self.finished(kind) for row in run.record.rows]
        return pd.DataFrame(rows)

    @cached_property
    def models(self) -> pd.DataFrame:
        """The facts of every model and encoder in any run, by id."""
        parts = {identity(part): part for run in self.runs for part in _parts(run.record.run)}
        facts = {key: model_facts(part) for key, part in parts.items()}
        frame = pd.DataFrame.from_dict(facts, orient="index")
        frame = frame.reindex(columns=list(dict.fromkeys((*FACTS, *frame.columns))))
        numbers = ["seed", "encoder.seed", "encoder.size"]
        texts = [name for name in FACTS if name not in numbers]
        # A fact that no model has is a column of nan, which must become one of objects to take texts.
        kinds = {**dict.fromkeys(numbers, "Int64"), **dict.fromkeys(texts, object)}
        return frame.astype(kinds).fillna(dict.fromkeys(texts, ""))

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Notes, failures, damaged runs, and the runs' own warnings."""
        words = {"failed": "failed", "damaged": "could not be read"}
        failures = [
            f"Run {run.id} {words[run.state]}: {run.error}" for run in self.runs if run.state in words
        ]
        own = [f"{run.record.title}: {text}" for run in self.runs for text in run.record.warnings]
        return (*self.notes, *failures, *dict.fromkeys(own))

    @cached_property
    def _by_id(self) -> dict[str, Run]:
        return {run.id: run for run in self.runs}

    @cached_property
    def _combined_treebanks(self) -> set[tuple[str, str, str]]:
        """Treebanks that some run combines with others, by corpus and language: no test sets alone."""
        read = [treebanks_of(run.record.run) for run in self.runs]
        return {one for banks in read if len({bank for _, _, bank in banks}) > 1 for one in banks}

    @cached_property
    def _rows(self) -> dict[str, list[Facts]]:
        """All rows of known kinds, by frame, with their runs and the inputs of these."""
        found: dict[str, list[Facts]] = {}
        for run in self.runs:
            read = dict(zip(TESTED, tested_inputs(run.record.run, self._combined_treebanks), strict=True))
            for row in run.record.rows:
                kind = kind_of(frozenset(row), ROWS.get(run.kind, ()))
                plugged = run.record.kind == "measure" and run.kind not in ROWS
                if kind is not None or plugged:
                    frame = kind.frame if kind is not None else run.kind
                    found.setdefault(frame, []).append({"run": run.id, **read, **row})
                elif run.record.kind == "measure":
                    raise ConfigError(f"{run.folder}: {EARLIER}")
        return found

    def _joined(self, name: str) -> pd.DataFrame:
        found = self._rows.get(name, [])
        own = [one.name for one in fields(FRAMES[name])] if name in FRAMES else [*chain(*found)]
        columns = [one for one in dict.fromkeys((*own, *TESTED)) if one != "run"]
        rows = pd.DataFrame(found, columns=["run", *columns])
        ids = [one for one in ABOUT.get(name, ("model",)) if one in columns]
        if ids:  # Scores on other inputs are not duplicates.
            rows = rows.drop_duplicates(columns, ignore_index=True)
        facts = self.models[[one for one in self.models if one not in rows]]
        rows = rows.join(facts, on=ids[0] if ids else "run")
        for other in ids[1:]:
            rows = rows.join(self.models[["way", "method"]].add_prefix(f"{other}."), on=other)
        # As objects, all texts lie in one block, which makes selecting rows some ten times as fast.
        return rows.astype(dict.fromkeys(rows.select_dtypes("str"), object)).copy()


Result = TypeVar("Result")


def cached(function: Callable[[Measurements], Result]) -> Callable[[Measurements], Result]:
    """Cache the result of a function on the measurements that it is given."""

    @wraps(function)
    def wrapper(m: Measurements) -> Result:
        if function not in m._cache:
            m._cache[function] = function(m)
        return cast(Result, m._cache[function])

    return wrapper


def read_measurements(out: Path) -> Measurements:
    """Read a folder of runs; missing, failed and damaged runs raise no error but have that state.

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
    if unplanned := set(present) - set(ids):
        notes.append(f"{len(unplanned)} more runs lie in the folder but not in the plan: they are left out.")
    labels, about = plan.get("labels"), dict[str, Any]()
    for name in ("title", "recipe", "command", "scale"):
        about |= {name: without_folders(plan[name])} if plan.get(name) else {}
    about |= {name: plan[name] for name in ("methods", "published") if plan.get(name)}
    return Measurements(
        runs=[_read_run(out / name) for name in ids],
        labels={key: plain(str(label)) for key, label in labels.items()} if isinstance(labels, dict) else {},
        notes=tuple(map(without_folders, notes)),
        **about,
    )


def _read_run(folder: Path) -> Run:
    """Read a run; without a record or a failure it is missing."""
    if (folder / RECORD).exists():
        try:
            record = read_record(folder)
        except StorageError as error:
            return Run(id=folder.name, state="damaged", folder=folder, error=without_folders(error))
        made, _ = _read_json(folder / MADE)
        return Run(id=folder.name, state="finished", folder=folder, record=record, made=made)
    if not (folder / FAILED).exists():
        return Run(id=folder.name, state="missing", folder=folder)
    failed, notes = _read_json(folder / FAILED)
    reason = failed.get("error") or "; ".join(notes) or "no reason was written down"
    return Run(id=folder.name, state="failed", folder=folder, error=without_folders(reason))


def _read_json(path: Path) -> tuple[Facts, list[str]]:
    """Return the JSON object in a file (empty without a file), and a note where it is damaged."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}), []
    except (TypeError, ValueError, OSError) as error:
        return {}, [f"{path}: cannot be read as a JSON object ({error})."]


def model_facts(run: Content) -> Facts:
    """Return the facts of a fine-tuned model or an encoder from its run, as flat columns."""
    if run.get("kind") in ENCODERS:
        return {"kind": "encoder", "method": "", "way": "", "task": "", **_encoder_facts(run)}
    own = fields_of(run)
    start = own.get("start")
    return {
        **{"kind": "model", "task": own.get("task"), "seed": own.get("seed")},
        "source": "+".join(own.get("source") or ()) or (model_facts(start)["source"] if start else ""),
        "target": "+".join(own.get("target") or ()),
        **_way(run),
        **_encoder_facts(own["encoder"]),
    }


PLAIN = "source-only"
"""The teacher of all methods that name none."""


def _way(run: Content) -> Facts:
    """Return how a model was trained: method, optimization, translator, start, and their id (``way``)."""
    own = _of_today(fields_of(run))
    found = _part(own["method"], "method") | _flat(own["optimization"], "optimization")
    if auxiliary := own.get("auxiliary"):
        found |= {**_part(auxiliary, "auxiliary"), "auxiliary.method": found["method"]}
        found["method"] = f"{found['method']} + {auxiliary['kind']}"
    found |= _part(own["peft"], "peft") if own.get("peft") else {}
    found |= {"examples": own["examples"]} if own.get("examples") else {}
    found |= _translator(own.get("translated"))
    found |= _parts_facts(own) if own.get("parts") else {}
    if own.get("start"):
        found |= {f"after.{name}": value for name, value in _way(own["start"]).items()}
    teacher = _way(own["teacher"]) if own.get("teacher") else {"method": PLAIN}
    if teacher["method"] != PLAIN:
        found |= {f"teacher.{name}": value for name, value in teacher.items()}
    return {**found, "way": identity(found)}


def _parts_facts(own: Content) -> Facts:
    """Return what an average is of: each way of training and each encoder once, with its whole weight."""
    weights = fields_of(own["method"]).get("weights") or [None] * len(own["parts"])
    ways, totals, names = dict[str, Facts](), dict[str, float](), list[str]()
    for part, weight in zip(own["parts"], weights, strict=True):
        facts = {"way": identity(_seedless(part))} if part["kind"] in ENCODERS else _way(part)
        key = facts["way"]
        if key not in ways:
            names.append(facts.get("method") or "+".join(fields_of(part).get("languages") or (part["kind"],)))
        ways[key], totals[key] = facts, totals.get(key, 0.0) + (weight or 0.0)
    found = {f"of.{n}.{name}": one for n, way in enumerate(ways.values()) for name, one in way.items()}
    of_weights = {"method.weights": " ".join(f"{one:g}" for one in totals.values())} if weights[0] else {}
    return {"of": "+".join(names), "of.size": len(own["parts"]), **of_weights, **found}


def _of_today(own: Content) -> Content:
    """Return a model's fields with continual learning as an auxiliary loss, however it was recorded."""
    method = own["method"]
    if method["kind"] not in CONTINUAL:
        return own
    about = fields_of(method).items()
    carrier = {name: value for name, value in about if name in SHOTS}
    loss = {name: value for name, value in about if name not in SHOTS}
    return {
        **own,
        "method": {**carrier, "kind": CONTINUAL[method["kind"]]},
        "auxiliary": {**loss, "kind": "alignment-loss"},
    }


def _translator(translated: Sequence[Content] | None) -> Facts:
    """Return the kind of translator of some translations, its fields, and its models.

    What is translated back has the translator of what it was made from, which may have a model of its own.
    """
    made = [fields_of(one) for one in translated or ()]
    if not made:
        return {}
    models = [one["model"] for one in made if one.get("model") and not one.get("start")]
    sources = dict.fromkeys(str(fields_of(one).get("source") or identity(one)) for one in models)
    return _part(made[0]["translator"], "translator") | (
        {"translator.model": "+".join(sources)} if models else {}
    )


def _encoder_facts(run: Content) -> Facts:
    """Return an encoder's facts; ``encoder`` is an id that all its seeds share."""
    base, adjustments = run, []
    while base["kind"] == "adjust":
        adjustments.append(fields_of(base))
        base = fields_of(base)["encoder"]
    own = fields_of(base)
    found: Facts = {
        "encoder": identity(_seedless(run)),
        "encoder.run": identity(run),
        "encoder.seed": own.get("seed"),
        "encoder.kind": base["kind"],
        "encoder.original": identity(_seedless(base)),
        "encoder.name": plain(PurePath(str(own.get("source", ""))).name),
    }
    if base["kind"] == "pretrain":
        found |= {f"encoder.{one}": "+".join(own.get(one) or ()) for one in ("languages", "text")}
        found |= _part(own["method"], "encoder.method") | _flat(
            fields_of(_first(base)).get("architecture") or {}, "encoder"
        )
        found |= _flat(own.get("replay") or {}, "encoder.replay")
        found |= _flat(own.get("vocabulary") or {}, "encoder.new")
        found |= _start_facts(own["start"]) if own.get("start") else {}
        found |= {"encoder.modules": fields_of(own.get("modules") or {}).get("kind", "")}
        found |= {"encoder.lines": json.dumps(own["lines"]) if own.get("lines") else ""}
    for last in adjustments[:1]:
        aligned = [fields_of(one) for one in last["aligned"]]
        found |= _part(last["method"], "encoder.adjusted")
        found |= {"encoder.pairs": "+".join(one["languages"] for one in aligned)}
        size = last.get("sampled") or aligned[0].get("examples") or None
        found |= {"encoder.size": size, "encoder.depth": len(adjustments)}
    return found


def _start_facts(start: Content) -> Facts:
    """Return the start of an encoder that was trained further: its id, and the name of what came first."""
    source = str(fields_of(_first(start)).get("source", ""))
    return {"encoder.start": identity(_seedless(start)), "encoder.name": plain(PurePath(source).name)}


def _first(encoder: Content) -> Content:
    """Return the encoder that all others on the way to this one were made from."""
    before = fields_of(encoder).get("start") or fields_of(encoder).get("encoder")
    return _first(before) if before else encoder


def tested_inputs(run: Content, combined: Set[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return the inputs of a measurement, as listed in ``TESTED``.

    A treebank named for all languages does not count where other runs combine it with others.
    """
    own, banks = fields_of(run), treebanks_of(run)
    named = {bank for _, _, bank in banks}
    bank = named.pop() if len(named) == 1 and not banks <= combined else ""
    translator = _translator(own.get("translated"))
    read = (own.get("corpus", ""), own.get("inputs") or "", bank)
    return *(str(one or "") for one in read), json.dumps(translator, sort_keys=True) if translator else ""


def treebanks_of(run: Content) -> set[tuple[str, str, str]]:
    """Return corpus, language and treebank of a measurement's inputs; "" for an unnamed treebank."""
    own = fields_of(run)
    banks = dict(own.get("treebanks") or ())
    return {(str(own.get("corpus", "")), code, banks.get(code, "")) for code in own.get("languages") or ()}


def fields_of(part: Content) -> Content:
    """Return the fields of a part of a run, nested or not (``core.identity``)."""
    own = part.get("fields")
    return own if isinstance(own, Mapping) else part


def _part(part: Content, name: str) -> Facts:
    """Return the kind of a part and its fields as columns."""
    return {name: part["kind"], **_flat(part, name)}


def _flat(part: Content, prefix: str) -> Facts:
    """Return a part's plain fields as columns; lists become texts."""
    return {
        f"{prefix}.{name}": " ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in fields_of(part).items()
        if name not in IGNORED and not isinstance(value, Mapping)
    }


def _seedless(part: object) -> object:
    if isinstance(part, Mapping):
        return {name: _seedless(value) for name, value in part.items() if name not in ("seed", "conflict")}
    return [_seedless(one) for one in part] if isinstance(part, list) else part


def _parts(run: object) -> Iterator[Content]:
    """Yield every model and encoder within a run, itself included."""
    if isinstance(run, Mapping) and run.get("kind") in ("fine-tune", *ENCODERS):
        yield run
    inside = run.values() if isinstance(run, Mapping) else run if isinstance(run, list | tuple) else ()
    for value in inside:
        yield from _parts(value)
