"""The verbs and options are a promise: they change only on purpose. Wrong ones are refused in one line."""

import os
import re
import signal
import sys
import time
from importlib.metadata import version

import pytest
import typer

from isogloss.cli.app import app
from isogloss.cli.display import emit, show_line
from isogloss.cli.lists import LISTS
from isogloss.core.processes import interruption_requested
from tiny import TINY

RECIPE = ("--out", "--data", "--scale", "--set")
EXECUTION = (
    *("--engine", "--jobs", "--devices", "--threads", "--address", "--gpu-share", "--slurm"),
    *("--retry-failed", "--track"),
)
VERBS = {
    "quickstart": ["--out", "--jobs", "--quiet -q", "--json", "--debug"],
    "run": [
        "recipes",
        *RECIPE,
        *EXECUTION,
        "--dry-run",
        "--speed",
        "--report",
        "--quiet -q",
        "--json",
        "--debug",
    ],
    "report": ["folder", "--open", "--style", "--quiet -q", "--json", "--debug"],
    "compare": [
        *("runs", "--against", "--predictions", "--by", "--gold"),
        *("--measure", "--split", "--points", "--margin", "--in", "--quiet -q", "--json", "--debug"),
    ],
    "advise": [
        *("runs", "--task", "--language", "--hours", "--minutes", "--encoder", "--corpus", "--data"),
        *("--evidence", "--against", "--quiet -q", "--json", "--debug"),
    ],
    "choose": [
        *("folder", "--language", "--source", "--corpus", "--data", "--encoder"),
        *("--quiet -q", "--json", "--debug"),
    ],
    "show": ["identity", "--in", "--quiet -q", "--json", "--debug"],
    "list": ["what", "--in", "--language", "--quiet -q", "--json", "--debug"],
    "predict": [
        *("runs", "file", "--language", "--format", "--column", "--text", "--out", "--scores"),
        *("--translations", "--translator", "--model", "--onnx", "--int8"),
        *("--quiet -q", "--json", "--debug"),
    ],
    "evaluate": [
        *("runs", "--corpus", "--language", "--split", "--treebank", "--data", "--inputs", "--predictions"),
        *("--ensemble", "--onnx", "--int8", "--quiet -q", "--json", "--debug"),
    ],
    "align": [
        *("bitext", "pairs", "--aligner", "--encoder", "--split", "--examples", "--out", "--data", "--set"),
        *("--quiet -q", "--json", "--debug"),
    ],
    "translate": [
        *("corpus", "--from", "--into", "--text", "--translator", "--model", "--split", "--examples"),
        *("--out", "--data", "--set", "--quiet -q", "--json", "--debug"),
    ],
    "results": ["folder", "--as", "--to", "--organization", "--quiet -q", "--debug"],
    "explore": ["runs", "--data", "--port", "--open", "--quiet -q", "--debug"],
    "export": [
        "run",
        "folder",
        "--onnx",
        "--int8",
        "--adapter",
        "--data",
        "--force",
        "--quiet -q",
        "--debug",
    ],
    "attach": [
        "encoder",
        "folder",
        "--language",
        "--task",
        "--leave-out",
        "--pickle",
        "--quiet -q",
        "--debug",
    ],
    "push": [
        "run",
        "name",
        "--private",
        "--revision",
        "--update",
        "--dry-run",
        "--to",
        "--quiet -q",
        "--debug",
    ],
    "fetch": ["corpora", "--to", "--language", "--dry-run", "--quiet -q", "--json", "--debug"],
    "corpus": [],
    "claims": ["--json", "--debug"],
    "claims diff": ["first", "second", "--quiet -q", "--json", "--debug"],
    "recipes": ["--json", "--debug"],
    "recipes copy": ["name", "--to", "--force", "--debug"],
    "schema": ["what", "--debug"],
    "init": [
        "file",
        "--corpus",
        "--task",
        "--source",
        "--target",
        "--from",
        "--text",
        "--label",
        "--language-column",
        "--split",
        "--seed",
        "--encoder",
        "--method",
        "--seeds",
        "--data",
        "--force",
        "--quiet -q",
        "--debug",
    ],
    "search": [
        *("recipe", "--over", "--trials", "--by", "--target-dev", "--seed", "--to"),
        *(*RECIPE, *EXECUTION, "--quiet -q", "--json", "--debug"),
    ],
    "corpus check": ["description", "--data", "--quiet -q", "--json", "--debug"],
    "doctor": ["--json", "--data", "--debug"],
    "languages": ["--json", "--debug"],
    "languages export": ["folder", "--quiet -q", "--debug"],
}


