"""From what a user names (folders, runs, a baseline) to the comparisons meant."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.records import RECORD
from isogloss.oldreports.comparison import Baseline, Comparison, compare
from isogloss.oldreports.gather import Run, gather, named_apart, run_rows
from isogloss.oldreports.kept_scores import KeptScores, Label, Place, kept_scores
from isogloss.oldreports.rows import Score
from isogloss.oldreports.seeds import in_best_split
from isogloss.oldreports.words import count


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for."""

    runs: Sequence[str]
    """Folders of runs, folders of single runs, or ids of runs (or how they begin) in ``folder``."""
    folder: Path
    against: str
    """A method, an encoder, "ENCODER / METHOD", or the id of a run."""
    measure: str = ""
    """The measure compared; each task's own metric when empty."""
    split: str = ""
    """The split compared; when empty, each task's test split, or its dev split where it has no other."""


def compare_runs(request: Request) -> tuple[list[Comparison], list[str]]:
    """Compare the systems of runs with a baseline, each with all its seeds; also say what could not be.

    ConfigError where a name is not known, no predictions were kept, or nothing can be compared.
    """
    folders, names = _folders(request)
    runs = named_apart({run.id: run for folder in folders for run in gather(folder).runs}.values())
    scored = [run for run in runs if run.diagnostic == Score.diagnostic]
    kept = kept_scores(scored)
    _check_kept(kept, scored)
    baseline = _baseline(request.against, kept, scored)
    chosen = {_system(name, scored) for name in names}
    _check_place(request, kept)
    places = _places(request, kept)

    def wanted(place: Place, system: Label) -> bool:
        return place in places and (not chosen or system in chosen)

    found, notes = compare(kept, baseline, wanted=wanted)
    notes = [*kept.notes, *notes, *([_remake(kept.without)] if kept.without else [])]
    if not found:
        reason = " ".join(notes) or ("No other was scored on the same corpus, source, split and language.")
        raise ConfigError(f"compare: nothing to hold against {baseline}. {reason}")
    return found, notes


def _folders(request: Request) -> tuple[list[Path], list[str]]:
    """Return the folders to read, and the runs named among theirs; no name means all."""
    folders, names = [], []
    for word in request.runs:
        path = Path(word)
        if (path / RECORD).exists():
            folders.append(path.resolve().parent)
            names.append(path.resolve().name)
        elif path.is_dir():
            folders.append(path)
        else:
            folders.append(request.folder)
            names.append(word)
    return list(dict.fromkeys(folders)), names


def _check_kept(kept: KeptScores, scored: Sequence[Run]) -> None:
    if not scored:
        raise ConfigError(
            'compare: no scores among these runs. Add [[measure]] name = "scores" to the recipe, and run it.'
        )
    if not kept.models:
        raise ConfigError(f"compare: no predictions to test. {_remake(kept.without)}")


def _remake(runs: Sequence[str]) -> str:
    shown = ", ".join(runs[:12]) + (" …" if len(runs) > 12 else "")
    return (
        f"{count(len(runs), 'score run')} without predictions, made by an earlier version or unfinished: "
        f"{shown}. Delete record.json in these folders and run the recipe again; models are not trained anew."
    )


def _baseline(name: str, kept: KeptScores, scored: Sequence[Run]) -> Baseline:
    labels = kept.labels()
    encoders, methods = ({getattr(one, part) for one in labels} for part in ("encoder", "method"))
    if name in methods:
        return Baseline(method=name)
    if name in encoders:
        return Baseline(encoder=name)
    systems = {str(label): label for label in labels}
    found = systems.get(name) or _by_run("--against", name, scored)
    if found is None:
        known = {*methods, *encoders, *systems}
        raise unknown_name("--against", "method, encoder, system or run", name, known)
    return Baseline(found.encoder, found.method)


def _system(name: str, scored: Sequence[Run]) -> Label:
    """Return the system that a run's id, or how it begins, stands for."""
    found = _by_run("compare", name, scored)
    if found is None:
        raise unknown_name("compare", "folder or scored run", name, {run.id for run in scored})
    return found


def _by_run(where: str, name: str, scored: Sequence[Run]) -> Label | None:
    """Return the system of the score run, or of the model, whose id begins so; None without one."""
    found = dict.fromkeys(
        Label(row.encoder, row.method)
        for run in scored
        if name and run.record and any(one.startswith(name) for one in (run.id, *run.record.needs))
        for row in run_rows(run, Score)[0][:1]
    )
    if len(found) > 1:
        raise ConfigError(
            f"{where}: runs of {len(found)} systems begin with {name!r}: {', '.join(map(str, found))}. Write "
            f"more of the id, or name the system."
        )
    return next(iter(found), None)


def _check_place(request: Request, kept: KeptScores) -> None:
    known = {place.measure for place in kept.models}
    if request.measure and request.measure not in known:
        raise unknown_name("--measure", "measure", request.measure, known)
    there = {place.split for place in kept.models}
    if request.split and request.split not in there:
        raise unknown_name("--split", "split", request.split, there)


def _places(request: Request, kept: KeptScores) -> set[Place]:
    """Return where systems are compared: on the measure and the split asked for, or each task's own."""
    asked = (
        [one for one in kept.models if one.measure == request.measure] if request.measure else list(kept.main)
    )
    if request.split:
        return {one for one in asked if one.split == request.split}
    return set(in_best_split(asked))
