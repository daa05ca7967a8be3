"""Closed standard streams discard output, and a full stream is reported in one line."""

import subprocess
import sys

import pytest


def run_shell(redirected_text: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = f'"{sys.executable}" -m isogloss {" ".join(words)} {redirected_text}'
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="closes streams by a shell of Unix")
@pytest.mark.parametrize("redirected_name", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_closed_streams_lead_nowhere(redirected_name):
    assert run_shell(redirected_name, "list", "languages").returncode == 0
    assert run_shell(redirected_name, "list", "nothing").returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_an_output_that_is_full_is_one_line():
    full_process = run_shell("> /dev/full", "list", "languages")
    assert (full_process.returncode, full_process.stderr.count("\n")) == (2, 1)
    assert "standard output: cannot write (No space left on device)" in full_process.stderr
    assert run_shell("2> /dev/full", "list", "nothing").returncode == 2