def test_verbs_and_options_are_those_promised():
    texts = {}

    def walk(group, text_before):
        for name, verb in group.commands.items():
            texts[f"{text_before}{name}"] = [" ".join(part.opts) for part in verb.params]
            walk(verb, f"{text_before}{name} ") if hasattr(verb, "commands") else None

    walk(typer.main.get_command(app), "")
    assert texts == VERBS


@pytest.mark.each_value
@pytest.mark.parametrize("verb", ["", *VERBS])
@pytest.mark.parametrize("ask", ["--help", "-h"])
def test_every_verb_explains_itself(command, verb, ask):
    result = command(*verb.split(), ask)
    assert (result.status, result.err) == (0, "")
    assert all(option.split()[0] in result.out for option in VERBS.get(verb, []) if option.startswith("--"))


def test_every_option_and_argument_has_its_help():
    def parts(group, text_before=""):
        for name, verb in getattr(group, "commands", {"": group}).items():
            yield from (
                parts(verb, f"{text_before}{name} ")
                if hasattr(verb, "commands")
                else ((name, part) for part in verb.params)
            )

    plain_names = [(name, part.name) for name, part in parts(typer.main.get_command(app)) if not part.help]
    assert plain_names == []
    assert len(list(parts(typer.main.get_command(app)))) > 100


def test_help_names_every_list(command):
    assert set(LISTS) <= set(re.findall(r"[a-z-]+", command("list", "--help").out))


def test_the_version_is_that_of_the_installed_package(command):
    result = command("--version")
    assert (result.status, result.out, result.err) == (0, f"isogloss {version('isogloss')}\n", "")


def test_no_verb_at_all_shows_the_help(command):
    result = command()
    assert result.status == 0
    assert all(verb in result.out for verb in VERBS if " " not in verb)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("rum tiny.toml", "no such command 'rum'. Did you mean 'run'? See: isogloss --help"),
        ("qickstart", "no such command 'qickstart'. Did you mean 'quickstart'?"),
        ("languages exprt x", "'exprt'. Did you mean 'export'? See: isogloss languages --help"),
        ("run tiny.toml --outt x", "--outt. Did you mean '--out'? See: isogloss run --help"),
        ("run tiny.toml --dryrun", "--dryrun. Did you mean '--dry-run'?"),
        ("run tiny.toml --out", "option '--out' requires an argument"),
        (
            "run tiny.toml --jobs many",
            "--jobs:",
        ),
        ("run tiny.toml --jobs -1", "--jobs:"),
        ("run tiny.toml --threads 0", "--threads:"),
        ("compare a --points 101", "--points:"),
        ("run tiny.toml --speed fast", "--speed:"),
        (
            "run quickstart --speed 3",
            "--dry-run",
        ),
        ("run quickstart --dry-run --speed inf", "--speed:"),
        ("run quickstart --engine serial --jobs 2", "--jobs 2:"),
        (
            "translate xnli --from en --into sw --out -",
            "--out - needs --text:",
        ),
        (
            "push x me/x --to here",
            "--to needs --dry-run",
        ),
        ("run quickstart --set a=1 --set a=2", "--set a:"),
        ("align bitext qaa-qab --set a=1 --set a=1", "--set a:"),
        ("run quickstart --engine slurm --slurm mem=1 --slurm mem=2", "--slurm mem:"),
        ("search quickstart --over a=1,2 --over a=3,4", "--over a:"),
        ("search quickstart --over seeds=1,2 --over grid.seeds=3,4", "--over grid.seeds:"),
        (
            "search quickstart --over seeds=1,2 --set grid.seeds=[3]",
            "--set grid.seeds:",
        ),
        (
            "align bitext qaa-qab --encoder {bert}",
            ": aligner 'fast-align' uses",
        ),
        ("run tiny.toml another.toml", "2 recipes"),
        ("init a.toml b.toml", "unexpected extra argument"),
        ("run", "'RECIPE'. See: isogloss run --help"),
        (f"run {'x' * 300}", "no recipe 'xxx"),
        (
            "run quickstrt",
            "no recipe 'quickstrt'. Did you mean 'quickstart'? Known: gemma_lottery, quickstart",
        ),
        (
            "run quickstart --engine sreial",
            "no engine 'sreial'. Did you mean 'serial'? Known: processes, ray, serial, slurm.",
        ),
        (
            "run quickstart --address auto",
            "--address is for --engine ray; found --engine processes. Change either.",
        ),
        (
            "run quickstart --gpu-share 0.5",
            "--gpu-share is for --engine ray; found --engine processes. Change either.",
        ),
        ("run quickstart --slurm partition", "--slurm partition:"),
        ("run quickstart --scale smal", "no scale 'smal'"),
        ("list", "'LIST'"),
        ("corpus", "missing command. See: isogloss corpus --help"),
        ("fetch xnli --language , --dry-run", "--language:"),
        ("compare --predictions a b --split dev", "--split, --points"),
        (
            "compare runs/lost --in gone --against x",
            "runs/lost:",
        ),
        ("compare runs --in gone --against x", "--in gone:"),
        ("list method", f"no list 'method'. Did you mean 'methods'? Known: {', '.join(sorted(LISTS))}."),
        ("list tasks --in runs", "--in "),
        ("list papers --in lost", "lost:"),
        ("show x --in lost", "lost:"),
        ("recipes --json copy quickstart", "--json "),
        ("languages --json export x", "--json "),
        ("doctor --jsn", "--jsn. Did you mean '--json'?"),
    ],
)
def test_wrong_use_is_one_line_with_the_nearest_match(
    command, arguments, message, bert_folder, tmp_path, monkeypatch
):
    (tmp_path / "runs").mkdir()  # As quickstart leaves one.
    monkeypatch.chdir(tmp_path)
    assert message in command(*arguments.format(bert=bert_folder).split()).message


