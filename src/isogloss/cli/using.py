"""Predicting for a file and scoring models, as the command line prints it."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import OutputOptions
from isogloss.core.atomic_files import atomic_file, writing
from isogloss.core.errors import ConfigError, DataError, did_you_mean_file, missing_feature
from isogloss.core.languages import canonical_language
from isogloss.core.records import Row
from isogloss.data.files import SUFFIXES, File, byte_stream, disk_file
from isogloss.using.extensions import PREDICTORS
from isogloss.using.predicting import PredictOptions, Warn, check_translations, input_translator, predict_file
from isogloss.using.predictor import Predictor
from isogloss.using.provenance import is_on_hub

if TYPE_CHECKING:
    from isogloss.using.scoring import EvaluateOptions

STANDARD_INPUT = "-"

FACT_COLUMNS = ("run", "method", "language", "split", "examples")
"""First columns of the table of scores."""

OTHER_COLUMNS = {*FACT_COLUMNS, "task", "corpus", "metric", "score", "baseline"}
"""Columns of a row that are not further measures."""


@dataclass(frozen=True, kw_only=True)
class TranslationOptions:
    """The source of inputs' translations."""

    translations: str = ""
    translator: str = ""
    model: str = ""

    def __post_init__(self) -> None:
        if self.model and not self.translator:
            raise ConfigError("--model needs --translator. Add --translator, or remove --model.")


def print_predictions(
    runs: Sequence[Path],
    name: str,
    options: PredictOptions,
    *,
    translation: TranslationOptions,
    onnx: bool | None,
    int8: bool,
    target: Path | None,
    quiet: bool,
) -> None:
    """Write predictions for a file while it is read. Several models predict with their mean probabilities."""
    if name == translation.translations == STANDARD_INPUT:
        raise ConfigError("--translations -: standard input is already read as FILE. Give a file.")
    check_out(target, name, translation.translations)
    file = open_file(name)
    model = load_predictor(runs, onnx=onnx, int8=int8, say=Display(quiet=quiet).say)
    shows_progress = target is not None and not quiet and name != STANDARD_INPUT
    with Display(quiet=not shows_progress) as display, TemporaryDirectory() as folder:
        options = _with_translations(model, options, translation, Path(folder))
        options = replace(options, warn=_warner(display if shows_progress else Display(quiet=quiet)))
        if STANDARD_INPUT not in (name, translation.translations):
            check_translations(model, file, options)
        total = sum(1 for _ in file.read()) if shows_progress else 0
        lines = predict_file(model, file, options, on_progress=display.on_progress, lines=total)
        if target is None:
            for line in lines:
                show_line(line)
            return
        with atomic_file(target.parent, target.name) as stream:
            for line in lines:
                with writing(target):
                    stream.write(f"{line}\n")
    if options.as_json:
        emit({"file": str(target)})
    elif not quiet:
        show_line(target)


def print_scores(
    runs: Sequence[Path],
    options: "EvaluateOptions",
    *,
    onnx: bool | None,
    int8: bool,
    data: str,
    predictions: Path | None,
    ensemble: bool,
    output: OutputOptions,
) -> None:
    """Print a table of models' scores, or their mean's, with the main metric first, then other measures."""
    from isogloss.data.sources import Sources
    from isogloss.using.scoring import check_evaluation
    from isogloss.using.scoring import evaluate as evaluate_model

    _check_runs(runs, options.languages)
    sources = Sources(data)
    load = partial(load_predictor, onnx=onnx, int8=int8, say=Display(quiet=output.quiet).say)
    models = [load(runs)] if ensemble else [load([run]) for run in runs]
    for model in models:
        check_evaluation(model, options, sources, predictions)
    with output.progress as display:
        warn = _warner(Display(quiet=output.quiet))
        score = partial(evaluate_model, predictions=predictions, on_progress=display.on_progress, warn=warn)
        rows = [row for model in models for row in score(model, options, sources)]
    if output.as_json:
        for row in rows:
            emit(dict(row))
        return
    measures = [_measures(row) for row in rows]
    names = tuple(dict.fromkeys(name for row_measures in measures for name in row_measures))
    cells = [
        [*(row.get(name) for name in FACT_COLUMNS), *(row_measures.get(name, "") for name in names)]
        for row, row_measures in zip(rows, measures, strict=True)
    ]
    Display().table((*FACT_COLUMNS, *names), cells)


