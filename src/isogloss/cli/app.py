"""The verbs of the command line: each converts its options and calls the function that does the work."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from isogloss.cli.data_verbs import corpus_app, data_app, languages_app
from isogloss.cli.options import (
    Address,
    Data,
    Debug,
    Devices,
    DryRun,
    Engine,
    Folder,
    Jobs,
    Json,
    Model,
    Out,
    Quiet,
    RetryFailed,
    Scale,
    Set,
    Slurm,
    Speed,
    Threads,
    Track,
)
from isogloss.cli.recipe_verbs import recipe_verbs, recipes_app
from isogloss.core.errors import ConfigError, unknown_name

app = typer.Typer(
    name="isogloss",
    help="Cross-lingual transfer: how well a model transfers, how reliably, and why.",
    pretty_exceptions_enable=False,
    suggest_commands=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(languages_app, name="languages")
app.add_typer(corpus_app, name="corpus")
app.add_typer(recipes_app, name="recipes")
app.add_typer(recipe_verbs)


@app.command()
def quickstart(
    out: Out = "runs/quickstart",
    jobs: Jobs = 0,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 (main looks at it)
) -> None:
    """Show the main job on the built-in languages: transfer, its reliability, and why; about five minutes."""
    from isogloss.cli.runs import RecipeRequest, run_and_report
    from isogloss.experiments.engines import EngineRequest

    request = RecipeRequest(recipes=("quickstart",), out=out)
    run_and_report(
        request, engine=EngineRequest(jobs=jobs), quiet=quiet, as_json=as_json, command="isogloss quickstart"
    )


@app.command()
def run(
    recipes: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE...",
            help="A TOML file, or the name of a packaged recipe; of several, all in one folder (--out).",
        ),
    ],
    out: Out = None,
    data: Data = None,
    scale: Scale = "",
    engine: Engine = "processes",
    jobs: Jobs = 0,
    devices: Devices = "",
    threads: Threads = 1,
    address: Address = "",
    slurm: Slurm = None,
    dry_run: DryRun = False,
    speed: Speed = 0,
    change: Set = None,
    write_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the report when all is done.")
    ] = True,
    retry_failed: RetryFailed = False,
    track: Track = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Make the runs of a recipe that have no record yet, then write the report.

    The same command in other shells, or on other machines that see the folder, shares the work. Exit codes:
    0 all is done, 1 some runs failed, 2 invalid input, 130 Ctrl-C, 143 asked to end (SIGTERM; 129 SIGHUP).
    """
    from isogloss.cli import runs

    asked = runs.engine_request(engine, jobs=jobs, devices=devices, address=address, slurm=slurm or ())
    request = runs.RecipeRequest(
        recipes=recipes, out=out, data=data, scale=scale, change=change or (), track=tuple(track or ())
    )
    command = f"isogloss {' '.join(sys.argv[1:])}"
    if dry_run:
        runs.print_plan(request, speed=speed, as_json=as_json)
    elif runs.were_started_together(engine):
        runs.run_together(
            request,
            devices=devices,
            threads=threads,
            report=write_report,
            retry_failed=retry_failed,
            quiet=quiet,
            as_json=as_json,
            command=command,
        )
    else:
        runs.run_and_report(
            request,
            engine=asked,
            threads=threads,
            report=write_report,
            retry_failed=retry_failed,
            quiet=quiet,
            as_json=as_json,
            command=command,
        )


