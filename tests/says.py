"""Texts of errors: tests assert their facts, and messages.json records their wordings.

`pytest -n 0 --record-messages TESTS` records the wordings again, one line each. Review the diff.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WORDINGS = Path(__file__).with_name("messages.json")
RECORDED: dict[str, str] = json.loads(WORDINGS.read_text(encoding="utf-8"))
OF_THE_DAY = {
    r"/[^\s']*?/pytest-of-[^/]+/pytest-\d+/(?:popen-gw\d+/)?[^/\s:']+": "TMP",
    re.escape(str(Path(__file__).parents[1])): "ROOT",
    r"\b[0-9a-f]{40}\b": "COMMIT",
}
"""Parts of a message that vary between runs, with their replacements on record."""
is_recorded_anew = False
_read: Counter[str] = Counter()


@contextmanager
def says(kind: type[Exception] | tuple[type[Exception], ...], *facts: str) -> Iterator[pytest.ExceptionInfo]:
    """Expect an error whose message has these facts: place, what was found, what is allowed, what to do."""
    with pytest.raises(kind) as error:
        yield error
    check_wording(str(error.value), *facts)


def check_wording(message: str, *facts: str) -> None:
    """Hold a message to its facts, whatever its wording, and to the wording on record."""
    missing = [fact for fact in facts if fact not in message]
    assert not missing, f"{missing} is not said: {message}"
    plain_message = message
    key = _key()
    for pattern, name in OF_THE_DAY.items():
        plain_message = re.sub(pattern, name, plain_message)
    if is_recorded_anew:
        RECORDED[key] = plain_message
        text = json.dumps(dict(sorted(RECORDED.items())), indent=1, ensure_ascii=False)
        WORDINGS.write_text(text + "\n", encoding="utf-8")
    assert plain_message == RECORDED.get(key), (
        "another wording; where it is better: pytest -n 0 --record-messages"
    )


def _key() -> str:
    """Return the name of the running test, and the number of the message in it if it is not the first."""
    test = os.environ["PYTEST_CURRENT_TEST"].removeprefix("tests/").rpartition(" (")[0]
    _read[test] += 1
    return test if _read[test] == 1 else f"{test} {_read[test]}"


def without_test() -> set[str]:
    """Return the names of recorded tests that are gone."""
    parts = {key: re.split(r"::|\[| \d+$", key)[:2] for key in RECORDED}
    texts = {file: (WORDINGS.parent / file) for file, _ in parts.values()}
    program = {
        file: path.read_text(encoding="utf-8") if path.exists() else "" for file, path in texts.items()
    }
    return {key for key, (file, name) in parts.items() if f"def {name}(" not in program[file]}
