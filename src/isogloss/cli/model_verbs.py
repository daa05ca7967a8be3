"""The verbs about finished models: predicting, scoring, exporting and publishing."""

from pathlib import Path

import typer

from isogloss.cli.display import Display, show_line
from isogloss.cli.options import (
    MODELS,
    STANDARD_OUTPUT,
    OutputOptions,
    verb,
    with_groups,
)
from isogloss.core.errors import ConfigError
from isogloss.core.languages import canonical_language, languages_named

model_verbs = typer.Typer()


@verb(model_verbs, MODELS, "isogloss predict runs/quickstart/0f2a1b3847ac sentences.txt")
@with_groups
def predict(
    runs: list[str],
    file: str,
    language: str = "",
    format_: str = "",
    column: int | None = None,
    text: str = "",
    out: Path | None = None,
    scores: bool = False,
    translations: str = "",
    translator: str = "",
    model: str = "",
    onnx: bool | None = None,
    int8: bool = False,
    *,
    output: OutputOptions,
) -> None:
    """Label a file, keeping its format. Several models predict with the mean of their probabilities.

    CoNLL-U gets UPOS in column 4, entities in MISC (NER=B-PER). A line of words gets a tab and its labels. A
    line with one word, or with two texts, gets its label (tsv). SQuAD's JSON gives ids and answers.
    """
    from isogloss.cli.using import TranslationOptions, print_predictions
    from isogloss.store import local_model
    from isogloss.using.predicting import PredictOptions

    options = PredictOptions(
        format=format_, column=column, text=text, language=language, scores=scores, as_json=output.as_json
    )
    translation = TranslationOptions(translations=translations, translator=translator, model=model)
    out = None if out == STANDARD_OUTPUT else out
    folders = [local_model(run) for run in runs]
    print_predictions(
        folders,
        file,
        options,
        translation=translation,
        onnx=onnx,
        int8=int8,
        target=out,
        quiet=output.quiet,
    )


@verb(model_verbs, MODELS, "isogloss evaluate runs/quickstart/0f2a1b3847ac --corpus ud --language qad")
@with_groups
def evaluate(
    runs: list[str],
    corpus: str,
    language: list[str],
    split: str = "test",
    treebank: list[str] | None = None,
    data: str | None = None,
    inputs: str = "",
    predictions: Path | None = None,
    ensemble: bool = False,
    onnx: bool | None = None,
    int8: bool = False,
    *,
    output: OutputOptions,
) -> None:
    """Score saved models on any corpus, with the majority baseline if the corpus has a train split."""
    from isogloss.cli.using import print_scores, treebank_of
    from isogloss.recipes.descriptions import register_corpus
    from isogloss.store import local_model
    from isogloss.using import EvaluateOptions

    options = EvaluateOptions(
        corpus=register_corpus(corpus, data or ""),
        languages=languages_named(language),
        split=split,
        treebanks=tuple(treebank_of(text) for text in ",".join(treebank).split(",")) if treebank else (),
        inputs=inputs,
    )
    folders = [local_model(run) for run in runs]
    print_scores(
        folders,
        options,
        onnx=onnx,
        int8=int8,
        data=data or "",
        predictions=predictions,
        ensemble=ensemble,
        output=output,
    )


@verb(model_verbs, MODELS, "isogloss export runs/quickstart/0f2a1b3847ac my-tagger", "export")
@with_groups
def export_model(
    run: str,
    folder: Path,
    onnx: bool = False,
    int8: bool = False,
    adapter: bool = False,
    data: str | None = None,
    force: bool = False,
    quiet: bool = False,
) -> None:
    """Export a model or an encoder, with a model card, for transformers without isogloss."""
    from isogloss.core.untrusted import from_home
    from isogloss.store import local_model
    from isogloss.using import load_exportable
    from isogloss.using.exporting import check_free

    path = local_model(run)
    check_free(from_home(folder).resolve(), force=force)
    with Display(quiet=quiet) as display:
        display.say(f"Loading {path}")
        model = load_exportable(path)
        display.say("Writing" + (" and checking the ONNX file" if onnx else ""))
        result = model.write(folder, onnx=onnx, int8=int8, adapter=adapter, force=force, data=data or "")
    show_line(result)


@verb(model_verbs, MODELS, "isogloss attach xlm-roberta-base my-encoder --language sw=FOLDER")
@with_groups
def attach(
    encoder: str,
    folder: Path,
    language: list[str] | None = None,
    task: Path | None = None,
    leave_out: list[int] | None = None,
    pickle: bool = False,
    quiet: bool = False,
) -> None:
    """Put AdapterHub's adapters of languages and of a task on their encoder, as a model of isogloss."""
    from isogloss.core.untrusted import from_home
    from isogloss.using.adapters import attach as attach_adapters
    from isogloss.using.exporting import check_free

    adapters = {}
    for text in language or ():
        name, _, path = (part.strip() for part in text.partition("="))
        if not (name and path):
            raise ConfigError(f"--language: {text!r}; expected a language and a folder, as in sw=FOLDER.")
        adapters[canonical_language(name)] = from_home(path)
    folder = from_home(folder).resolve()
    check_free(folder, force=False)
    with Display(quiet=quiet) as display:
        display.say(f"Attaching to {encoder}")
        show_line(
            attach_adapters(encoder, folder, adapters, task=task, leave_out=leave_out or (), pickle=pickle)
        )


@verb(model_verbs, MODELS, "isogloss push runs/quickstart/0f2a1b3847ac me/my-tagger --dry-run", "push")
@with_groups
def push_model(
    run: str,
    name: str,
    private: bool = False,
    revision: str = "",
    update: bool = False,
    dry_run: bool = False,
    to: Path | None = None,
    quiet: bool = False,
) -> None:
    """Upload a model to the Hugging Face hub, with the login of this machine (hf auth login)."""
    from isogloss.cli.using import push_to
    from isogloss.store import local_model
    from isogloss.using.pushing import PushOptions

    options = PushOptions(name=name, private=private, revision=revision, update=update)
    push_to(local_model(run), options, dry_run=dry_run, target=to, quiet=quiet)
