"""The verbs about finished models: predicting, scoring, exporting and publishing with them."""

from pathlib import Path
from typing import Annotated

import typer

from isogloss.cli import completion
from isogloss.cli.options import MODELS, STANDARD_OUTPUT, Data, Model, Output, Quiet, verb, with_groups
from isogloss.core.languages import languages_named

model_verbs = typer.Typer()


@verb(model_verbs, MODELS, "isogloss predict runs/quickstart/0f2a1b3847ac sentences.txt")
@with_groups
def predict(
    run: Model,
    file: Annotated[
        str, typer.Argument(help="The file to label; - for standard input; .gz and .xz are unpacked.")
    ],
    language: Annotated[str, typer.Option("--language", help="Language of the file, as in sw.")] = "",
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="conllu, lines, tsv, csv, columns, squad or jsonl; else by the file's name or lines.",
        ),
    ] = "",
    column: Annotated[
        int | None,
        typer.Option(
            "--column", help="With one word per line: the column of the words, from 0 (-1: the last)."
        ),
    ] = None,
    text: Annotated[
        str,
        typer.Option(
            "--text", metavar="COLUMN", help="In a table: the column of the texts; for pairs two, as in a,b."
        ),
    ] = "",
    out: Annotated[
        Path | None,
        typer.Option("--out", help="File to write; default (or -): standard output."),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Add probabilities.")] = False,
    translations: Annotated[
        str,
        typer.Option(
            "--translations",
            metavar="FILE",
            help="For X-Mixup: translations of the inputs into its source language.",
        ),
    ] = "",
    translator: Annotated[
        str,
        typer.Option(
            "--translator",
            help="For X-Mixup: the translator of the inputs; built-in, seq2seq or ctranslate2.",
        ),
    ] = "",
    model: Annotated[
        str, typer.Option("--model", help="The translator's model: a folder, or a name on the hub.")
    ] = "",
    *,
    output: Output,
) -> None:
    """Label a file, keeping its format.

    CoNLL-U gets UPOS in column 4, entities in MISC (NER=B-PER). A line of words gets a tab and its labels; a
    word a line (tsv) its label; two texts a line (tsv) theirs. SQuAD's JSON gives ids and answers.
    """
    from isogloss.cli.using import TranslationOptions, print_predictions
    from isogloss.store import local_model
    from isogloss.using.predicting import PredictOptions

    options = PredictOptions(
        format=format_, column=column, text=text, language=language, scores=scores, as_json=output.as_json
    )
    translation = TranslationOptions(translations=translations, translator=translator, model=model)
    out = None if out == STANDARD_OUTPUT else out
    print_predictions(local_model(run), file, options, translation=translation, out=out, quiet=output.quiet)


@verb(model_verbs, MODELS, "isogloss evaluate runs/quickstart/0f2a1b3847ac --corpus ud --language qad")
@with_groups
def evaluate(
    runs: Annotated[
        list[str], typer.Argument(help="Folders or URLs of finished fine-tuning runs or exported models.")
    ],
    corpus: Annotated[
        str,
        typer.Option(
            "--corpus", help="A corpus, or a TOML file that describes one.", autocompletion=completion.corpora
        ),
    ],
    language: Annotated[
        list[str], typer.Option("--language", help="Languages: --language de,fr or one at a time.")
    ],
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "test",
    treebank: Annotated[
        list[str] | None,
        typer.Option("--treebank", help="Where a language has several: --treebank fr=Sequoia,et=EWT."),
    ] = None,
    data: Data = None,
    inputs: Annotated[
        str,
        typer.Option(
            "--inputs", help="How inputs are presented: translated, paired (x-mixup) or mixed; docs/use.md."
        ),
    ] = "",
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions",
            help="Folder for the predictions, in the format of the corpus (of a described one: JSON lines).",
        ),
    ] = None,
    *,
    output: Output,
) -> None:
    """Score saved models on any corpus, with the majority baseline where the corpus has a train split."""
    from isogloss.cli.using import print_scores, treebank_of
    from isogloss.recipes.descriptions import register_corpus
    from isogloss.store import local_model
    from isogloss.using import EvaluateOptions

    options = EvaluateOptions(
        corpus=register_corpus(corpus, data or ""),
        languages=languages_named(language),
        split=split,
        treebanks=tuple(map(treebank_of, ",".join(treebank or ()).split(","))) if treebank else (),
        inputs=inputs,
    )
    folders = list(map(local_model, runs))
    print_scores(folders, options, data=data or "", predictions=predictions, output=output)


