"""Exporting a model: a folder that transformers loads without isogloss, with a model card."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from isogloss.core import VERSION
from isogloss.core.atomic_files import atomic_folder, check_unicode, writing
from isogloss.core.errors import ConfigError, StorageError
from isogloss.core.languages import is_built_in, language_name
from isogloss.core.records import RECORD, Row
from isogloss.core.untrusted import from_home
from isogloss.data.hub_splits import EVAL_RESULTS, ON_HUB, eval_result, hub_split
from isogloss.encoders.added.active_language import language_maps_of
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.added.module_files import MAPS_FILE, MODULES_FILE
from isogloss.encoders.added.module_settings import COPIES
from isogloss.encoders.added.task_adapters import TASK_FILE, task_adapter
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Model as Network
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.mixup import SETTINGS, WEIGHTS, save_mixup
from isogloss.encoders.saving import save_model
from isogloss.encoders.subwords import needs_spaces
from isogloss.features.publishing.adapters import AdapterExport, write_adapters
from isogloss.features.publishing.licences import (
    OTHER,
    corpus_of,
    datasets_of,
    has_built_in_languages,
    licence_of,
    non_commercial,
)
from isogloss.features.publishing.onnx import check_possible
from isogloss.features.publishing.onnx_scores import check_scored, write_onnx_files
from isogloss.store.leases import LEASES
from isogloss.tasks.classification import PAIR
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.provenance import (
    CONFIG,
    ENTRY,
    SCORE_COLUMNS,
    exported_entry,
)

TOKENIZER_CONFIG = "tokenizer_config.json"
TOKENIZER = "tokenizer.json"
GENERIC_TOKENIZER = "PreTrainedTokenizerFast"
"""The class that uses tokenizer.json unchanged: others rebuild it and lose tables of characters."""

CARD = "README.md"

LOCAL_KEYS = ("is_local", "local_files_only")
"""Keys that transformers adds to a tokenizer that was loaded from this machine."""

METRICS = {
    "span_f1": "f1",
    "word_f1": "f1",
    "seqeval_f1": "f1",
    "em": "exact_match",
    "mcc": "matthews_correlation",
}
"""The hub's names of metrics whose names differ here."""

_ON_THE_HUB = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@[0-9a-f]{40}")
"""An encoder of the hub as its model's provenance names it, with the commit."""


def export(
    model: FineTuned,
    folder: Path,
    *,
    onnx: bool = False,
    int8: bool = False,
    adapter: bool = False,
    force: bool = False,
    data: str = "",
) -> Path:
    """Write the model to a folder, completely or not at all, and return the folder.

    ``onnx`` adds an ONNX file, ``int8`` a smaller and faster one with weights of 8 bits, whose score on the
    dev split of the model's corpus is measured; ``data`` is the folder with the corpora.
    ``adapter`` writes only its adapters, with the head, in the format of peft or of the library adapters.
    StorageError if the folder contains anything but an earlier export, unless ``force`` is set, and where the
    model has symbolic links: what they lead to may be anything, and would be published.
    """
    refuse_links(model.links)
    folder = from_home(folder).resolve()
    check_free(folder, force=force)
    if int8 and not onnx:
        raise ConfigError("--int8 needs --onnx: it is a second ONNX file. Add --onnx, or remove --int8.")
    if onnx:
        check_possible(model)
        if int8:
            check_scored(model, data)
    if adapter and (onnx or model.mixup):
        raise ConfigError(
            "--adapter: adapters alone cannot be written as ONNX, nor mix inputs with their translations. "
            "Remove --adapter."
        )
    with atomic_folder(folder.parent, folder.name) as temporary:
        if adapter:
            adapters = write_adapters(model.network, temporary, model.folder)
            if (temporary / CONFIG).is_file():
                _change(temporary / CONFIG, {ENTRY: asdict(model.provenance)})
            (temporary / CARD).write_text(card(model, onnx=False, adapters=adapters), encoding="utf-8")
            write_eval_results(model, temporary)
            return folder
        extra_writers = () if model.mixup is None else (partial(save_mixup, model.mixup),)
        write_model(model.network, model.tokenizer, temporary, model.longest, extra_writers)
        with writing(folder):
            _complete(temporary, model)
            write_eval_results(model, temporary)
        scores = write_onnx_files(model, temporary, int8=int8, data=data) if onnx else ()
        with writing(folder):
            (temporary / CARD).write_text(card(model, onnx=onnx, onnx_scores=scores), encoding="utf-8")
    return folder


