"""Output of the command line: progress and tables for people, or JSON lines for programs."""

import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import compress
from typing import TYPE_CHECKING

from isogloss.core.errors import plain
from isogloss.core.progress import Progress
from isogloss.core.records import Record, Row, or_none

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from isogloss.planning.plan import Begun

FIRST_LINE_SECONDS = 2.0
"""Seconds before the first progress line, if standard error is not a terminal."""

LINE_SECONDS = 5.0
"""Seconds between two progress lines, if standard error is not a terminal."""

EVENT_SECONDS = 1.0
"""Seconds between two progress events of --json. Events that begin, end or bring rows come immediately."""

MAX_ROWS_SHOWN = 12
"""Maximum number of rows of each kind of a record that are printed. --json prints all."""

NAME_WIDTH = 26
BAR_WIDTH = 12
COUNT_WIDTH = 9
"""Widths of the first columns of progress. They are fixed, so that nothing moves. Remarks take the rest."""


def terminals() -> list[int]:
    """Return which of standard output (1) and standard error (2) are terminals. A closed stream is not."""
    return [stream for stream in (1, 2) if os.isatty(stream)]


def print_nowhere(streams: Sequence[int]) -> None:
    """Discard what is printed to these streams, because writing to a closed terminal is an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream)
    os.close(nowhere)


@dataclass
class Display:
    """Prints progress and results to a terminal or file, as JSON lines, or not at all."""

    quiet: bool = False
    as_json: bool = False
    _bars: "Bars | None" = None
    _tasks: "dict[int, tuple[str, TaskID]]" = field(default_factory=dict)
    """The current task of each job, and its bar."""
    _total: "TaskID | None" = None
    """The bar of all runs, or of the work before the first run."""
    _latest: str = ""
    """The latest score, shown below the bars."""
    _has_runs: bool = False
    _last: float = 0.0
    _terminals: list[int] = field(default_factory=terminals)

    def __enter__(self) -> "Display":
        """Start progress bars on a terminal."""
        self._last = time.monotonic() + FIRST_LINE_SECONDS - LINE_SECONDS
        if self._draws():
            from rich.console import Console

            self._bars = _bars(Console(stderr=True), lambda: self._latest)
            self._total = self._bars.add_task("planning", total=None, remark="")
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop and remove progress bars."""
        if self._bars:
            with self._outliving_terminals():
                self._bars.stop()

    @contextmanager
    def _outliving_terminals(self) -> Iterator[None]:
        """Continue without printing if a terminal was closed without a signal (disown, trap '' HUP)."""
        try:
            yield
        except OSError as error:
            if error.errno != errno.EIO or not self._terminals:
                raise
            print_nowhere(self._terminals)

    def on_progress(self, progress: Progress) -> None:
        """Show progress as a bar, or as a line every few seconds and whenever there are results."""
        if self.as_json:
            ends = progress.done in (0, progress.total)
            if not self.quiet and (progress.rows or ends or self._is_due(EVENT_SECONDS)):
                emit({"event": "progress", **asdict(progress)})
        elif self._bars:
            with self._outliving_terminals():
                self._draw(self._bars, progress)
        elif not self.quiet and (_has_results(progress) or self._is_due(LINE_SECONDS)):
            line = f"  {progress.what}: {progress.done}/{progress.total} {progress.remark}"
            print(plain(line), file=sys.stderr)

    def _is_due(self, seconds: float) -> bool:
        """Return whether more than ``seconds`` have passed since the last time it was due."""
        now = time.monotonic()
        if now - self._last <= seconds:
            return False
        self._last = now
        return True

    def announce(self, event: "Begun") -> None:
        """Print that a run begins."""
        if self.as_json and not self.quiet:
            emit({"event": "run", **event._asdict()})
        self.say(f"[{event.number}/{event.total}] {event.title}")
        if self._bars and self._total is not None:
            self._has_runs = True
            count = event.number - 1
            self._bars.update(self._total, description="runs", completed=count, total=event.total)

    def say(self, text: str) -> None:
        """Print a line for people on standard error."""
        if self.quiet or self.as_json:
            return
        text = plain(text)
        with self._outliving_terminals():
            if self._bars:
                self._bars.console.print(text, markup=False, highlight=False)
            else:
                print(text, file=sys.stderr, flush=True)

    def table(
        self, heads: Sequence[str], rows: Sequence[Sequence[object]], *, uses_pager: bool = False
    ) -> None:
        """Print a table of results on standard output without empty columns, or all columns as JSON lines.

        A ``uses_pager`` table that is longer than the terminal is shown by the pager.
        """
        if self.as_json:
            for row in rows:
                emit(dict(zip(heads, row, strict=True)))
            return
        has_cells = [not rows or any(str(row[column]) for row in rows) for column in range(len(heads))]
        heads = list(compress(heads, has_cells))
        rows = [[cell for cell, is_shown in zip(row, has_cells, strict=True) if is_shown] for row in rows]
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console(width=_table_width())
        texts = [[plain(str(cell)) for cell in row] for row in rows]
        widths = _widths(heads, texts, console.width)
        if not widths:
            _print_cards(heads, rows)  # A table would cut words.
            return
        is_seen = sys.stdout.isatty()
        table = Table(box=box.SIMPLE_HEAD if is_seen else None, collapse_padding=True, pad_edge=False)
        for head, width in zip(heads, widths, strict=True):
            table.add_column(head, width=width)
        for row in texts:
            table.add_row(*(Text(cell) for cell in row))
        if (
            is_seen
            and uses_pager
            and sys.stdin.isatty()
            and len(console.render_lines(table)) > console.height
        ):
            with console.pager():
                console.print(table)
            return
        if is_seen:
            console.print(table)
            return
        with console.capture() as capture:
            console.print(table)
        print(*(line.rstrip() for line in capture.get().splitlines()), sep="\n")

    def _draws(self) -> bool:
        return not self.quiet and not self.as_json and sys.stderr.isatty()

    def _draw(self, bars: "Bars", progress: Progress) -> None:
        """Draw the bar of a job in place of its last task's bar, and the latest score at the overall bar."""
        if self._tasks.get(progress.job, ("",))[0] != progress.what:
            if task := self._tasks.pop(progress.job, None):
                bars.remove_task(task[1])
            name = f"  {progress.job}: {progress.what}" if progress.job else f"  {progress.what}"
            self._tasks[progress.job] = progress.what, bars.add_task(name, total=progress.total, remark="")
        bar = self._tasks[progress.job][1]
        remark = plain(progress.remark)
        bars.update(bar, completed=progress.done, total=progress.total, remark=remark)
        if self._total is not None:
            bars.update(self._total, visible=self._has_runs)
            if remark and any("score" in row for row in progress.rows):
                self._latest = f"latest: {progress.what}, {remark}"
        if progress.done >= progress.total:
            bars.remove_task(self._tasks.pop(progress.job)[1])


