"""The commands that use finished models: predicting and scoring."""

from pathlib import Path

import typer

from isogloss.cli.options import (
    MODELS,
    STANDARD_OUTPUT,
    OutputOptions,
    verb,
    with_groups,
)
from isogloss.core.languages import languages_named

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
    from isogloss.data.corpora.own import register_corpus
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
