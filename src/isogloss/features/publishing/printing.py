"""Pushing a model as the command line prints it."""

from pathlib import Path

from isogloss.cli.display import Display, show_line
from isogloss.core.errors import ConfigError
from isogloss.core.sizes import format_size
from isogloss.core.untrusted import from_home
from isogloss.features.publishing.exporting import check_free
from isogloss.features.publishing.pushing import PushOptions, check_login, check_names, load_exportable, push


def push_to(run: Path, options: PushOptions, *, dry_run: bool, target: Path | None, quiet: bool) -> None:
    """Push a model, and print the commit.

    With ``dry_run``, write the model's folder, and print what would be uploaded.
    """
    check_names(options)
    if target and not dry_run:
        raise ConfigError(
            "--to needs --dry-run, since only a dry run writes a folder. Add it, or remove --to."
        )
    folder = from_home(target or options.name.rpartition("/")[2]).resolve()
    if dry_run:
        check_free(folder, force=False)
    else:
        check_login()
    with Display(quiet=quiet) as display:
        display.say(f"Loading {run}")
        model = load_exportable(run)
        if model.warning:
            display.say(f"Warning: {model.warning}")
        if not dry_run:
            show_line(push(model, options))
            return
        model.with_card(model.write(folder), options.name)
    visibility = f"{'private' if options.private else 'public'}, branch {options.revision or 'main'}"
    show_line(f"Would be uploaded to {options.name} ({visibility}) from {folder}:")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        show_line(f"  {path.relative_to(folder).as_posix()}: {format_size(path.stat().st_size)}")
