"""Datasets from a hub of this machine: pinned once, downloaded once, read as files of the same content."""

import os
import subprocess
import sys

import pytest
from huggingface_hub import constants

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.own import list_shipped
from isogloss.data.files import DiskFolder
from isogloss.features.described_corpora.corpus import DescribedCorpus
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.features.fetching import hub_address
from isogloss.features.fetching.hub_datasets import CONVERTED, HubDatasets
from isogloss.features.fetching.official_files import existing, fetch
from isogloss.features.fetching.releases import Release, select_releases
from local_hub import LocalHub, local_hub

datasets = pytest.importorskip("datasets")

NLI = "premise\thypothesis\tlabel\n{}\tHapana\t2\n"
NER = datasets.List(datasets.ClassLabel(names=["O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"]))
BASQUE = "HiTZ/xnli-eu"


@pytest.fixture
def hub(monkeypatch, tmp_path):
    with local_hub() as hub:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, hub.address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", hub.address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield hub


def basque(hub: LocalHub, text: str = "Bai") -> str:
    names = ("xnli.train.eu.mt.tsv", "xnli.dev.eu.tsv", "xnli.test.eu.tsv")
    return hub.put(BASQUE, {name: NLI.format(text).encode() for name in names})


def select_xnli_eu() -> list[Release]:
    return select_releases(["xnli-eu"])


def test_a_branch_is_looked_up_once_and_its_commit_is_written_beside_the_data(hub, tmp_path):
    commit = basque(hub)
    for result in fetch(select_xnli_eu(), tmp_path):
        assert result.fetched.url.startswith(f"hub:{BASQUE}@{commit}/xnli.")
    assert (tmp_path / f".fetched/commits/{BASQUE}@main").read_text() == f"{commit}\n"
    assert hub.requests.count(f"GET /api/datasets/{BASQUE}/revision/main") == 1
    request_count = len(hub.requests)
    basque(hub, "Ez")
    assert all(result.was_there for result in fetch(select_xnli_eu(), tmp_path))
    assert all(existing(release, tmp_path) for release in select_xnli_eu())
    assert len(hub.requests) == request_count
    (tmp_path / "xnli-eu/xnli.dev.eu.tsv").unlink()
    with pytest.raises(DataError, match=f"resolve/{commit}/xnli.dev.eu.tsv"):
        list(fetch(select_xnli_eu(), tmp_path))


def test_data_hub_reads_what_fetch_brings_with_the_same_identity(hub, tmp_path):
    basque(hub)
    (tmp_path / "data").mkdir()
    list(fetch(select_xnli_eu(), tmp_path / "data"))
    fingerprints = []
    for data in ("hub", str(tmp_path / "data")):
        corpus = described_as("xnli-eu", data)
        source = HubDatasets() if data == "hub" else DiskFolder(tmp_path / "data")
        assert [pair.first for pair in corpus.read(source, "eu", "dev")] == ["Bai"]
        fingerprints.append(
            [corpus.files(source, "eu", split)[0].fingerprint() for split in ("train", "test")]
        )
    assert fingerprints[0] == fingerprints[1]
    assert all(fingerprints[0])


def described_as(name: str, data: str) -> DescribedCorpus:
    return describe_corpus(list_shipped()[name], data)


def test_converted_files_of_the_hub_are_pinned_downloaded_once_and_read(hub, tmp_path):
    rows = datasets.Dataset.from_dict({"tokens": [["Ada", "nuko"]], "ner_tags": [[1, 0]]})
    rows.cast_column("ner_tags", NER).to_parquet(tmp_path / "file.parquet")
    body = (tmp_path / "file.parquet").read_bytes()
    commit = hub.put(
        "unimelb-nlp/wikiann", {"ay/train/0000.parquet": body, "en/train/0.parquet": b""}, CONVERTED
    )
    (file,) = CORPORA["wikiann"].files(HubDatasets(), "ay", "train")
    fingerprint = file.fingerprint()
    api_request = f"GET /api/datasets/unimelb-nlp/wikiann/revision/{CONVERTED.replace('/', '%2F')}"
    assert hub.requests == [api_request]
    (sentence,) = CORPORA["wikiann"].read(HubDatasets(), "ay", "train")
    assert (sentence.words, sentence.tags) == (("Ada", "nuko"), ("B-PER", "O"))
    path = f"/datasets/unimelb-nlp/wikiann/resolve/{commit}/ay/train/0000.parquet"
    assert hub.requests.count(f"GET {path}") == 1
    assert not [request for request in hub.requests if "/en/" in request]
    hub.put("unimelb-nlp/wikiann", {"ay/train/0000.parquet": b"newer"}, CONVERTED)
    assert list(CORPORA["wikiann"].read(HubDatasets(), "ay", "train")) == [sentence]
    assert file.fingerprint() == fingerprint
    assert hub.requests.count(f"GET {path}") == 1