def write_model(
    network: Network,
    tokenizer: Tokenizer,
    folder: Path,
    longest: int,
    extra_writers: Sequence[Callable[[Path], None]] = (),
) -> None:
    """Write a model into an empty folder, with the tokenizer as programs take it, cutting at the longest."""
    save_model(network, tokenizer, folder / "model", extra_writers=extra_writers)
    with writing(folder):
        for path in sorted((folder / "model").iterdir()):
            path.rename(folder / path.name)
        (folder / "model").rmdir()
        changes = {
            "model_max_length": longest,
            "model_input_names": list(tokenizer.model_input_names),
            "tokenizer_class": GENERIC_TOKENIZER,
        }
        _change(folder / TOKENIZER_CONFIG, changes, removed_names=LOCAL_KEYS)
        # Truncation and padding of the last call are no part of the tokenizer.
        _change(folder / TOKENIZER, {"truncation": None, "padding": None})


def refuse_links(links: Sequence[str]) -> None:
    """Raise StorageError where a model has symbolic links."""
    if links:
        raise StorageError(
            f"{links[0]}: this is a symbolic link, which no run makes, and links are not "
            f"exported. If you trust its source, replace it by the file."
        )


def check_free(folder: Path, *, force: bool) -> None:
    """Raise StorageError unless a folder is new or empty, or may be replaced."""
    check_unicode(folder)
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"{folder}: this is a file; an export needs a folder. Choose another.")
    inside = sorted(folder.iterdir()) if folder.exists() else []
    if not inside:
        return
    if _is_protected(folder):
        raise StorageError(
            f"{folder}: runs, your home or the current folder are here; not even --force replaces them. "
            f"Choose another folder."
        )
    is_export = exported_entry(folder) is not None
    foreign_names = [
        path.name for path in inside if not is_export or (path.is_dir() and path.name != EVAL_RESULTS)
    ]
    if foreign_names and not force:
        content = "an earlier export with folders in it" if is_export else "no earlier export and not empty"
        raise StorageError(
            f"{folder}: this folder is {content} ({', '.join(foreign_names[:4])} …). Choose another, or let "
            f"isogloss export --force replace all that is in it."
        )


def _is_protected(folder: Path) -> bool:
    """Return whether a folder contains anything that no export may replace."""
    outer = any(folder == path or folder in path.parents for path in (Path.cwd(), Path.home().resolve()))
    is_in_run = exported_entry(folder) is None and any((path / RECORD).exists() for path in folder.parents)
    return outer or is_in_run or any(any(folder.rglob(name)) for name in (RECORD, LEASES))


def _complete(folder: Path, model: FineTuned) -> None:
    """Add the provenance to the config, and what a pipeline of words needs to the tokenizer."""
    _change(folder / CONFIG, {ENTRY: asdict(model.provenance)})
    if model.kind.pipeline == "token-classification" and needs_spaces(model.tokenizer):
        _add_spaces(folder / TOKENIZER)


def _add_spaces(path: Path) -> None:
    """Let a tokenizer put a space before each word, as isogloss does and pipelines do not."""
    normalizer = json.loads(path.read_text(encoding="utf-8"))["normalizer"]
    parts = [{"type": "Prepend", "prepend": " "}, *([normalizer] if normalizer else [])]
    _change(path, {"normalizer": {"type": "Sequence", "normalizers": parts}})


