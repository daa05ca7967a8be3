"""Values that a shell completes: names of lists, recipes and corpora, and ids of runs."""

from pathlib import Path

import typer


def lists(incomplete: str) -> list[str]:
    """Complete what can be listed."""
    from isogloss.cli.lists import LISTS

    return [name for name in LISTS if name.startswith(incomplete)]


def recipes(incomplete: str) -> list[str]:
    """Complete packaged recipes, and recipes and folders here."""
    from isogloss.recipes.recipe_text import packaged_recipes

    here = (path for path in Path().glob(f"{incomplete}*") if path.suffix == ".toml" or path.is_dir())
    files = [f"{path}/" if path.is_dir() else str(path) for path in here]
    return [*(name for name in packaged_recipes() if name.startswith(incomplete)), *sorted(files)]


def corpora(incomplete: str) -> list[str]:
    """Complete corpora."""
    from isogloss.data import CORPORA

    return [name for name in sorted(CORPORA) if name.startswith(incomplete)]


def written(what: str, incomplete: str) -> list[str]:
    """Complete the names of a list that is written down."""
    from isogloss.cli.lists import packaged

    return [row[0] for row in packaged(what)[1] if row[0].startswith(incomplete)]


def methods(incomplete: str) -> list[str]:
    """Complete methods."""
    return written("methods", incomplete)


def aligners(incomplete: str) -> list[str]:
    """Complete aligners."""
    return written("aligners", incomplete)


def translators(incomplete: str) -> list[str]:
    """Complete translators."""
    return written("translators", incomplete)


def runs(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the ids of the runs in the folder of --in."""
    from isogloss.core.records import RECORD

    folder = Path(context.params.get("folder") or "")
    return sorted(path.parent.name for path in folder.glob(f"{incomplete}*/{RECORD}"))