def test_a_described_dataset_at_a_branch_is_that_at_its_commit(hub, tmp_path):
    commit = hub.put("owner/news", {"README.md": b""})
    description = """kind = "text"
labels = ["a"]
languages = ["sw"]
"""
    corpora = []
    for name, dataset in (("one", "owner/news"), ("two", "owner/news@main"), ("one", f"owner/news@{commit}")):
        (tmp_path / f"{name}.toml").write_text(f'name = "news"\nhub = "{dataset}"\n{description}')
        corpora.append(describe_corpus(tmp_path / f"{name}.toml"))
    assert {corpus.hub for corpus in corpora} == {f"owner/news@{commit}"}
    assert len({corpus.files(None, "sw", "train")[0].fingerprint() for corpus in corpora}) == 1


CARD = """---
configs:
- config_name: swa
  data_files:
  - {split: train, path: swa/train.jsonl}
  - {split: validation, path: swa/dev.jsonl}
---
"""
READ = """
import sys
from pathlib import Path
from isogloss.features.described_corpora.descriptions import described

corpus = described(Path(sys.argv[1]))
texts = [example.text for example in corpus.read(None, "sw", "dev")]
print(corpus.hub, *corpus.labels, *texts, *(file.fingerprint() for file in corpus.files(None, "sw", "train")))
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_a_described_dataset_is_read_by_the_library_from_the_hub_and_then_without_it(tmp_path):
    """Each reader is a separate process, because the library reads HF_ENDPOINT on import."""
    cache_folders = {name: str(tmp_path / name) for name in ("HF_HOME", "XDG_CACHE_HOME")}
    (tmp_path / "news.toml").write_text(
        'kind = "text"\nhub = "owner/news"\nconfig = "{language}"\nlanguages = { sw = "swa" }\n'
        'columns = { text = "headline" }\nsplits = { train = "train", validation = "validation" }\n'
    )
    rows = b'{"headline": "Jua", "label": "weather"}\n{"headline": "Mpira", "label": "sports"}\n'
    outputs = []
    with local_hub() as hub:
        files = {"README.md": CARD.encode(), "swa/train.jsonl": rows, "swa/dev.jsonl": rows}
        commit = hub.put("owner/news", files)
        for offline in ("0", "1"):
            environment = {
                **os.environ,
                **cache_folders,
                "HF_ENDPOINT": hub.address,
                "HF_HUB_OFFLINE": offline,
            }
            command = [sys.executable, "-c", READ, str(tmp_path / "news.toml")]
            outputs.append(subprocess.check_output(command, env=environment, text=True))
    assert outputs[0] == outputs[1]
    assert outputs[0].split()[:-1] == [f"owner/news@{commit}", "sports", "weather", "Jua", "Mpira"]


@pytest.mark.parametrize(
    ("dataset", "kind", "pattern"),
    [
        ("owner/nothing@main", DataError, "no dataset owner/nothing with a revision 'main'"),
        ("owner/news@mian", DataError, "no dataset owner/news with a revision 'mian'"),
        ("owner news", ConfigError, "found 'owner news'; expected owner/name, owner/name@BRANCH or"),
        ("owner/news@../../x", ConfigError, "expected owner/name, owner/name@BRANCH or"),
    ],
)
def test_what_the_hub_lacks_is_said(hub, tmp_path, dataset, kind, pattern):
    hub.put("owner/news", {})
    with pytest.raises(kind, match=pattern):
        hub_address.pin_commit(dataset, tmp_path)


def test_a_hub_that_cannot_be_reached_is_one_line_with_the_way_out(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(DataError, match=r"owner/news@main .*ConnectError.*owner/news@COMMIT") as error:
        hub_address.pin_commit("owner/news", tmp_path)
    assert "\n" not in str(error.value)