def _change(path: Path, values: Mapping[str, object], removed_names: tuple[str, ...] = ()) -> None:
    body = json.loads(path.read_text(encoding="utf-8"))
    body = {name: value for name, value in {**body, **values}.items() if name not in removed_names}
    path.write_text(json.dumps(body, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def card(
    model: FineTuned,
    *,
    onnx: bool,
    address: str = "FOLDER",
    adapters: AdapterExport | None = None,
    onnx_scores: Sequence[Row] = (),
) -> str:
    """Return the model card: provenance, scores, and how to load the model, or ``adapters`` alone."""
    provenance = model.provenance
    return render_template(
        "card.md.j2",
        adapters=adapters,
        model=model,
        provenance=provenance,
        onnx=onnx,
        onnx_scores=onnx_scores,
        address=address,
        front_matter=front_matter(model, adapters.library if adapters else "transformers"),
        non_commercial=non_commercial(provenance),
        built_in=has_built_in_languages(provenance),
        two_texts=getattr(model.task, "texts", PAIR) == PAIR,
        corpus=corpus_of(provenance),
        maps=language_maps_of(model.network),
        maps_file=MAPS_FILE,
        modules=modules_of(model.network),
        modules_file=MODULES_FILE,
        copies=COPIES,
        task_adapter=task_adapter(model.network),
        task_file=TASK_FILE,
        encoder_class=family_of(model.network).encoder_class.rpartition(".")[2],
        mixup_files=(SETTINGS, WEIGHTS),
        score_columns=SCORE_COLUMNS,
        cell=_format_cell,
    )


def _format_cell(value: object) -> object:
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else value


def render_template(template: str, **values: object) -> str:
    """Return a card, given the name of its template and what stands in it."""
    from jinja2 import Environment, StrictUndefined

    engine = Environment(  # noqa: S701 (Markdown, not HTML)
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return engine.from_string(Path(__file__).with_name(template).read_text(encoding="utf-8")).render(
        version=VERSION,
        installed={name: _find_version(name) for name in ("isogloss", "torch", "transformers")},
        named=_name_languages,
        listed=lambda versions: ", ".join(
            f"{name} {version_number}" for name, version_number in versions.items()
        ),
        **values,
    )


def _name_languages(codes: Iterable[str]) -> str:
    names = ((language, language_name(language)) for language in codes)
    return ", ".join(f"{name} ({language})" if name != language else language for language, name in names)


def _find_version(name: str) -> str:
    try:
        return VERSION if name == "isogloss" else version(name)
    except PackageNotFoundError:
        return "(not installed as a package)"


def front_matter(model: FineTuned, library: str = "transformers") -> str:
    """Return the front matter of a model's card as YAML, which the hub's library has checked."""
    from huggingface_hub import ModelCardData

    provenance = model.provenance
    base = _ON_THE_HUB.match(provenance.encoder)
    licence, corpus = licence_of(provenance), corpus_of(provenance)
    metrics = dict.fromkeys(str(row["metric"]) for row in provenance.scores)
    card = ModelCardData(
        base_model=base[1] if base else None,
        datasets=datasets_of(provenance) or None,
        language=[bcp_47(language) for language in provenance.languages if not is_built_in(language)] or None,
        library_name=library,
        license=licence,
        license_name=f"that-of-{corpus.name}" if corpus and licence == OTHER else None,
        license_link=corpus.about.url or None if corpus and licence == OTHER else None,
        metrics=[METRICS.get(metric, metric) for metric in metrics] or None,
        pipeline_tag=model.kind.hub_tag or None,
        tags=["isogloss", "cross-lingual-transfer", provenance.task],
    )
    text: str = card.to_yaml()
    return text


def bcp_47(language: str) -> str:
    """Return a language's code as BCP 47 has it: zh-Hant."""
    return language.replace("_", "-")


def write_eval_results(model: FineTuned, folder: Path) -> None:
    """Write a model's scores on datasets of the hub as ``.eval_results`` (JSON, which is YAML)."""
    results_of_corpora: dict[str, list[dict[str, object]]] = {}
    for row in model.provenance.scores:
        corpus, _, form = str(row["corpus"]).partition(" ")  # Treebank, form of inputs, translator.
        language, split = str(row["language"]), str(row["split"])
        if (dataset := hub_split(corpus, language, split, form)) is not None:
            notes = f"{row['metric']}, {ON_HUB.get(split, split)}"
            notes += f", {row['examples']} examples" if row.get("examples") else ""
            results_of_corpora.setdefault(corpus, []).append(
                eval_result(dataset, float(str(row["score"])), notes)
            )
    for corpus, entries in results_of_corpora.items():
        path = folder / EVAL_RESULTS / f"{corpus}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(entries, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
