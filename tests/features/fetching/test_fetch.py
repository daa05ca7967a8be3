"""fetch: what is printed before, during and after, and how it ends. Without a network."""

import json
from dataclasses import replace
from functools import partial
from hashlib import sha256

import pytest

from isogloss.features.fetching import printing as verb
from isogloss.features.fetching.downloading import RetryPolicy
from isogloss.features.fetching.official_files import Fetched, FetchedRelease


@pytest.fixture
def pretended_fetches(monkeypatch):
    """Every fetch succeeds without one."""
    arguments = []

    def fetch(request, folder, *, languages, on_progress):
        arguments.append((request, folder, languages))
        for release in request:
            fields = {"size": release.size or 7, "sha256": release.sha256 or sha256(b"").hexdigest()}
            fetched_value = Fetched(
                url=release.url, published=bool(release.sha256), files={release.target: "0"}, **fields
            )
            yield FetchedRelease(
                release=release, fetched=fetched_value, was_there=release.target.endswith("zip")
            )

    monkeypatch.setattr(verb, "fetch", fetch)
    return arguments


def test_a_dry_run_prints_what_would_come_and_touches_nothing(command, tmp_path):
    result = command("fetch", "squad:squad", "--dry-run", "--to", tmp_path / "d")
    assert result.status == 0
    assert "https://rajpurkar.github.io/SQuAD-explorer/dataset/train-v1.1.json" in result.out
    assert "30.3 MB" in result.out
    assert "squad/train-v1.1.json" in result.out
    assert "squad: 2 files, 35.1 MB. Licence: CC BY-SA 4.0. https://rajpurkar" in result.err
    assert not (tmp_path / "d").exists()
    quiet = command("fetch", "squad:squad", "--dry-run", "--to", tmp_path / "d", "--quiet")
    assert (quiet.out, quiet.err) == (result.out, "")


def test_a_dry_run_for_machines_is_json_lines(command, tmp_path):
    lines = command("fetch", "ud", "--language", "hi", "--dry-run", "--json", "--to", tmp_path).lines
    assert [line["checksum"] for line in lines] == ["none published"] * 3
    assert {line["size"] for line in lines} == {"size unknown"}
    assert {line["there"] for line in lines} == {"no"}


def test_languages_are_named_as_everywhere(command):
    addresses = [
        [line["address"] for line in command("fetch", "ud", "--dry-run", "--json", *words).lines]
        for words in (("--language", "hi", "--language", "fr"), ("--language", "hin_Deva,fr"))
    ]
    assert addresses[0] == addresses[1] != []


def test_the_licence_is_said_before_anything_comes(command, pretended_fetches, tmp_path):
    result = command("fetch", "xnli:test", "ud", "--to", tmp_path, "--language", "hi")
    lines = result.err.splitlines()
    assert lines[0] == (
        "xnli: 1 file, 17.9 MB. Licence: CC BY-NC 4.0. https://github.com/facebookresearch/XNLI"
    )
    assert lines[1].startswith("ud: 3 files, size unknown. Licence: CC BY-NC-SA 4.0.")
    assert lines[2] == "downloads/XNLI-1.0.zip: already there, checksum as published, 1 file"
    assert "(e3b0c44298fc…)" in lines[3]
    assert f"{tmp_path}: 4 files of xnli, ud; 0.0 kB fetched.\n" in result.out
    assert f"--data {tmp_path}" in result.out
    assert pretended_fetches[0][2] == ("hi",)


def test_a_language_alone_is_everything_that_has_it(command, pretended_fetches, tmp_path):
    result = command("fetch", "--language", "yor_Latn", "--to", tmp_path)
    assert result.status == 0
    ((pretended_fetch, _, languages),) = pretended_fetches
    assert languages == ("yo",)
    corpora = [file.corpus for file in pretended_fetch]
    assert {"sib200", "belebele", "masakhanews", "masakhapos", "wikiann"} <= set(corpora)
    assert corpora.count("sib200") == 3
    assert "xcopa" not in corpora
    assert "sib200: 3 files, 0.2 MB. Licence: Apache-2.0; the" in result.err


def test_what_a_language_has_is_listed(command):
    rows = {row["corpus"]: row for row in command("list", "corpora", "--language", "yo", "--json").lines}
    facts = {name: (row["train"], row["parallel"], row["get it"]) for name, row in rows.items()}
    assert facts["sib200"] == ("yes", "yes", "isogloss fetch, --data hub")
    assert facts["afrixnli"] == ("no", "yes", "isogloss fetch, --data hub")
    assert facts["masakhanews"] == ("yes", "no", "isogloss fetch, --data hub")
    assert facts["udpos"] == ("no", "no", "--data hub")
    assert facts["masakhapos"] == ("yes", "no", "isogloss fetch")
    assert not {"xcopa", "xnli", "bible"} & rows.keys()
    assert "--language zzz" in command("list", "corpora", "--language", "zzz").message
    assert "--language " in command("list", "tasks", "--language", "yo").message


def test_quiet_says_only_the_result(command, pretended_fetches, tmp_path):
    result = command("fetch", "xnli:test", "--to", tmp_path, "--quiet")
    assert result.err == ""
    assert len(result.out.splitlines()) == 2


def test_json_gives_a_line_for_each_file(command, pretended_fetches, tmp_path):
    result = command("fetch", "xnli", "--to", tmp_path, "--json")
    assert result.err == ""
    assert [line["event"] for line in result.lines] == ["fetched"] * 2
    assert result.lines[0]["published"] is True
    assert json.dumps(result.lines)


def test_the_data_folder_is_data_unless_said(command, pretended_fetches):
    command("fetch", "xnli:test")
    assert str(pretended_fetches[0][1]) == "data"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("xnly", "fetch: no corpus 'xnly'. Did you mean 'xnli'?"),
        ("xnli:trian", "xnli: no part 'trian'. Did you mean 'train'?"),
        ("xnli --language ssw", "--language ss:"),
        ("udpos", "udpos:"),
        ("", "'CORPUS'"),
    ],
)
def test_what_cannot_be_is_one_line_with_what_to_do(command, arguments, message):
    assert message in command("fetch", *arguments.split()).message


@pytest.mark.slow
def test_a_server_that_is_not_there_is_one_line(command, tmp_path, monkeypatch):
    real_selection = verb.select_releases
    patient = partial(verb.fetch, retry=RetryPolicy(sleep=lambda _: None))
    text = "http://127.0.0.1:9/x.zip"
    monkeypatch.setattr(
        verb,
        "select_releases",
        lambda *names: [replace(real_release, url=text) for real_release in real_selection(*names)],
    )
    monkeypatch.setattr(verb, "fetch", patient)
    result = command("fetch", "xnli:test", "--to", tmp_path, "--quiet")
    assert result.message.startswith("http://127.0.0.1:9/x.zip: no answer (")
    assert "downloads/x.zip" in result.message
