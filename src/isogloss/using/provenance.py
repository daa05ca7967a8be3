"""The provenance of fine-tuned models, and their tasks on other corpora.

Provenance is read from a run's record, or from the config of an exported model. Models of other programs
are transformers folders with a head for words, texts, options or spans, whose config names the labels. These
are matched with the labels of a corpus by name, in any order and letter case.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isogloss.core.checksums import find_differing_files
from isogloss.core.errors import ConfigError, ModelError, StorageError, check_named
from isogloss.core.records import (
    RECORD,
    Record,
    Row,
    base_of,
    kind_of_run,
    read_made,
    read_record,
    read_with_checksums,
    run_files,
    understanding,
)
from isogloss.core.run_parts import Count, Positive
from isogloss.core.shared_files import is_file
from isogloss.core.tag_schemes import OUTSIDE, are_bio, convert_inventory, decide_scheme
from isogloss.core.untrusted import convert_json, parse_json, read_regular
from isogloss.data.files import some
from isogloss.encoders.folders import FURTHER, SHIPPED, has_weights, load_encoder_config, read_config
from isogloss.encoders.hub import is_hub_name, pinned_name
from isogloss.tasks import TASKS, find_task, task_names
from isogloss.tasks.classification import NLI, TextClassification
from isogloss.tasks.tagging import Tagging
from isogloss.tasks.task import Task

if TYPE_CHECKING:
    from isogloss.data.sources import Sources
    from isogloss.encoders.family import Config

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


def folder_of(model: str | Path) -> Path:
    """Return the folder of a run or exported model. A hub model (owner/name[@revision]) is downloaded."""
    if not is_on_hub(model):
        return Path(model)
    from isogloss.encoders.folders import model_folder

    return model_folder(str(model))


def find_run_folder(folder: Path) -> Path:
    """Return a run's folder without resolving a link in its place, so that no record is read through it."""
    return folder if folder.is_symlink() else folder.resolve()


def links_in(folder: Path) -> tuple[str, ...]:
    """List the links in a folder, and on the way to it from its run, or of itself.

    Links of the cache of the hub's client are skipped.
    """
    run_folders = [path for path in folder.absolute().parents if (path / RECORD).exists()][:1]
    path_of_run = [
        path for path in folder.absolute().parents if run_folders and path.is_relative_to(run_folders[0])
    ]
    real_folder = Path(realpath(folder))
    blobs = real_folder.parent.parent / "blobs"
    inside = [path for path in sorted(real_folder.rglob("*")) if Path(realpath(path)).parent != blobs]
    return tuple(str(path) for path in (*path_of_run, folder, *inside) if path.is_symlink())


def is_on_hub(model: str | Path) -> bool:
    """Return whether a text is a name on the hub, with its owner, rather than a folder of this machine."""
    return "/" in str(model) and is_hub_name(str(model))


def provenance_of(folder: Path) -> tuple[Provenance, Path]:
    """Return a model's provenance and the folder of its weights, from a run's folder or an exported one."""
    if (folder / RECORD).exists():
        return _read_run(folder), folder / "model"
    if run := run_of_head(folder):
        return _read_head(run, folder.name), folder
    entry = exported_entry(folder)
    if entry is None:
        if (folder / CONFIG).is_file() and not (folder.parent / RECORD).exists():
            raise ModelError(
                f"{folder}: this is {_description(folder)}, without a head that predicts. A recipe "
                f'fine-tunes it (encoder = "{folder}"); then give the folder of that run.'
            )
        raise ModelError(
            f"{folder}: no finished run is here ({RECORD} is missing), nor a model that isogloss exported. "
            f"Give the folder of a run.{_nearby(folder)}"
        )
    return _read_entry(entry, folder), folder


def run_of_head(folder: Path) -> Path | None:
    """Return the folder of the run that trained the head of a further task. None for other folders."""
    run = folder.absolute().parent.parent.parent
    return run if folder.absolute().parent.name == FURTHER and (run / RECORD).exists() else None