def load_predictor(
    folders: Sequence[Path], *, onnx: bool | None, int8: bool, say: Callable[[str], None]
) -> Predictor:
    """Load one model, or several as one, from their folders.

    A single exported model predicts with its ONNX file if it has one, and ``onnx`` is not False. ``say``
    receives which file is used, or why a file is not used.
    """
    if (onnx or int8) and "onnx" not in PREDICTORS:
        option = "--int8" if int8 else "--onnx"
        raise missing_feature(f"{option}: this", f"Remove {option}.")
    for find in PREDICTORS.values():
        predictor = find(folders, onnx=onnx, int8=int8, say=say)
        if predictor is not None:
            return predictor
    from isogloss.using.models import load_model

    return load_model(folders)


def _warner(display: Display) -> Warn:
    return lambda text: display.say(f"Warning: {text}")


def _with_translations(
    model: Predictor, options: PredictOptions, translation: TranslationOptions, folder: Path
) -> PredictOptions:
    if translation.translations:
        options = replace(options, translations=open_file(translation.translations))
    if translation.translator:
        translate = input_translator(
            model,
            translation.translator,
            language=options.language,
            translator_model=translation.model,
            folder=folder,
        )
        options = replace(options, translate=translate)
    return options


def open_file(name: str) -> File:
    """Return a file to read, or standard input. Raises DataError with the nearest name for a missing file."""
    if name == STANDARD_INPUT:
        return byte_stream("standard input", sys.stdin.buffer)
    path = Path(name)
    if not path.is_file():
        if path.is_dir():
            raise DataError(f"{path}: this is a folder. Give a file, or - for standard input.")
        names = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        suggestion = did_you_mean_file(path.name, names)
        raise DataError(f"{path}: no such file.{suggestion} Give a file, or - for standard input.")
    return disk_file(path)


def check_out(target: Path | None, *names: str) -> None:
    """Raise ConfigError for an output file with a compressed suffix, or that is one of the input files."""
    if target is not None and target.suffix in SUFFIXES[1:]:
        raise ConfigError(f"--out {target}: output is not compressed. Remove {target.suffix} from the name.")
    for path in [Path(name) for name in names]:
        if target is not None and target.is_file() and path.is_file() and target.samefile(path):
            raise ConfigError(f"--out {target}: this is the input file ({path}). Choose a different name.")


OWNERS = {
    "bert-base-multilingual-cased": "google-bert",
    "distilbert-base-multilingual-cased": "distilbert",
    "xlm-roberta-base": "FacebookAI",
    "xlm-roberta-large": "FacebookAI",
}
"""Multilingual encoders that the hub also has without their owner, by the names of that time."""


def _check_runs(runs: Sequence[Path], languages: Sequence[str]) -> None:
    for run in runs:
        if not run.exists() and not is_on_hub(run):
            hint = f" Separate languages by commas: --language {','.join((*languages, run.name))}."
            is_language = len(run.parts) == 1 and len(run.name) in (2, 3)
            if owner := OWNERS.get(str(run)):
                raise ConfigError(
                    f"{run}: no such folder. The hub's {owner}/{run} is an encoder without a head that "
                    f'predicts. A recipe with encoder = "{owner}/{run}" fine-tunes it (isogloss init); or '
                    f"give a fine-tuned model with its owner (owner/name)."
                )
            raise ConfigError(
                f"{run}: no such folder.{hint if is_language else ''} Give the folders of finished runs, or "
                f"models of the hub with their owner (owner/name)."
            )


def treebank_of(text: str) -> tuple[str, str]:
    """Parse one language=treebank of --treebank."""
    language, equals, treebank = (part.strip() for part in text.partition("="))
    if not (language and equals and treebank):
        raise ConfigError(f"--treebank: {text!r}; expected a language and its treebank, as in fr=Sequoia.")
    return canonical_language(language), treebank


def _measures(row: Row) -> dict[str, str]:
    further = {name: value for name, value in row.items() if name not in OTHER_COLUMNS}
    numbers = {str(row["metric"]): row["score"], **further, "baseline": row["baseline"]}
    return {name: f"{value:.4f}" if isinstance(value, float) else "" for name, value in numbers.items()}