@app.command()
def report(
    folder: Annotated[str, typer.Argument(help="A folder of runs, or their URL.")],
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write the report of a folder of runs again, from its records alone."""
    from isogloss import api
    from isogloss.cli.display import show_report

    written = api.report(folder)
    show_report(written, as_json=as_json)
    if open_it:
        import webbrowser

        webbrowser.open(written.html.resolve().as_uri())


@app.command()
def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Folders or URLs of runs, or ids of runs in --in; with --predictions, files."),
    ],
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="BASELINE",
            help="A method as the report names it (each encoder's own), an encoder (each method's own), "
            "'ENCODER / METHOD' for everything, or the id of a run; of files one, else the last.",
        ),
    ] = "",
    predictions: Annotated[
        bool,
        typer.Option(
            "--predictions",
            help="Compare files of outputs: JSON lines of predict, samples of lm-evaluation-harness.",
        ),
    ] = False,
    by: Annotated[str, typer.Option("--by", help="Pair outputs by id or by order; else by id, if any.")] = "",
    gold: Annotated[
        Path | None, typer.Option("--gold", help="JSON lines with what is right, where outputs lack it.")
    ] = None,
    measure: Annotated[str, typer.Option("--measure", help="What is compared; else the task's metric.")] = "",
    split: Annotated[
        str, typer.Option("--split", help="train, dev or test; else each task's test, or dev.")
    ] = "",
    points: Annotated[
        float, typer.Option("--points", min=0.01, max=100, help="How many seeds would see this difference?")
    ] = 1.0,
    folder: Folder = "runs/quickstart",
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Test differences from a baseline, language by language, over seeds and examples: p, interval, power.

    p over seeds alone (t-test), over examples alone (paired t-test for means, permutation test for F1) and
    over both (min F'); Holm's correction over a test set. Made from what score runs kept; nothing is run
    again. Files of outputs (--predictions) are one seed each, so they are tested over examples alone.
    """
    from isogloss.cli.comparing import ComparisonRequest, print_compared_outputs, print_comparisons
    from isogloss.experiments.store_places import local_folder

    if predictions:
        print_compared_outputs(runs, against=against, gold=gold, by=by, measure=measure, as_json=as_json)
        return
    if not against:
        raise ConfigError(
            "missing option '--against': what runs are compared with. See: isogloss compare --help"
        )
    if by or gold:
        raise ConfigError("--by and --gold are about files of outputs. Add --predictions, or leave them out.")
    places = [str(local_folder(one)) if "://" in one else one for one in runs]
    request = ComparisonRequest(
        runs=places, folder=local_folder(folder), against=against, measure=measure, split=split
    )
    print_comparisons(request, points=points, as_json=as_json)


@app.command()
def choose(
    folder: Annotated[str, typer.Argument(help="A folder (or URL) of runs with measurements by label-free.")],
    languages: Annotated[
        list[str] | None, typer.Option("--language", help="Show all candidates for this language.")
    ] = None,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Choose a model for each language without its labels, predict its score, or say "don't know".

    Labels of other languages, where there are some, say how well that works and how far predictions are off.
    """
    from isogloss.cli.choosing import print_choices
    from isogloss.experiments.store_places import local_folder

    print_choices(local_folder(folder), languages or (), as_json=as_json)


@app.command()
def show(
    identity: Annotated[str, typer.Argument(help="The id of a run, or how it begins.")],
    folder: Folder = "runs/quickstart",
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Show what a finished run was, what it needed and the rows it made."""
    from isogloss.cli.display import show_record
    from isogloss.core.records import read_record
    from isogloss.experiments.store import Store
    from isogloss.experiments.store_places import local_folder

    show_record(read_record(Store(local_folder(folder)).find(identity)), as_json=as_json)


@app.command(name="list")
def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="tasks, corpora, languages, encoders, methods, aligners, translators, diagnostics, "
            "recipes, papers or runs."
        ),
    ],
    folder: Folder = "runs/quickstart",
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List what there is."""
    from isogloss.cli.display import Display
    from isogloss.cli.lists import LISTS
    from isogloss.experiments.store_places import local_folder

    if what not in LISTS:
        raise unknown_name("list", "list", what, LISTS)
    heads, rows = LISTS[what](local_folder(folder) if what == "runs" else Path(folder))
    Display(as_json=as_json).table(heads, rows)


@app.command()
def predict(
    run: Model,
    file: Annotated[
        str, typer.Argument(help="What to predict for; - is standard input; .gz and .xz are read.")
    ],
    language: Annotated[str, typer.Option("--language", help="Language of the file, as in sw.")] = "",
    format_: Annotated[
        str,
        typer.Option(
            "--format", help="conllu, lines, tsv, squad or jsonl; else by the file's name or first line."
        ),
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write, whole or not at all; else standard output.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Add probabilities.")] = False,
    translations: Annotated[
        str,
        typer.Option(
            "--translations", metavar="FILE", help="For x-mixup: the inputs in its source language."
        ),
    ] = "",
    translator: Annotated[
        str,
        typer.Option("--translator", help="For x-mixup: translates them; built-in, seq2seq, ctranslate2."),
    ] = "",
    model: Annotated[
        str, typer.Option("--model", help="The translator's: a folder, or a name on the hub.")
    ] = "",
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Predict labels for a file; it comes out as it went in, with the labels in it.

    CoNLL-U gets UPOS in column 4, entities in MISC (NER=B-PER). A line of words gets a tab and its labels; a
    word a line (tsv) its label; two texts a line (tsv) theirs. SQuAD's JSON gives ids and answers.
    """
    from isogloss.cli.using import TranslationOptions, print_predictions
    from isogloss.experiments.store_places import local_model
    from isogloss.using.predicting import PredictOptions

    options = PredictOptions(format=format_, language=language, scores=scores, as_json=as_json)
    translation = TranslationOptions(translations=translations, translator=translator, model=model)
    print_predictions(local_model(run), file, options, translation=translation, out=out, quiet=quiet)