def test_debug_shows_the_traceback_and_nothing_else_does(command):
    quiet = command("list", "method")
    loud = command("list", "method", "--debug")
    assert quiet.status == loud.status == 2
    assert "Traceback" not in quiet.err
    assert "Traceback" in loud.err
    assert loud.err.endswith(quiet.err)


def test_an_error_of_ours_is_one_line_that_asks_for_a_report(command, monkeypatch):
    def fail_in_two_lines(_):
        raise ValueError("two\nlines")

    monkeypatch.setitem(LISTS, "tasks", fail_in_two_lines)
    result = command("list", "tasks")
    assert result.status == 1
    assert result.err == (
        "isogloss: this is a bug in isogloss (ValueError: two lines). "
        "Run again with --debug and report what it prints.\n"
    )


def test_no_secret_is_printed_by_an_error_of_ours_nor_by_debug(command, monkeypatch):
    def fail_with_secrets(_):
        raise ValueError("Bearer s3cr3t at https://me:s3cr3t@host?token=s3cr3t, and open sesame")

    monkeypatch.setenv("HF_TOKEN", "open sesame")
    monkeypatch.setitem(LISTS, "tasks", fail_with_secrets)
    result = command("list", "tasks", "--debug")
    assert "Traceback" in result.err
    assert "ValueError: Bearer ***" in result.err
    assert "s3cr3t" not in result.err
    assert "sesame" not in result.err


ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.fixture
def interruptible_process():
    """Ctrl-C ends a program: a job in a shell's background begins with it ignored."""
    signal_before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal_before)


@pytest.mark.parametrize(("sign", "status"), ENDS)
@pytest.mark.skipif(sys.platform == "win32", reason="signals end a process there")
def test_an_interruption_says_what_the_same_command_does(
    command, tmp_path, monkeypatch, interruptible_process, sign, status
):
    def interrupt_soon(*_, **__):
        os.kill(os.getpid(), sign)
        time.sleep(10)  # The handler may run a little later.

    monkeypatch.setitem(LISTS, "tasks", interrupt_soon)
    monkeypatch.setattr("isogloss.engine.engine.make_planned", interrupt_soon)
    (tmp_path / "r.toml").write_text(TINY)
    for texts in (("list", "tasks"), ("run", tmp_path / "r.toml", "--out", tmp_path)):
        getsignal_before = signal.getsignal(sign)
        result = command(*texts)
        assert result.status == status
        assert result.err.strip().splitlines()[-1].startswith("isogloss: interrupted. ")
        assert signal.getsignal(sign) == getsignal_before
        assert not interruption_requested()  # Nothing heeded it, and nothing later in this process is to.


def test_nothing_printed_on_a_terminal_steers_it(capsys, monkeypatch):
    show_line("a\x1b[2J\u202eb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_line("a\x1b[2J\u202eb")
    assert capsys.readouterr().out == "a\x1b[2J\u202eb\na[2Jb\n"  # A file or program has it as it is.


def test_machines_get_json_which_has_no_nan(capsys):
    emit({"score": float("nan"), "high": float("inf"), "low": 0.5, "seeds": 3})
    assert capsys.readouterr().out == '{"score": null, "high": null, "low": 0.5, "seeds": 3}\n'


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGPIPE there")
def test_a_reader_who_has_enough_is_no_error():
    import subprocess

    writing = f"{sys.executable} -m isogloss languages --json | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    process = subprocess.run(["bash", "-c", writing], capture_output=True, text=True, check=True)
    assert (process.stdout.strip(), process.stderr) == ("0", "")
