"""The command that explores models in the browser."""

import typer

from isogloss.cli.options import MODELS, verb, with_groups

verbs = typer.Typer()


@verb(verbs, MODELS, "isogloss explore runs/quickstart")
@with_groups
def explore(
    runs: str,
    data: str | None = None,
    port: int = 0,
    browser: bool = True,
    *,
    quiet: bool = False,
) -> None:
    """Explore paths and planes between models in the browser, with predictions for your own sentences.

    The page is only available on this machine, and its address contains a token. Ctrl-C ends it.
    """
    from isogloss.features.explorer.explorer import Explorer
    from isogloss.features.explorer.server import serve
    from isogloss.study import read

    explorer = Explorer(read(runs).measurements, runs, data or "")
    serve(explorer, port=port, browser=browser, quiet=quiet)
