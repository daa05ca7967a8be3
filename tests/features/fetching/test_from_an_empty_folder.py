"""Suites are fetched from a local hub into an empty folder, run and reported, only by commands."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from forked import Forked
from isogloss.features.built_in_languages import examples
from isogloss.features.fetching.hub_address import address
from isogloss.features.fetching.releases import Release, select_releases
from local_hub import LocalHub, local_hub

RAW = "https://raw.githubusercontent.com"
START = f"""
import importlib, os
from huggingface_hub import constants
from isogloss.features.fetching import releases
from isogloss.features.fetching import official_files

importlib.reload(constants)  # It reads HF_ENDPOINT and the folders of its caches when it is imported.

releases._pinned_facts = dict  # The files are made up, and have other sizes than those that are published.
served = official_files.address
official_files.address = lambda url: served(url).replace("{RAW}", os.environ["HF_ENDPOINT"])
from isogloss.cli import main

main()
"""
"""The command line with a local hub, which also serves the files from GitHub."""

MADE_OF = {"en": "qaa", "yo": "qab", "ace": "qac", "hi": "qaa", "ta": "qad"}
TOPICS = {"entailment": "travel", "neutral": "sports", "contradiction": "health"}
FEELINGS = {"entailment": "positive", "neutral": "neutral", "contradiction": "negative"}
SUITES = {"sib200": ("en", "yo"), "nusax-senti": ("en", "ace"), "indicxnli": ("hi", "ta")}
COUNTS = {"train": 60, "dev": 20, "test": 20}


def table(rows: list[tuple[object, ...]], separator: str) -> bytes:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator).writerows(rows)
    return stream.getvalue().encode()


def body(release: Release) -> bytes:
    """Give a file in the official layout, of pairs of a built-in language."""
    (language,) = release.languages
    (split,) = release.splits
    pairs = list(islice(examples("xnli", MADE_OF[language], split), COUNTS[split]))
    if release.corpus == "sib200":
        rows = [(index, TOPICS[pair.label], pair.first) for index, pair in enumerate(pairs)]
        return table([("index_id", "category", "text"), *rows], "\t")
    if release.corpus == "nusax-senti":
        rows = [(index, pair.first, FEELINGS[pair.label]) for index, pair in enumerate(pairs)]
        return table([("id", "text", "label"), *rows], ",")
    rows = [{"premise": pair.first, "hypothesis": pair.second, "label": pair.label} for pair in pairs]
    return json.dumps(rows, indent=1).encode()


@pytest.fixture
def hub() -> Iterator[LocalHub]:
    with local_hub() as hub:
        for name, languages in SUITES.items():
            for release in select_releases([name], languages):
                path = address(release.url).replace(RAW, "").partition("huggingface.co")
                hub.plain[path[2] or path[0]] = body(release)
        yield hub


@pytest.fixture
def isogloss(hub: LocalHub, tmp_path: Path) -> Callable[..., str]:
    """Run a command in the folder in a separate process."""
    texts = {name: str(tmp_path / "home" / name) for name in ("XDG_CACHE_HOME", "HF_HOME")}
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": "0", **texts}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-c", START, *arguments]
        folder = tmp_path / "empty"
        folder.mkdir(exist_ok=True)
        streams = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        running = Forked(command, cwd=folder, env=environment, **streams)
        output, errors = running.communicate()
        assert running.returncode == 0, errors
        return output + errors

    return run


@pytest.mark.nightly
def test_three_suites_are_fetched_run_and_reported(isogloss, hub, tmp_path):
    for name, (source, target) in SUITES.items():
        output = isogloss("fetch", name, "--language", f"{source},{target}", "--to", "data")
        assert f"data: 6 files of {name}; " in output
        texts = ("--corpus", name, "--source", source, "--target", target, "--seeds", "1", "--data", "data")
        isogloss("init", f"{name}.toml", *texts)
        texts = ("--scale", "small", "--data", "data", "--out", f"runs/{name}", "--no-report")
        isogloss("run", f"{name}.toml", *texts)
        isogloss("report", f"runs/{name}")
        (records,) = [list((tmp_path / f"empty/runs/{name}").glob("*/record.json"))]
        assert len(records) >= 2
        assert (tmp_path / f"empty/runs/{name}/report.html").is_file()


@pytest.mark.nightly
@pytest.mark.slow
def test_data_hub_makes_the_runs_of_fetched_files(isogloss, hub, tmp_path):
    isogloss("fetch", "sib200", "--language", "en,yo", "--to", "data")
    texts = ("--corpus", "sib200", "--source", "en", "--target", "yo", "--seeds", "1", "--data", "hub")
    isogloss("init", "topics.toml", *texts)
    plans = [
        isogloss("run", "topics.toml", "--dry-run", "--json", "--data", data, "--out", f"runs/{data}")
        for data in ("data", "hub")
    ]
    ids = [
        sorted(line["run"] for line in (json.loads(value) for value in plan.splitlines()) if "run" in line)
        for plan in plans
    ]
    assert ids[0] == ids[1] != []
    assert (tmp_path / "home/XDG_CACHE_HOME/isogloss/hub/sib200/yor_Latn/train.tsv").is_file()
