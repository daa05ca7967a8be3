"""A dataset of the hub is described by its commit, and read by the library from its cache."""

import shutil

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import LabelledText
from isogloss.data.files import DiskFolder
from says import says

datasets = pytest.importorskip("datasets")

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BODY = f"""
name = "news"
kind = "text"
hub = "owner/news@{COMMIT}"
config = "{{language}}"
languages = {{ sw = "swa" }}
columns = {{ text = "headline" }}
splits = {{ train = "train", test = "test" }}
"""
ROWS = {"headline": ["Jua\tkali", "Mpira"], "label": [1, 0]}
TOPICS = datasets.ClassLabel(names=["sports", "weather"])
EXPECTED = [
    LabelledText(id="0", text="Jua\tkali", label="weather"),
    LabelledText(id="1", text="Mpira", label="sports"),
]


@pytest.fixture
def cache_table(tmp_path, monkeypatch):
    """Let the library read a dataset's parquet files into its cache, where it finds them offline."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")

    def put_table(commit=COMMIT, table=ROWS):
        files = {}
        for split in ("train", "test"):
            files[split] = str(tmp_path / f"{split}.parquet")
            datasets.Dataset.from_dict(table).cast_column("label", TOPICS).to_parquet(files[split])
        builder = datasets.load_dataset_builder(
            "parquet", "swa", data_files=files, cache_dir=tmp_path / "made"
        )
        builder.download_and_prepare()
        place = tmp_path / "cache/owner___news/swa/0.0.0" / commit
        shutil.copytree(builder.cache_dir, place)
        for file in place.glob("parquet-*"):
            file.rename(place / file.name.replace("parquet", "news"))

    return put_table


def test_rows_are_read_from_the_cache_with_the_names_of_their_labels(cache_table, own_corpus):
    cache_table()
    result = own_corpus(BODY)
    assert (result.labels, result.tasks) == (("sports", "weather"), ("text-classification",))
    assert list(result.read(None, "sw", "train")) == list(result.read(None, "sw", "test")) == EXPECTED
    with says(DataError, "'news'", "train, test"):
        result.files(None, "sw", "dev")


def test_the_hub_is_asked_once_in_a_process(cache_table, own_corpus, monkeypatch):
    cache_table()
    result = []
    load = datasets.load_dataset_builder
    monkeypatch.setattr(
        datasets,
        "load_dataset_builder",
        lambda *position, **more: result.append(position) or load(*position, **more),
    )
    corpus = own_corpus(BODY)
    splits = [list(corpus.read(None, "sw", split)) for split in ("train", "test", "train")]
    assert splits == [EXPECTED] * 3 and result == [("owner/news", "swa")]


def test_the_commit_the_configuration_and_the_way_of_reading_are_its_fingerprint(own_corpus, tmp_path):
    text = 'labels = ["sports", "weather"]\n'

    def fingerprint(body, split="train", source=None):
        (file,) = own_corpus(body + text).files(source, "sw", split)
        return file.fingerprint()

    first_fingerprint = fingerprint(BODY + text.replace("labels", "skip"))
    bodies = [
        BODY,
        BODY.replace(COMMIT, COMMIT[::-1]),
        BODY.replace('"swa"', '"ha"'),
        BODY.replace("head", ""),
    ]
    interval = [first_fingerprint, *(fingerprint(value) for value in bodies), fingerprint(BODY, "test")]
    assert len(set(interval)) == len(interval)
    assert fingerprint(BODY, source=DiskFolder(tmp_path)) == interval[1]


def test_a_broken_row_is_named_by_its_number_and_another_commit_is_refused(cache_table, own_corpus):
    cache_table(table={"headline": ["Jua", ""], "label": [1, 1]})
    text = 'labels = ["sports", "weather"]\n'
    with pytest.raises(DataError, match=f"hub:owner/news@{COMMIT}/swa/train:2: .*''"):
        list(own_corpus(BODY + text).read(None, "sw", "train"))
    other_commit = COMMIT[::-1]
    with pytest.raises(DataError, match=rf"commit.*machine.*{COMMIT}\)"):
        list(own_corpus(BODY.replace(COMMIT, other_commit) + text).read(None, "sw", "train"))


def test_without_a_network_and_without_a_cache_it_is_said_what_to_do(cache_table, own_corpus):
    with pytest.raises(DataError, match="dataset"):
        list(own_corpus(BODY + 'labels = ["a"]\n').read(None, "sw", "train"))


def test_files_that_may_be_more_than_data_are_not_read(monkeypatch, own_corpus):
    from datasets.packaged_modules.pandas.pandas import Pandas

    monkeypatch.setattr(datasets, "load_dataset_builder", lambda *_, **__: object.__new__(Pandas))
    with says(DataError, "parquet, json"):
        list(own_corpus(BODY + 'labels = ["a"]\n').read(None, "sw", "train"))


@pytest.mark.parametrize(
    ("old_name", "new_name", "message"),
    [
        (
            "owner/news",
            "owner news",
            "hub: .*'owner.*'.*owner/name, owner/name@BRANCH",
        ),
        ('languages = { sw = "swa" }\n', "", "languages:"),
        (
            'kind = "text"\n',
            'kind = "text"\nfiles = "a.tsv"\n',
            "files:",
        ),
        ('train = "train"', 'training = "train"', "splits: .*'training'.*'train'"),
        (f'hub = "owner/news@{COMMIT}"\n', "", "files:"),
    ],
)
def test_mistakes_are_said_before_anything_is_read(own_corpus, old_name, new_name, message):
    with pytest.raises(ConfigError, match=message):
        own_corpus(BODY.replace(old_name, new_name))
