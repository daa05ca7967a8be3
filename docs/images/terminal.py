"""Draw what commands print, as they print it: `python docs/images/terminal.py RUNS` (the quickstart's runs).

Each picture is an SVG by rich, without its font from elsewhere.
"""

import os
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
WIDTH = 104
WITHOUT_FONTS = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
PICTURES = {
    "terminal-report": ("report", "{runs}"),
    "terminal-methods": ("list", "methods"),
}
"""The arguments of the commands, by the name of the picture."""


def draw(name: str, arguments: tuple[str, ...], runs: str) -> None:
    """Run a command and write its output, with the line that was typed."""
    command = [argument.format(runs=runs) for argument in arguments]
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(WIDTH)}
    process = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "isogloss", *command],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    command_line = " ".join(argument.format(runs="runs/quickstart") for argument in arguments)
    console = Console(record=True, width=WIDTH, file=StringIO())
    console.print(
        Text.from_ansi(f"$ isogloss {command_line}\n{process.stdout.replace(runs, 'runs/quickstart')}")
    )
    svg = console.export_svg(title="isogloss", code_format=WITHOUT_FONTS, unique_id=name)
    (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    for picture, parts in PICTURES.items():
        draw(picture, parts, sys.argv[1])
