"""Values that a shell completes: names of lists, recipes and corpora, and ids of runs."""

from pathlib import Path

import typer


def lists(incomplete: str) -> list[str]:
    """Complete the names of lists."""
    from isogloss.cli.lists import LISTS

    return [name for name in LISTS if name.startswith(incomplete)]


def recipes(incomplete: str) -> list[str]:
    """Complete packaged recipes, and recipes and folders in the current folder."""
    from isogloss.recipes.recipe_text import packaged_recipes

    paths = (path for path in Path().glob(f"{incomplete}*") if path.suffix == ".toml" or path.is_dir())
    files = [f"{path}/" if path.is_dir() else str(path) for path in paths]
    return [*(name for name in packaged_recipes() if name.startswith(incomplete)), *sorted(files)]


def corpora(incomplete: str) -> list[str]:
    """Complete corpora, those with a description in the package too, and descriptions here."""
    from isogloss.data.corpora.catalogue import CORPORA
    from isogloss.data.corpora.own import list_shipped

    names = sorted({*CORPORA, *list_shipped()})
    files = sorted(str(path) for path in Path().glob(f"{incomplete}*.toml"))
    return [*(name for name in names if name.startswith(incomplete)), *files]


def folders(incomplete: str) -> list[str]:
    """Complete folders."""
    return sorted(f"{path}/" for path in Path().glob(f"{incomplete}*") if path.is_dir())


def methods(incomplete: str) -> list[str]:
    """Complete methods."""
    from isogloss.cli.lists import METHOD_TABLES

    return [name for table in METHOD_TABLES.values() for name in table if name.startswith(incomplete)]


def aligners(incomplete: str) -> list[str]:
    """Complete aligners."""
    from isogloss.aligners import ALIGNERS

    return [name for name in ALIGNERS if name.startswith(incomplete)]


def translators(incomplete: str) -> list[str]:
    """Complete translators."""
    from isogloss.translators import TRANSLATORS

    return [name for name in TRANSLATORS if name.startswith(incomplete)]


def runs(context: typer.Context, incomplete: str) -> list[str]:
    """Complete the ids of the runs in the folder of --in."""
    from isogloss.core.records import RECORD

    folder = Path(context.params.get("folder") or "")
    return sorted(path.parent.name for path in folder.glob(f"{incomplete}*/{RECORD}"))
