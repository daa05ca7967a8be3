"""The commands that export models, attach adapters and push models to the hub."""

from pathlib import Path

import typer

from isogloss.cli.display import Display, show_line
from isogloss.cli.options import MODELS, verb, with_groups
from isogloss.core.errors import ConfigError
from isogloss.core.languages import canonical_language

verbs = typer.Typer()


@verb(verbs, MODELS, "isogloss export runs/quickstart/0f2a1b3847ac my-tagger", "export")
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
    from isogloss.features.publishing.exporting import check_free
    from isogloss.features.publishing.pushing import load_exportable
    from isogloss.store import local_model

    path = local_model(run)
    check_free(from_home(folder).resolve(), force=force)
    with Display(quiet=quiet) as display:
        display.say(f"Loading {path}")
        model = load_exportable(path)
        display.say("Writing" + (" and checking the ONNX file" if onnx else ""))
        result = model.write(folder, onnx=onnx, int8=int8, adapter=adapter, force=force, data=data or "")
    show_line(result)


@verb(verbs, MODELS, "isogloss attach xlm-roberta-base my-encoder --language sw=FOLDER")
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
    from isogloss.features.publishing.adapters import attach as attach_adapters
    from isogloss.features.publishing.exporting import check_free

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


@verb(verbs, MODELS, "isogloss push runs/quickstart/0f2a1b3847ac me/my-tagger --dry-run", "push")
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
    from isogloss.features.publishing.printing import push_to
    from isogloss.features.publishing.pushing import PushOptions
    from isogloss.store import local_model

    options = PushOptions(name=name, private=private, revision=revision, update=update)
    push_to(local_model(run), options, dry_run=dry_run, target=to, quiet=quiet)
