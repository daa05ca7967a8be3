"""Forks of a process that has imported only the command line, so each command starts at once."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

SCRIPT = """
import json, os, sys, tempfile, traceback
import isogloss.cli.app
sys.argv[0] = "isogloss"
for code, words in json.loads(sys.argv.pop()):
    printed = [tempfile.TemporaryFile() for _ in range(2)]
    pid = os.fork()
    if not pid:
        for number, file in enumerate(printed, 1):
            os.dup2(file.fileno(), number)
        sys.argv[1:] = words
        status = 0
        try:
            exec(code, {"__name__": "__main__"})
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(printed[0].fileno(), ("\\0" + " ".join(sys.modules)).encode())
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    texts = []
    for file in printed:
        file.seek(0)
        texts.append(file.read().decode())
    print(json.dumps([status, *texts]), flush=True)
"""

MAIN = "from isogloss.cli import main; main()"


@dataclass(frozen=True)
class Ended:
    """Exit code, output and imports of code."""

    returncode: int
    stdout: str
    stderr: str
    modules: frozenset[str]


def run_forks(state_before: str, *arguments: tuple[str, Sequence[object]]) -> list[Ended]:
    """Run codes with words, each in a fork of a process that ran some code before anything was imported."""
    words = json.dumps([(language, [str(word) for word in words]) for language, words in arguments])
    lines = subprocess.check_output(
        [sys.executable, "-c", state_before + SCRIPT, words], text=True
    ).splitlines()
    result = []
    for status, output, errors in (json.loads(line) for line in lines):
        text, _, modules = output.rpartition("\0")
        result.append(Ended(status, text, errors, frozenset(modules.split())))
    assert len(result) == len(arguments)
    return result
