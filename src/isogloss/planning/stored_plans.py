"""The stored plan: the runs of a recipe in a file of their folder, which later processes read.

Planning takes a tenth of a millisecond per run, and a thousand processes with the same recipe would all plan.
The file lists what the plan depends on. If the recipe, the version, the plug-ins or any file differs, or the
file is damaged, the process plans as if it were missing, and reports why.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from isogloss.core import VERSION
from isogloss.core.checksums import package_digest, stamp
from isogloss.core.errors import one_line
from isogloss.core.processes import collector_paused
from isogloss.core.records import PLANNED_RUNS
from isogloss.core.stored_parts import PartTable, UnstorableError, pack_parts, unpack_parts
from isogloss.core.untrusted import convert_json
from isogloss.data.data_sources import DATA_SOURCES, HUB
from isogloss.data.sources import Sources
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import Encoder, Run
from isogloss.store.store import Store

FORMAT = 1

MAX_BYTES = 1 << 30
"""Largest size of the uncompressed file, enough for several million runs."""

_GZIP = 31
"""zlib's number for gzip, whose CRC-32 it then checks."""


@dataclass(frozen=True, kw_only=True)
class StoredPlan:
    """Content of the file."""

    format: int
    request: dict[str, str]
    """Facts that the plan depends on, with a digest of each."""
    table: PartTable
    """The runs, dependencies first, then the encoders."""
    titles: list[str]
    """Titles of the runs."""
    labels: list[str]
    """Labels of the encoders."""
    methods: dict[str, list[str]]
    against: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class PlannedRuns:
    """Runs of a recipe as planning finds them."""

    runs: list[Run]
    titles: dict[str, str]
    encoders: dict[Encoder, str]
    methods: Mapping[str, Sequence[str]]
    against: Mapping[str, str]


class UnreadablePlanError(ValueError):
    """A stored plan cannot be used. The message has the reason."""


def planned_parts(sources: Sources) -> dict[str, str]:
    """Return what a plan depends on besides its request: described corpora, and datasets of the hub.

    Files in the data folder are part of the request. A dataset of the hub changes only with its commit.
    """
    parts = {}
    described = [corpus for corpus in sources.described if not corpus.is_shipped]
    if described:
        states = [part for corpus in described for part in (corpus.name, corpus.state())]
        parts["described corpus"] = " ".join(states)
    name = HUB if any(corpus.hub for corpus in sources.described) else sources.data.partition(":")[0]
    if name in DATA_SOURCES:
        parts["commit on the hub"] = stamp([DATA_SOURCES[name].records])
    return parts


def with_version(request: Mapping[str, str]) -> dict[str, str]:
    """Add this version of isogloss to what a plan depends on. Empty for an empty request."""
    return {"version of isogloss": f"{VERSION} {package_digest()}", **request} if request else {}


def write_planned_runs(store: Store, planned: PlannedRuns, request: Mapping[str, str]) -> None:
    """Write the runs of a recipe for later processes.

    Writes nothing if these could not notice that the request changed, or could not read the runs.
    """
    if not request:
        return
    try:
        table = pack_parts((*planned.runs, *planned.encoders))
    except UnstorableError:
        return
    body = {
        "format": FORMAT,
        "request": with_version(request),
        "table": vars(table),
        "titles": list(planned.titles.values()),
        "labels": list(planned.encoders.values()),
        "methods": {label: list(ids) for label, ids in planned.methods.items()},
        "against": dict(planned.against),
    }
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    compressor = zlib.compressobj(level=1, wbits=_GZIP)
    content = compressor.compress(text.encode(errors="surrogateescape")) + compressor.flush()
    store.write_content(PLANNED_RUNS, content)


def read_planned_runs(store: Store, request: Mapping[str, str], sources: Sources) -> PlannedRuns | None:
    """Return the runs that an earlier process planned for the same request. None without a file.

    Raises UnreadablePlanError if the file is damaged, from elsewhere, or of a different request.
    """
    content = store.read(PLANNED_RUNS)
    if content is None:
        return None
    if not request:
        raise UnreadablePlanError("this recipe names classes by their module, whose changes stay unseen")
    with collector_paused():  # Half of the time, otherwise.
        return _read(content, with_version(request), sources)


def _read(content: bytes, request: Mapping[str, str], sources: Sources) -> PlannedRuns:
    try:
        plan = _parse(content)
    except (ValueError, RecursionError) as error:
        raise UnreadablePlanError(
            f"the file is damaged or not of isogloss ({one_line(error):.200})"
        ) from error
    names = {**request, **plan.request}
    differing = [name for name in names if request.get(name) != plan.request.get(name)]
    if differing:
        raise UnreadablePlanError(f"planned with a different {', '.join(sorted(differing))}")
    try:
        values = unpack_parts(plan.table)
        return _planned_runs(plan, values, sources)
    except (UnstorableError, RecursionError) as error:
        raise UnreadablePlanError(
            f"the file is damaged or not of isogloss ({one_line(error):.200})"
        ) from error


def _parse(content: bytes) -> StoredPlan:
    decompressor = zlib.decompressobj(_GZIP)
    try:
        text = decompressor.decompress(content, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not decompressor.eof or decompressor.unused_data:
        raise ValueError(f"more than {MAX_BYTES:,} bytes" if len(text) == MAX_BYTES else "its end is missing")
    body = json.loads(text, parse_constant=_refuse)
    names = [field.name for field in fields(StoredPlan)]
    if not isinstance(body, dict) or sorted(body) != sorted(names):
        raise ValueError(f"its fields are not {', '.join(names)}")
    plan = convert_json(StoredPlan, body)
    if plan.format != FORMAT:
        raise ValueError(f"format {plan.format}, of {FORMAT}")
    return plan


def _planned_runs(plan: StoredPlan, values: Sequence[Any], sources: Sources) -> PlannedRuns:
    count = len(plan.titles)
    runs = values[:count]
    encoders = values[count:]
    if len(encoders) != len(plan.labels) or not all(isinstance(encoder, Encoder) for encoder in encoders):
        raise UnstorableError("its encoders are incomplete")
    if not all(isinstance(run, Run) for run in runs):
        raise UnstorableError("a part is listed as a run")
    for encoder in encoders:
        root = encoder.root
        if isinstance(root, Pretrained) and root.data and root.data not in sources.encoders:
            raise UnreadablePlanError(f"planned with a different encoder {root.label}")
    return PlannedRuns(
        runs=list(runs),
        titles=dict(zip(plan.table.ids, plan.titles, strict=False)),
        encoders=dict(zip(encoders, plan.labels, strict=True)),
        methods=plan.methods,
        against=plan.against,
    )


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no finite number")
