"""Texts as files, lines as texts, and files read and written with answers."""

from collections.abc import Iterable

from isogloss.data.files import File, byte_stream
from isogloss.tasks import ALL_TASKS
from isogloss.using.formats import Prediction, format_of
from isogloss.using.kinds import kind_of

KINDS = {name: kind_of(task) for name, task in ALL_TASKS.items()}


def text_file(text: str | bytes, name: str = "input") -> File:
    """Give a text as a file."""
    body = text.encode() if isinstance(text, str) else text
    return byte_stream(name, body.splitlines(keepends=True))


def join_lines(lines: Iterable[str]) -> str:
    """Give lines as a text."""
    return "".join(f"{line}\n" for line in lines)


def read_and_write(task, text, answers, *, name="input", wanted="", scores=None, as_json=False):
    """Read a text and write it with answers."""
    kind = KINDS[task]
    choice, file = format_of(text_file(text, name), kind, task, wanted)
    inputs = iter(answers)
    sure_scores = iter(scores or [None] * len(answers))
    entries = (
        (entry, None if entry.example is None else Prediction(next(inputs), next(sure_scores)))
        for entry in choice.read(file, "")
    )
    write = kind.json_lines if as_json else choice.write or kind.json_lines
    return join_lines(write(entries))