def _bars(console: "Console", latest: Callable[[], str]) -> "Bars":
    """Return progress bars whose columns have fixed widths, with the latest score on a separate line."""
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars
    from rich.table import Column, Table
    from rich.text import Text

    class WithLatest(Bars):
        """Bars, and the latest score below them."""

        def get_renderables(self) -> "Iterator[Table | Text]":
            yield self.make_tasks_table(self.tasks)
            if latest():
                yield Text(latest(), no_wrap=True, overflow="ellipsis")

    def fixed_column(width: int) -> Column:
        return Column(width=width, no_wrap=True, overflow="ellipsis")

    columns: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False, table_column=fixed_column(NAME_WIDTH)),
        BarColumn(bar_width=BAR_WIDTH, table_column=fixed_column(BAR_WIDTH)),
        MofNCompleteColumn(table_column=fixed_column(COUNT_WIDTH)),
        TimeRemainingColumn(table_column=fixed_column(len("-:--:--"))),
        TextColumn(
            "{task.fields[remark]}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
    ]
    return WithLatest(*columns, console=console, transient=True, expand=True)


def _has_results(progress: Progress) -> bool:
    return bool(progress.rows) and progress.done == progress.total


def emit(event: Mapping[str, object]) -> None:
    """Print a JSON line. Numbers that are not finite, which JSON lacks, become null."""
    values = {name: or_none(value) for name, value in event.items()}
    print(json.dumps(values, ensure_ascii=False), flush=True)


def show_line(text: object) -> None:
    """Print a line of results: unchanged to a file or program, without control characters on a terminal."""
    print(plain(str(text)) if sys.stdout.isatty() else text, flush=True)


def show_record(
    record: Record, *, scores: Sequence[Sequence[str]], next_steps: Sequence[str], as_json: bool
) -> None:
    """Print a record: its run, the runs it needed, its scores and rows, and the commands that use it."""
    if as_json:
        emit(record.body())
        return
    display = Display()
    facts = [("id", record.id), ("title", record.title), ("needs", " ".join(record.needs) or "nothing")]
    display.table(("what", "value"), [*facts, *(("warning", text) for text in record.warnings)])
    if scores:
        display.table(("language", "split", "metric", "score"), scores)
    kinds: dict[tuple[str, ...], list[Row]] = {}
    for row in record.rows:
        kinds.setdefault(tuple(name for name in row if row[name] is not None), []).append(row)
    for heads, rows in kinds.items():
        last_rows = rows[-MAX_ROWS_SHOWN:]  # For a training, the values at its end.
        if len(rows) > len(last_rows):
            show_line(f"… {len(rows) - len(last_rows)} earlier rows. --json prints all.")
        display.table(heads, [[_cell(row[name]) for name in heads] for row in last_rows])
    for step in next_steps:
        show_line(f"Next: {step}")


def _table_width() -> int | None:
    """Return the width of tables for a program: COLUMNS, else the terminal's width. None on a terminal."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return None
    return os.get_terminal_size(2).columns if os.isatty(2) else 120


def _widths(heads: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return widths that cut no word, and that keep short cells on one line first.

    The list is empty if the table needs more than ``room``.
    """
    from rich.cells import cell_len

    columns = [(head, *(row[index] for row in rows)) for index, head in enumerate(heads)]
    widths = [
        max((cell_len(word) for cell in cells for word in cell.split()), default=1) for cells in columns
    ]
    needs = [
        max(cell_len(cell) for cell in cells) - width for cells, width in zip(columns, widths, strict=True)
    ]
    space = room - sum(widths) - 2 * len(columns)  # Columns are separated by two spaces.
    for index in sorted(range(len(columns)), key=needs.__getitem__):
        growth = max(0, min(space, needs[index]))
        widths[index] += growth
        space -= growth
    return widths if space >= 0 else []


def _print_cards(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for title, *cells in rows:
        show_line(f"\n{title}")
        for head, cell in zip(heads[1:], cells, strict=True):
            show_line(f"  {head}: {cell}")


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun, such as 1 run or 2 runs."""
    return f"{count} {noun}{'s' * (count != 1)}"


def round_fraction(value: object) -> object:
    """Return a fraction as a text with three digits, and any other value as it is."""
    return f"{value:.3f}" if isinstance(value, float) else value