def _read_head(folder: Path, name: str) -> Provenance:
    record = read_record(find_run_folder(folder))
    check_undamaged(find_run_folder(folder))
    with understanding(folder / RECORD):
        further_tasks = {task["task"]: task for task in record.run.get("further", ())}
        check_named(str(folder), "further task", further_tasks, name)
        facts = {
            field: further_tasks[name][field] for field in ("task", "corpus", "treebanks", "limit", "overlap")
        }
        rows = [row for row in record.rows if row.get("further_task") == name]
        scores = tuple(_score(row, str(row["further_corpus"])) for row in rows)
        content = {
            **_provenance(record, folder),
            **facts,
            "title": f"{record.title}, {name}",
            "scores": scores,
        }
        return convert_json(Provenance, content)


def _description(folder: Path) -> str:
    """Describe the model in a folder of a different program."""
    from isogloss.encoders.sentence_part_files import PARTS

    kinds = (
        ", ".join(str(architecture) for architecture in read_config(folder).get("architectures") or ())
        or "of an unnamed class"
    )
    library = "sentence-transformers" if (folder / PARTS).is_file() else "transformers"
    pickle_remark = (
        "" if has_weights(folder) or not any(folder.glob("*.bin")) else ", its weights as a pickle"
    )
    return f"an encoder of {library} ({kinds}{pickle_remark})"


def exported_entry(folder: Path) -> object:
    """Return the provenance in an exported model's config, as plain data. None for any other folder."""
    try:
        body = parse_json(read_regular(folder / CONFIG))
    except (OSError, ValueError):
        return None
    return body.get(ENTRY) if isinstance(body, dict) else None


def _read_entry(entry: object, folder: Path) -> Provenance:
    names = {field.name for field in fields(Provenance)}
    if not isinstance(entry, dict) or entry.keys() != names:
        raise ModelError(
            f"{folder / CONFIG}: its entry {ENTRY!r} was not written by this version of isogloss. "
            f"Export the model again."
        )
    try:
        return convert_json(Provenance, entry)
    except ValueError as error:
        raise ModelError(f"{folder / CONFIG}: entry {ENTRY!r}: {error}. Export the model again.") from error


def check_undamaged(run: Path) -> None:
    """Raise StorageError where a file of a run's model, or of the one it is a difference from, is damaged.

    An encoder that was prepared for the recipe (from a GGUF file, or with another mask) has no record. Its
    fingerprint is checked when the difference is loaded.
    """
    checked_runs = set[Path]()
    while run not in checked_runs and (not checked_runs or is_file(run, RECORD)):
        checked_runs.add(run)
        _, checksums = read_with_checksums(run)
        model_checksums = {
            name: checksum
            for name, checksum in checksums.items()
            if name.startswith("model/") and is_file(run, name)
        }
        for name, why in find_differing_files(run, model_checksums):
            raise StorageError(
                f"{run / name}: this file is damaged ({why}). Run the recipe again: only this run is "
                f"repeated. Or take another copy of the run."
            )
        run = run.parent / (base_of(run / "model") or run.name)


def _read_run(folder: Path) -> Provenance:
    record = read_record(find_run_folder(folder))
    check_undamaged(find_run_folder(folder))
    if record.kind != "fine-tune":
        raise ModelError(
            f"{folder}: run {record.id} is of kind {record.kind}, not a fine-tune: it has no head that "
            f"predicts. Choose a fine-tune: isogloss list runs --in {folder.parent}"
        )
    with understanding(folder / RECORD):
        return convert_json(Provenance, _provenance(record, folder))


def _provenance(record: Record, folder: Path) -> Mapping[str, object]:
    run = record.run
    optimization = run["optimization"]
    return {
        "run": record.id,
        "title": record.title,
        "task": run["task"],
        "corpus": run["corpus"],
        "method": " + ".join(run[part]["kind"] for part in ("method", "auxiliary", "peft") if run.get(part)),
        "encoder": encoder_text(run["encoder"]),
        "source": run["source"],
        "target": run["target"],
        "limit": optimization["limit"],
        "overlap": optimization["overlap"],
        "examples": run["examples"],
        "treebanks": run["treebanks"],
        "scores": tuple(_scores(record, folder.resolve().parent)),
        "versions": read_made(folder).versions,
    }


