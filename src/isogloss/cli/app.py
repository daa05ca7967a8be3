"""The verbs of the command line; each turns words into values and calls what does the work."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from isogloss.core.errors import unknown_name

app = typer.Typer(
    name="isogloss",
    help="Cross-lingual transfer: how well a model transfers, how reliably, and why.",
    pretty_exceptions_enable=False,
    suggest_commands=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
languages_app = typer.Typer(
    help="The built-in languages.", invoke_without_command=True, suggest_commands=False
)
app.add_typer(languages_app, name="languages")

Out = Annotated[Path | None, typer.Option("--out", help="Folder for runs and report; default runs/<recipe>.")]
Data = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder with the real corpora, or hub: Hugging Face datasets."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON lines, for machines.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Jobs = Annotated[int, typer.Option("--jobs", min=0, help="Runs made side by side; 0: one for each core.")]
Threads = Annotated[
    int,
    typer.Option("--threads", min=1, help="Threads of each run; records depend on it in the last digits."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")]
Scale = Annotated[str, typer.Option("--scale", help="A named size of the recipe.")]
Set = Annotated[list[str] | None, typer.Option("--set", help="Change a field: --set grid.seeds=[0,1].")]
Engine = Annotated[
    str, typer.Option("--engine", help="serial: one run after the other; processes: side by side.")
]
Model = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The folder of a finished fine-tuning run, or of an exported model."),
]
Folder = Annotated[Path, typer.Option("--in", help="The folder of runs.")]


@app.command()
def quickstart(
    out: Out = Path("runs/quickstart"),
    jobs: Jobs = 0,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 (main looks at it)
) -> None:
    """Show the main job on the built-in languages: transfer, its reliability, and why; about five minutes."""
    from isogloss.cli.runs import run_and_report

    run_and_report(
        "quickstart", out=out, jobs=jobs, quiet=quiet, as_json=as_json, command="isogloss quickstart"
    )


@app.command()
def run(
    recipe: Annotated[str, typer.Argument(help="A TOML file, or the name of a packaged recipe.")],
    out: Out = None,
    data: Data = None,
    scale: Scale = "",
    engine: Engine = "processes",
    jobs: Jobs = 0,
    threads: Threads = 1,
    dry_run: DryRun = False,
    change: Set = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Make the runs of a recipe that have no record yet, then write the report."""
    from isogloss.cli.runs import pretrain_in_all_processes, print_plan, run_and_report

    if engine not in ENGINES:
        raise unknown_name("--engine", "engine", engine, ENGINES)
    if dry_run:
        print_plan(recipe, out=out, data=data, scale=scale, changes=change or [], as_json=as_json)
        return
    from isogloss.training.processes import processes

    command = f"isogloss {' '.join(sys.argv[1:])}"
    if processes() > 1:
        pretrain_in_all_processes(
            recipe,
            out=out,
            data=data,
            scale=scale,
            changes=change or [],
            threads=threads,
            quiet=quiet,
            as_json=as_json,
            command=command,
        )
        return
    run_and_report(
        recipe,
        out=out,
        data=data,
        scale=scale,
        changes=change or [],
        jobs=1 if engine == "serial" else jobs,
        threads=threads,
        quiet=quiet,
        as_json=as_json,
        command=command,
    )


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")],
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write the report of a folder of runs again, from its records alone."""
    from isogloss.cli.display import show_report
    from isogloss.reports import write_report

    written = write_report(folder)
    show_report(written, as_json=as_json)
    if open_it:
        import webbrowser

        webbrowser.open(written.html.resolve().as_uri())


@app.command()
def compare(
    runs: Annotated[
        list[str], typer.Argument(help="A folder of runs (or several), or ids of runs in --in: only these.")
    ],
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="BASELINE",
            help="A method as the report names it (each encoder's own), an encoder (each method's own), "
            "'ENCODER / METHOD' for everything, or the id of a run.",
        ),
    ],
    measure: Annotated[str, typer.Option("--measure", help="What is compared; else the task's metric.")] = "",
    split: Annotated[str, typer.Option("--split", help="train, dev or test; else test if there.")] = "",
    points: Annotated[
        float, typer.Option("--points", min=0.01, max=100, help="How many seeds would see this difference?")
    ] = 1.0,
    folder: Folder = Path("runs/quickstart"),
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Test differences from a baseline, language by language, over all seeds: p, interval, effect, power.

    Paired t-test for means over examples (NLI, QA), permutation test for F1 and accuracy over words; Holm's
    correction over languages. Made from what score runs kept; nothing is run again.
    """
    from isogloss.cli.comparing import print_comparisons
    from isogloss.reports.compared_runs import Request

    request = Request(runs=runs, folder=folder, against=against, measure=measure, split=split)
    print_comparisons(request, points=points, as_json=as_json)


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(help="The id of a run, or how it begins.")],
    folder: Folder = Path("runs/quickstart"),
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Show what a finished run was, what it needed and the rows it made."""
    from isogloss.cli.display import show_record
    from isogloss.core.records import read_record
    from isogloss.experiments.store import Store

    show_record(read_record(Store(folder).find(run_id)), as_json=as_json)


@app.command(name="list")
def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="tasks, corpora, languages, encoders, methods, aligners, diagnostics, recipes or runs."
        ),
    ],
    folder: Folder = Path("runs/quickstart"),
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List what there is."""
    from isogloss.cli.display import Display
    from isogloss.cli.lists import LISTS

    if what not in LISTS:
        raise unknown_name("list", "list", what, LISTS)
    heads, rows = LISTS[what](folder)
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
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Predict labels for a file; it comes out as it went in, with the labels in it.

    CoNLL-U gets UPOS in column 4, entities in MISC (NER=B-PER). A line of words gets a tab and its labels; a
    word a line (tsv) its label; two texts a line (tsv) theirs. SQuAD's JSON gives ids and answers.
    """
    from isogloss.cli.using import print_predictions
    from isogloss.using.predicting import How

    how = How(format=format_, language=language, scores=scores, as_json=as_json)
    print_predictions(run, file, how, out=out, quiet=quiet)


@app.command()
def evaluate(
    runs: Annotated[
        list[Path], typer.Argument(help="Folders of finished fine-tuning runs or exported models.")
    ],
    corpus: Annotated[str, typer.Option("--corpus", help="A corpus with labels of the models' tasks.")],
    language: Annotated[
        list[str], typer.Option("--language", help="Languages: --language de,fr or one at a time.")
    ],
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "test",
    treebank: Annotated[
        list[str] | None,
        typer.Option("--treebank", help="Where a language has several: --treebank fr=Sequoia."),
    ] = None,
    data: Data = None,
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

    print_scores(
        runs,
        corpus=corpus,
        languages=language,
        split=split,
        treebanks=treebank or [],
        data=data,
        predictions=predictions,
        quiet=quiet,
        as_json=as_json,
    )


@app.command()
def align(
    bitext: Annotated[str, typer.Argument(help="A corpus of translations, as bitext:bible.")],
    pairs: Annotated[list[str], typer.Argument(help="Pairs of languages, as en-es.")],
    aligner: Annotated[str, typer.Option("--aligner", help="How; isogloss list aligners.")] = "fast-align",
    encoder: Annotated[
        str, typer.Option("--encoder", help="What an aligner looks at that needs an encoder.")
    ] = "shipped",
    split: Annotated[str, typer.Option("--split", help="train, dev or test.")] = "train",
    examples: Annotated[int, typer.Option("--examples", min=0, help="The first ones; 0 for all.")] = 0,
    out: Annotated[Path, typer.Option("--out", help="Folder for the alignments.")] = Path("runs/align"),
    data: Data = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="A field of the aligner: --set symmetrization=union.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Link the words of translations; print how many links (and AER, where gold is known) and the file."""
    from isogloss.cli.aligning import aligner_table, print_alignments
    from isogloss.experiments.aligning import AlignmentWanted

    wanted = AlignmentWanted(
        bitext=bitext,
        pairs=tuple(pairs),
        aligner=aligner_table(aligner, change or []),
        encoder=encoder,
        split=split,
        examples=examples,
    )
    print_alignments(wanted, out=out, data=data, quiet=quiet, as_json=as_json)


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

    export_to(run, folder, onnx=onnx, force=force, quiet=quiet)


