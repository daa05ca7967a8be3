"""CI loses no test: without a browser it fails, and tests are skipped for known reasons only."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".ci" / "browser"
BASH = shutil.which("bash")

if not SCRIPT.is_file():
    pytest.skip("this is no checkout", allow_module_level=True)

unix = pytest.mark.skipif(sys.platform == "win32", reason="CI runs by a shell of Unix")


@pytest.fixture
def machine(tmp_path):
    """Run the script where nothing but the named programs is there."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def put_script(name, body):
        (folder / name).write_text(f"#!{BASH}\n{body}\n")
        (folder / name).chmod(0o755)

    def run(*, user=0, ci="", **programs):
        put_script("id", f"echo {user}")
        put_script("timeout", 'shift; exec "$@"')
        for name, body in programs.items():
            put_script(name.replace("_", "-"), body)
        environment = {"PATH": str(folder), "CI": ci, "PLACE": str(folder)}
        return subprocess.run(
            [BASH, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
        )

    return run


INSTALLS = (
    'case "$*" in *install*) printf "#!%s\\nexit 0\\n" "$BASH" > "$PLACE/chromium"; '
    '/bin/chmod 755 "$PLACE/chromium";; esac'
)
REFUSES = 'echo "E: Could not open lock file" >&2; exit 100'
AS_ROOT = 'shift; FROM_SUDO=1 exec "$@"'
ROOT_ALONE = f'[ -n "${{FROM_SUDO:-}}" ] || {{ {REFUSES}; }}\n{INSTALLS}'


@unix
@pytest.mark.parametrize(
    "programs",
    [
        {"chromium": "exit 0"},
        {"google_chrome": "exit 0", "apt_get": REFUSES},
        {"chromium_browser": "echo 'install the snap'; exit 1", "google_chrome_stable": "exit 0"},
        {"apt_get": INSTALLS},
        {"apt_get": ROOT_ALONE, "sudo": AS_ROOT, "user": 1001},
        {"google_chrome": "exit 0", "user": 1001},
    ],
    ids=["there", "another", "a shim before another", "by root", "by sudo", "another without sudo"],
)
def test_a_browser_is_found_or_installed(machine, programs):
    process = machine(ci="true", **programs)
    assert (process.returncode, process.stderr) == (0, "")
    assert re.fullmatch(r"Pages are tested in (chromium|google-chrome(-stable)?)\.\n", process.stdout)


@unix
@pytest.mark.parametrize(
    ("programs", "message"),
    [
        ({}, "no apt-get here"),
        ({"apt_get": REFUSES}, "by apt-get: E: Could not open lock file"),
        ({"apt_get": INSTALLS, "user": 1001}, "no sudo here"),
        (
            {"apt_get": INSTALLS, "sudo": "echo 'a password is required' >&2; exit 1", "user": 1001},
            "by sudo -n apt-get: a password is required",
        ),
        ({"apt_get": "exit 0"}, ""),
        ({"chromium_browser": "exit 1"}, "no apt-get here"),
    ],
)
def test_without_a_browser_ci_fails_with_the_reason_and_others_are_warned(machine, programs, message):
    process = machine(ci="true", **programs)
    assert process.returncode == 1
    assert (
        message in process.stderr
        and "No browser" in process.stderr
        and "Install Chromium or Chrome" in process.stderr
    )
    process = machine(**programs)
    assert process.returncode == 0 and message in process.stderr and "apt install chromium" in process.stderr


SKIPPING = """
import pytest

def test_runs():
    pass

def test_known():
    pytest.importorskip("bitsandbytes_of_no_machine", reason="the published schema is not here")

def test_unknown():
    pytest.skip("{reason}")

@pytest.mark.xfail
def test_expected_to_fail():
    raise ValueError
"""


def run_tests(folder, reason, *options):
    (folder / "test_some.py").write_text(SKIPPING.format(reason=reason))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "known_skips",
        f"--rootdir={folder}",
        "-q",
        *options,
        folder,
    ]
    path = os.pathsep.join(
        [str(ROOT / "tests"), *(value for value in [os.environ.get("PYTHONPATH")] if value)]
    )
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "with workers"])
def test_a_skip_for_another_reason_fails_a_run_that_knows_its_reasons(tmp_path, workers):
    process = run_tests(tmp_path, "no browser", "--only-known-skips", *workers)
    assert process.returncode == 1
    assert "test_unknown: skipped (no browser)" in process.stdout and "tests/known_skips.py" in process.stdout
    assert "published schema" not in process.stdout
    assert run_tests(tmp_path, "no browser", *workers).returncode == 0
    assert (
        run_tests(tmp_path, "no machine can be made up here", "--only-known-skips", *workers).returncode == 0
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_a_module_that_is_skipped_for_another_reason_fails_it_too(tmp_path):
    (tmp_path / "test_module.py").write_text('import pytest\npytest.importorskip("of_no_machine")\n')
    process = run_tests(tmp_path, "the published schema is not here", "--only-known-skips", "-n", "2")
    assert process.returncode == 1 and "could not import 'of_no_machine'" in process.stdout


def test_ci_fails_without_a_browser_and_knows_its_skips():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert ".ci/browser\n" in script and "${CI:+--only-known-skips}" in script


def test_a_release_is_published_after_the_wheel_ran_and_was_uploaded():
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    (upload,) = [name for name, job in jobs.items() if "gh-action-pypi-publish" in str(job)]
    (publish,) = [name for name, job in jobs.items() if "gh release create" in str(job)]
    assert jobs[publish]["needs"] == upload and jobs[upload]["needs"] == "build"
    steps = [str(step.get("run", step.get("uses"))) for step in jobs["build"]["steps"]]
    places = [
        next(index for index, step in enumerate(steps) if word in step)
        for word in ("make release", "isogloss quickstart", "upload-artifact")
    ]
    assert places == sorted(places)


def test_the_night_runs_all_cases_and_more_examples_of_hypothesis():
    (recipe,) = re.findall(r"^nightly:.*\n\t(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    words = shlex.split(recipe)
    assert "--nightly" in words and words[words.index("-m") + 1] == "nightly or hypothesis"
    profile = settings.get_profile(words[words.index("--hypothesis-profile") + 1])
    assert profile.max_examples >= 10 * settings.get_profile("isogloss").max_examples


@pytest.mark.parametrize(("workflow", "job"), [("ci", "all"), ("nightly", "cases")])
def test_every_test_is_in_one_part(workflow, job):
    yaml = pytest.importorskip("yaml")
    text = (ROOT / ".github" / "workflows" / f"{workflow}.yml").read_text(encoding="utf-8")
    parts = yaml.safe_load(text)["jobs"][job]["strategy"]["matrix"]["part"]
    names = [name for part in parts for name in part.split()]
    files = [path for name in names for path in ROOT.glob(name)]
    covered_tests = [
        test for path in files for test in ([path] if path.is_file() else path.rglob("test_*.py"))
    ]
    assert sorted(covered_tests) == sorted((ROOT / "tests").rglob("test_*.py"))