def encoder_text(encoder: Mapping[str, Any]) -> str:
    """Return a description of an encoder, given its content in a record."""
    if "source" in encoder:
        name = pinned_name(str(encoder["source"]), encoder.get("revision"))
        return f"{name}, a local folder" if encoder.get("data") and name != SHIPPED else name
    if "aligned" in encoder:
        pairs = "+".join(bitext["languages"] for bitext in encoder["aligned"])
        return f"{encoder_text(encoder['encoder'])}, {encoder['method']['kind']} on {pairs}"
    text = " ".join(encoder["languages"])
    if "start" in encoder:
        return f"{encoder_text(encoder['start'])}, pretrained further on {text}"
    shape = encoder["architecture"]
    return f"{shape['family']} {shape['layers']}x{shape['dim']}, pretrained on {text}"


def _scores(record: Record, store: Path) -> Iterator[Row]:
    """Yield the scores of the selected epoch, and of finished measurements of only this model."""
    for row in record.rows:
        if row.get("chosen"):
            yield _score(row, record.run["corpus"])
    for path in sorted(run_files(store, RECORD)):
        with suppress(StorageError):  # Damaged records of other runs do not matter here.
            yield from _read_scores(path, record.id)


def _read_scores(path: Path, model: str) -> list[Row]:
    """Return the scores in a record, if it measures only this model."""
    record = read_record(path.parent)
    if record.needs != (model,) or kind_of_run(record.kind, record.run) != "scores":
        return []
    with understanding(path):
        return [_score(row, _test_set(record.run)) for row in record.rows if row.get("main")]


def _test_set(run: Mapping[str, Any]) -> str:
    """Return the name of a test set: corpus, the treebank if all languages share one, form of the inputs."""
    treebanks = {dict(run["treebanks"]).get(language, "") for language in run["languages"]}
    treebank = treebanks.pop() if len(treebanks) == 1 else ""
    translators = "+".join(
        dict.fromkeys(translation["translator"]["kind"] for translation in run.get("translated", ()))
    )
    return " ".join(
        part
        for part in (run["corpus"], treebank, run.get("inputs", ""), translators and f"by {translators}")
        if part
    )


def _score(row: Row, corpus: str) -> Row:
    return {name: row.get(name) for name in SCORE_COLUMNS} | {"corpus": corpus}


def _nearby(folder: Path) -> str:
    """Return a hint at runs directly above or below a folder."""
    if (folder.parent / RECORD).exists():
        return f" One is above: {folder.parent}."
    inside = sorted(path.parent.name for path in folder.glob(f"*/{RECORD}"))
    return f" Runs in it: {', '.join(inside[:6])}{' …' if len(inside) > 6 else ''}." if inside else ""


TASKS_OF_HEADS: Mapping[str, str] = {
    "ForTokenClassification": "word-tagging",
    "ForSequenceClassification": "text-classification",
    "ForMultipleChoice": "multiple-choice",
    "ForQuestionAnswering": "qa",
}
"""Task of a head by the suffix of its class. Labels may make the task more specific."""

MAX_ROW_SUBWORDS = 512
"""Subwords of a row, where the model has as many positions."""

ELSEWHERE = "elsewhere"
"""The method of models that other programs trained."""


def provenance_elsewhere(folder: Path, name: str) -> Provenance | None:
    """Return the provenance of a model of a different program, from its config. None if it has no head.

    ``name`` is the requested folder or name on the hub.
    """
    from isogloss.encoders.tokenizers import load_tokenizer

    config = load_encoder_config(folder)
    task = _task_of_head(config)
    if not task:
        return None
    limit = min(MAX_ROW_SUBWORDS, int(load_tokenizer(str(folder)).model_max_length))
    # On the hub and in the cache the folder's own path does not name it.
    title = name if is_on_hub(name) else Path(name).resolve().name
    return Provenance(
        run=title.partition("/")[2].partition("@")[0] or title,
        title=f"fine-tuned elsewhere: {title}",
        task=task,
        corpus="",
        method=ELSEWHERE,
        encoder=str(config.model_type),
        source=(),
        target=(),
        limit=limit,
        overlap=limit // 4,
        versions={},
    )


_NAMELESS = re.compile(r"LABEL_\d+")
"""A label that transformers writes where none has a name."""

TASKS_OF_PROBLEMS: Mapping[str, str] = {
    "regression": "regression",
    "multi_label_classification": "multi-label-classification",
}
"""The task of a sequence head, by the kind of problem in its config."""