@verb(model_verbs, MODELS, "isogloss export runs/quickstart/0f2a1b3847ac my-tagger", "export")
@with_groups
def export_model(
    run: Model,
    folder: Annotated[Path, typer.Argument(help="Folder for the model: new, empty, or an earlier export.")],
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Also write model.onnx and check it; needs isogloss[onnx].")
    ] = False,
    adapter: Annotated[
        bool, typer.Option("--adapter", help="Export the adapters only, for peft or the library adapters.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace everything in the folder.")] = False,
    quiet: Quiet = False,
) -> None:
    """Export a model or an encoder, with a model card, for transformers without isogloss."""
    from isogloss.cli.using import export_to
    from isogloss.store import local_model

    export_to(local_model(run), folder, onnx=onnx, adapter=adapter, force=force, quiet=quiet)


@verb(model_verbs, MODELS, "isogloss attach xlm-roberta-base my-encoder --language sw=FOLDER")
@with_groups
def attach(
    encoder: Annotated[str, typer.Argument(help="The encoder of the adapters: a folder, or a hub name.")],
    folder: Annotated[Path, typer.Argument(help="Folder for the model: new or empty.")],
    language: Annotated[
        list[str] | None,
        typer.Option(
            "--language", metavar="CODE=FOLDER", help="The adapters of a language; may be repeated."
        ),
    ] = None,
    task: Annotated[Path | None, typer.Option("--task", help="A task's adapters, with their head.")] = None,
    leave_out: Annotated[
        list[int] | None,
        typer.Option(
            "--leave-out", help="A layer to leave without language adapters; -1: the last (MAD-X 2.0)."
        ),
    ] = None,
    pickle: Annotated[
        bool, typer.Option("--pickle", help="Also read weights in .bin files; no code in them is run.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Put AdapterHub's adapters of languages and of a task on their encoder, as a model of isogloss."""
    from isogloss.cli.using import attach_to

    attach_to(
        encoder, folder, language or [], task=task, leave_out=leave_out or [], pickle=pickle, quiet=quiet
    )


@verb(model_verbs, MODELS, "isogloss push runs/quickstart/0f2a1b3847ac me/my-tagger --dry-run", "push")
@with_groups
def push_model(
    run: Model,
    name: Annotated[str, typer.Argument(help="Name of the model on the Hugging Face hub: owner/name.")],
    private: Annotated[bool, typer.Option("--private", help="Create a private repository.")] = False,
    revision: Annotated[
        str, typer.Option("--revision", help="Branch to push to, created if missing; default: main.")
    ] = "",
    update: Annotated[bool, typer.Option("--update", help="Add a commit to an existing repository.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write the folder, print what would be uploaded, and stop.")
    ] = False,
    to: Annotated[Path | None, typer.Option("--to", help="That folder; else the name's last part.")] = None,
    quiet: Quiet = False,
) -> None:
    """Upload a model to the Hugging Face hub, with the login of this machine (hf auth login)."""
    from isogloss.cli.using import push_to
    from isogloss.store import local_model
    from isogloss.using.pushing import PushOptions

    options = PushOptions(name=name, private=private, revision=revision, update=update)
    push_to(local_model(run), options, dry_run=dry_run, to=to, quiet=quiet)


@verb(model_verbs, MODELS, "isogloss explore runs/quickstart")
@with_groups
def explore(
    runs: Annotated[str, typer.Argument(metavar="RUNS", help="A folder of runs, or their URL.")],
    data: Data = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0: a free one.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")] = True,
    *,
    quiet: Quiet = False,
) -> None:
    """Move along paths and planes in the browser, and see what the models there predict for your sentences.

    The page is for this machine alone: its address has a token. Ctrl-C ends it.
    """
    from isogloss.study import read
    from isogloss.using.explorer import Explorer
    from isogloss.using.explorer.server import serve

    explorer = Explorer(read(runs).measurements, runs, data or "")
    serve(explorer, port=port, browser=browser, quiet=quiet)