@app.command()
def fetch(
    corpora: Annotated[
        list[str], typer.Argument(help="Corpora, or parts of them: xnli, xnli:test, bitext:tatoeba.")
    ],
    folder: Annotated[Path, typer.Option("--to", help="The data folder.")] = Path("data"),
    language: Annotated[
        list[str] | None, typer.Option("--language", help="Only what is in this language; again for more.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be fetched and stop.")] = False,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Download the official files of corpora, checked, to where their readers find them."""
    from isogloss.cli.fetching import fetch_corpora

    fetch_corpora(corpora, folder, language or [], dry_run=dry_run, quiet=quiet, as_json=as_json)


@app.command()
def doctor(as_json: Json = False, data: Data = None, debug: Debug = False) -> None:  # noqa: ARG001
    """Say what this machine has: devices, the precision worth using, threads, corpora."""
    from isogloss.cli.display import Display
    from isogloss.cli.lists import machine

    Display(as_json=as_json).table(("what", "found"), machine(data))


@languages_app.callback()
def languages(
    context: typer.Context,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List the built-in languages."""
    if context.invoked_subcommand is None:
        from isogloss.cli.display import Display
        from isogloss.cli.lists import LISTS

        Display(as_json=as_json).table(*LISTS["languages"](Path()))


@languages_app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="Where the files go.")],
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write the built-in languages as files, each corpus in its native format."""
    from isogloss.cli.display import Display
    from isogloss.data.built_in import BuiltInFolder

    with Display(quiet=quiet) as display:
        BuiltInFolder().export(folder, display.tell)
    print(folder)


ENGINES = ("serial", "processes")