def _task_of_head(config: "Config") -> str:
    kinds, labels = config.architectures or (), tuple(config.id2label.values())
    task = next(
        (task for head, task in TASKS_OF_HEADS.items() if any(str(kind).endswith(head) for kind in kinds)), ""
    )
    if task == "word-tagging" and decide_scheme(labels).marks_spans:
        return "span-tagging"
    return _find_sequence_task(config, labels) if task == "text-classification" else task


def _find_sequence_task(config: "Config", labels: Sequence[str]) -> str:
    """Return the task of a sequence head. A head with one score predicts a number, as in transformers."""
    problem = config.problem_type or ("regression" if len(labels) == 1 else "")
    if problem in TASKS_OF_PROBLEMS:
        return TASKS_OF_PROBLEMS[problem]
    return (
        "pair-classification"
        if {label.casefold() for label in labels} == set(NLI.labels)
        else "text-classification"
    )


def fitting_task(task: Task, corpus: str, sources: "Sources") -> Task:
    """Return a model's task under a corpus's name of it, with the spelling of the corpus's labels.

    ConfigError where the model predicts something else, or lacks some of the corpus's labels.
    """
    from isogloss.tasks.lemmas import Lemmatization

    tasks = sources.corpus(corpus).tasks
    for name in tasks:
        if name == task.name and (name in TASKS or isinstance(task, Lemmatization)):
            return task
        theirs = find_task(name, sources.labels(corpus) or ()) if name in task_names() else None
        if theirs is not None and _predict_the_same(task, theirs):
            return replace(theirs, labels=_respell_labels(task.labels, theirs.labels, corpus))  # type: ignore[type-var]
    nameless = isinstance(task, Tagging) and all(_NAMELESS.fullmatch(label) for label in task.labels)
    labels_words = any(isinstance(find_task(name), Tagging) for name in tasks if name in task_names())
    if nameless and labels_words and task.name not in tasks:
        theirs_labels = sources.labels(corpus) or ()
        raise _lacks_labels(task.labels, theirs_labels, theirs_labels, corpus)
    sources.needs(corpus, task.name)
    return task


def _predict_the_same(task: Task, counterpart: Task) -> bool:
    """Return whether two tasks have the same outputs: labels of words, of spans or of texts, or numbers."""
    if isinstance(task, Tagging) and isinstance(counterpart, Tagging):
        return task.metric == counterpart.metric and type(task) is type(counterpart)
    # A head for sequences may read one text or two.
    return isinstance(task, TextClassification) and type(task) is type(counterpart)


def _respell_labels(labels: Sequence[str], theirs: Sequence[str], corpus: str) -> tuple[str, ...]:
    if are_bio(theirs) and not are_bio(labels) and decide_scheme(labels).marks_spans:
        return _respell_types(labels, theirs, corpus)
    spellings = {label.casefold(): label for label in theirs}
    lacking = [label for label in theirs if label.casefold() not in {*map(str.casefold, labels)}]
    if lacking:
        raise _lacks_labels(labels, theirs, lacking, corpus)
    return tuple(spellings.get(label.casefold(), label) for label in labels)


def _respell_types(labels: Sequence[str], theirs: Sequence[str], corpus: str) -> tuple[str, ...]:
    """Spell the types in the tags of a model as the corpus spells them."""
    types = list(dict.fromkeys(tag[2:] for tag in theirs if tag != OUTSIDE))
    model_types = {tag[2:].casefold() for tag in convert_inventory(labels)}
    lacking = [type_name for type_name in types if type_name.casefold() not in model_types]
    if lacking:
        raise _lacks_labels(labels, theirs, lacking, corpus)
    spellings = {type_name.casefold(): type_name for type_name in types}
    return tuple(tag[:2] + spellings.get(tag[2:].casefold(), tag[2:]) for tag in labels)


def _lacks_labels(
    labels: Sequence[str], theirs: Sequence[str], lacking: Sequence[str], corpus: str
) -> ConfigError:
    return ConfigError(
        f"corpus {corpus!r} has the labels {some(theirs)}, and the model {some(labels)}: it lacks "
        f"{some(lacking)}. Choose a model that was trained on them; if its labels have no names, write "
        f"them into its config.json (id2label)."
    )