@app.command()
def evaluate(
    runs: Annotated[
        list[str], typer.Argument(help="Folders or URLs of finished fine-tuning runs or exported models.")
    ],
    corpus: Annotated[str, typer.Option("--corpus", help="A corpus, or a TOML file that describes one.")],
    language: Annotated[
        list[str], typer.Option("--language", help="Languages: --language de,fr or one at a time.")
    ],
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "test",
    treebank: Annotated[
        list[str] | None,
        typer.Option("--treebank", help="Where a language has several: --treebank fr=Sequoia."),
    ] = None,
    data: Data = None,
    inputs: Annotated[
        str, typer.Option("--inputs", help="How they come: translated, paired (x-mixup), mixed; docs/use.md.")
    ] = "",
    predictions: Annotated[
        Path | None,
        typer.Option("--predictions", help="Folder for what was predicted, in the corpus's own format."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Score saved models on any corpus, with the majority baseline where the corpus has a train split."""
    from isogloss.cli.using import print_scores
    from isogloss.experiments.store_places import local_model

    print_scores(
        list(map(local_model, runs)),
        corpus=corpus,
        languages=language,
        split=split,
        treebanks=treebank or [],
        inputs=inputs,
        data=data,
        predictions=predictions,
        quiet=quiet,
        as_json=as_json,
    )


@app.command(name="export")
def export_model(
    run: Model,
    folder: Annotated[
        Path, typer.Argument(help="Where the model goes: a new, an empty, or an earlier export.")
    ],
    onnx: Annotated[
        bool, typer.Option("--onnx", help="Write model.onnx too, checked; needs isogloss[onnx].")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace all that is in the folder.")] = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write a folder that transformers loads without isogloss, with a model card."""
    from isogloss.cli.using import export_to
    from isogloss.experiments.store_places import local_model

    export_to(local_model(run), folder, onnx=onnx, force=force, quiet=quiet)


@app.command(name="push")
def push_model(
    run: Model,
    name: Annotated[str, typer.Argument(help="Its name on the Hugging Face hub: owner/name.")],
    private: Annotated[bool, typer.Option("--private", help="Let nobody else see it.")] = False,
    revision: Annotated[str, typer.Option("--revision", help="A branch, made if missing; else main.")] = "",
    update: Annotated[
        bool, typer.Option("--update", help="Give a repository that is there already a new commit.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write the folder, print what would be uploaded, and stop.")
    ] = False,
    to: Annotated[Path | None, typer.Option("--to", help="That folder; else the name's last part.")] = None,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Upload what export writes to the Hugging Face hub, under the login of this machine (hf auth login)."""
    from isogloss.cli.using import push_to
    from isogloss.experiments.store_places import local_model
    from isogloss.using.pushing import PushOptions

    options = PushOptions(name=name, private=private, revision=revision, update=update)
    push_to(local_model(run), options, dry_run=dry_run, to=to, quiet=quiet)


app.add_typer(data_app)


@app.command()
def doctor(as_json: Json = False, data: Data = None, debug: Debug = False) -> None:  # noqa: ARG001
    """Say what this machine has: devices, the precision worth using, threads, corpora."""
    from isogloss.cli.display import Display
    from isogloss.cli.lists import machine

    Display(as_json=as_json).table(("what", "found"), machine(data))
