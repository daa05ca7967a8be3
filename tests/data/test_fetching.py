"""Official files arrive where readers look. Existing files are kept. The tables are well formed."""

import json
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from each import each
from fake_downloads import Server, drop, make_tar, make_zip, refuse, send
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.languages import check_language
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.own import list_shipped
from isogloss.data.corpora.texts_and_trees import Ud
from isogloss.data.files import DiskFolder
from isogloss.features.described_corpora.descriptions import describe_corpus
from isogloss.features.fetching.downloading import RetryPolicy
from isogloss.features.fetching.official_files import existing, fetch
from isogloss.features.fetching.releases import Release, fetchable, releases, select_releases

FIXTURES = Path(__file__).parent / "fixtures"
PATIENT = RetryPolicy(sleep=lambda _: None)


def fixture(path: str) -> bytes:
    return (FIXTURES / path).read_bytes()


def questions(*ids: str) -> bytes:
    qas = [{"id": item, "question": "Who?", "answers": [{"text": "Ada", "answer_start": 0}]} for item in ids]
    return json.dumps({"data": [{"paragraphs": [{"context": "Ada wrote it.", "qas": qas}]}]}).encode()


SWAHILI = make_tar([(name, fixture("wikiann/sw/train")) for name in ("train", "dev", "test", "extra")])
PANX = make_tar([("sw.tar.gz", SWAHILI)], packed=False)
PAWS = fixture("pawsx/x-final/de/dev_2k.tsv")
MULTINLI = fixture("multinli_1.0/multinli_1.0_dev_matched.txt")
UD = fixture("ud/UD_English-EWT/en_ewt-ud-train.conllu")

OFFICIAL = {
    "xnli/xnli.{split}.tsv": (
        make_zip([(f"XNLI-1.0/xnli.{split}.tsv", fixture("xnli/xnli.dev.tsv")) for split in ("dev", "test")]),
        [(CORPORA["xnli"], "sw", "dev"), (CORPORA["xnli"], "sw", "test")],
    ),
    "xnli/multinli.train.{language}.tsv": (
        make_zip([("XNLI-MT-1.0/multinli/multinli.train.sw.tsv", fixture("xnli/multinli.train.en.tsv"))]),
        [(CORPORA["xnli"], "sw", "train")],
    ),
    "pawsx/x-final/{language}/{file}.tsv": (
        make_tar([(f"x-final/de/{name}.tsv", PAWS) for name in ("dev_2k", "test_2k", "translated_train")]),
        [(CORPORA["pawsx"], "de", split) for split in ("train", "dev", "test")],
    ),
    "squad/train-v1.1.json": (questions("a"), [(CORPORA["squad"], "en", "train")]),
    "squad/dev-v1.1.json": (questions("a"), [(CORPORA["squad"], "en", "dev")]),
    "squad/squad.translate.train.en-ru.json": (questions("a"), [(CORPORA["squad"], "ru", "train")]),
    "xquad/xquad.ru.json": (fixture("xquad/xquad.ru.json"), [(CORPORA["squad"], "ru", "test")]),
    "mlqa/MLQA_V1/{split}/{split}-context-{language}-question-{question}.json": (
        make_zip(
            [
                (f"MLQA_V1/dev/dev-context-de-question-{language}.json", questions("a"))
                for language in ("ar", "de")
            ]
        ),
        [(CORPORA["mlqa"], "de", "dev"), (replace(CORPORA["mlqa"], collection="ar"), "de", "dev")],
    ),
    "tydiqa/tydiqa-goldp-v1.1-train.json": (
        questions("swahili-1-0", "english-1-0", "english-2-0"),
        [(CORPORA["tydiqa"], "sw", "train"), (CORPORA["tydiqa"], "en", "train")],
    ),
    "tydiqa/tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-{name}.json": (
        make_tar([("tydiqa-goldp-v1.1-dev/tydiqa-goldp-dev-swahili.json", questions("swahili-1-0"))]),
        [(CORPORA["tydiqa"], "sw", "dev")],
    ),
    "wikiann/{language}/{split}": (
        PANX,
        [(CORPORA["wikiann"], "sw", split) for split in ("train", "dev", "test")],
    ),
    "masakhapos/swa/train.txt": (b"kwa ADP\n\n", [(CORPORA["masakhapos"], "sw", "train")]),
    "mrpc/msr_paraphrase_train.txt": (
        fixture("mrpc/msr_paraphrase_train.txt"),
        [(CORPORA["mrpc"], "en", "train")],
    ),
    "snli/snli_1.0_{split}.txt": (
        make_zip([("snli_1.0/snli_1.0_train.txt", fixture("snli_1.0/snli_1.0_train.txt"))]),
        [(CORPORA["snli"], "en", "train")],
    ),
    "multinli/multinli_1.0_{name}.txt": (
        make_zip([("multinli_1.0/multinli_1.0_dev_matched.txt", MULTINLI)]),
        [(CORPORA["multinli"], "en", "dev")],
    ),
    "sick/SICK.txt": (
        make_zip([("SICK.txt", fixture("sick/SICK.txt")), ("readme.txt", b"no")]),
        [(CORPORA["sick"], "en", "train")],
    ),
    "cad-nli/all_combined/train.tsv": (
        fixture("counterfactually-augmented-data/NLI/all_combined/train.tsv"),
        [(CORPORA["cad-nli"], "en", "train")],
    ),
    "xnli/translate-train/en-sw-translated.tsv": (
        fixture("xnli/translate-train/en-sw-translated.tsv"),
        [(CORPORA["xnli"], "en-sw", "train")],
    ),
    "pawsx/translate-train/en-de-translated.tsv": (
        fixture("pawsx/translate-train/en-de-translated.tsv"),
        [(CORPORA["pawsx"], "en-de", "train")],
    ),
    "tatoeba/tatoeba.deu-eng.deu": (fixture("tatoeba/tatoeba.deu-eng.deu"), []),
    "tatoeba/tatoeba.deu-eng.eng": (
        fixture("tatoeba/tatoeba.deu-eng.eng"),
        [(replace(CORPORA["bitext"], collection="tatoeba"), "de-en", "test")],
    ),
    "ud/UD_English-EWT/en_ewt-ud-train.conllu": (UD, [(CORPORA["ud"], "en", "train")]),
    "ud/UD_Hindi-HDTB/hi_hdtb-ud-dev.conllu": (UD, [(CORPORA["ud"], "hi", "dev")]),
    "ud/UD_Thai-PUD/th_pud-ud-test.conllu": (UD, [(CORPORA["ud"], "th", "test")]),
    "ud-treebanks-v2.5/{treebank}/{language}_{name}-ud-{split}.conllu": (
        make_tar([("ud-treebanks-v2.5/UD_Finnish-TDT/fi_tdt-ud-dev.conllu", UD)]),
        [(Ud(treebanks=(("fi", "TDT"),)), "fi", "dev")],
    ),
}
"""By the place of the table's entry: a tiny file in the official format, and what can be read from it."""


@pytest.fixture
def serve_entry(server: Server):
    """Give the table's entry for a place, served from here."""

    def serve_entry(place: str, body: bytes | None = None, *behaviours, checked: bool = True) -> Release:
        body = OFFICIAL[place][0] if body is None else body
        (entry,) = [
            file
            for corpus in CORPORA
            for file in releases(corpus).files
            if place in (file.to, *(target for _, target in file.take))
        ]
        url = server.put(entry.url.rpartition("/")[2].partition("?")[0], body, *behaviours)
        if not checked:
            return replace(entry, url=url, size=None, sha256="")
        return replace(entry, url=url, size=len(body), sha256=sha256(body).hexdigest())

    return serve_entry


def fetch_patiently(request: list[Release], folder: Path, **options):
    return list(fetch(request, folder, retry=PATIENT, **options))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("check_count", [True, False])
def test_every_corpus_that_is_fetched_is_found_by_its_reader(serve_entry, tmp_path, check_count):
    fetch_patiently([serve_entry(place, checked=check_count) for place in OFFICIAL], tmp_path)
    folder = DiskFolder(tmp_path)
    for _, readings in OFFICIAL.values():
        for corpus, language, split in readings:
            assert list(corpus.read(folder, language, split)), (corpus.name, language, split)
    assert len(list(CORPORA["tydiqa"].read(folder, "en", "train"))) == 2
    assert len(list(CORPORA["tydiqa"].read(folder, "sw", "train"))) == 1


def test_every_kind_of_entry_is_tried():
    tried_parts = {place.partition("{")[0].rpartition("/")[0] for place in OFFICIAL}
    entries = [file for corpus in CORPORA for file in releases(corpus).files]
    places = {
        place for file in entries for place in ([file.to] if file.to else [target for _, target in file.take])
    }
    untried_places = {
        place for place in places if place.partition("{")[0].rpartition("/")[0] not in tried_parts
    }
    other_texts = ("tydiqa/translate-train", "ud/", "v2.16", "v2.7", "masakhapos/")
    assert all(any(part in item for part in other_texts) for item in each(untried_places)), untried_places


@pytest.mark.parametrize("place", ["xnli/xnli.{split}.tsv", "squad/dev-v1.1.json"])
@pytest.mark.parametrize("check_count", [True, False])
def test_what_is_there_and_right_is_not_fetched_again(serve_entry, server, tmp_path, place, check_count):
    release = serve_entry(place, checked=check_count)
    (first_fetch,) = fetch_patiently([release], tmp_path)
    (second,) = fetch_patiently([release], tmp_path)
    assert (first_fetch.was_there, second.was_there) == (False, True)
    assert first_fetch.fetched == second.fetched
    assert len(server.requests) == 1


def test_members_are_enough_where_the_archive_was_deleted(serve_entry, server, tmp_path):
    release = serve_entry("xnli/xnli.{split}.tsv")
    fetch_patiently([release], tmp_path)
    (tmp_path / "downloads/XNLI-1.0.zip").unlink()
    assert fetch_patiently([release], tmp_path)[0].was_there
    (tmp_path / "xnli/xnli.dev.tsv").unlink()
    assert not fetch_patiently([release], tmp_path)[0].was_there
    assert (tmp_path / "xnli/xnli.dev.tsv").exists()
    assert len(server.requests) == 2


def test_a_lost_member_comes_from_the_archive_that_was_kept(serve_entry, server, tmp_path):
    release = serve_entry("xnli/xnli.{split}.tsv")
    fetch_patiently([release], tmp_path)
    (tmp_path / "xnli/xnli.dev.tsv").unlink()
    fetch_patiently([release], tmp_path)
    assert (tmp_path / "xnli/xnli.dev.tsv").exists()
    assert len(server.requests) == 1


def test_another_language_comes_from_the_archive_that_was_kept(serve_entry, server, tmp_path):
    body = make_tar([(f"x-final/{language}/dev_2k.tsv", PAWS) for language in ("de", "fr", "ko")])
    release = serve_entry("pawsx/x-final/{language}/{file}.tsv", body)
    for languages, text in ("de", "de"), ("fr", "de fr"), ("de", "de fr"), ("", "de fr ko"):
        fetch_patiently([release], tmp_path, languages=languages.split())
        assert {path.name for path in (tmp_path / "pawsx/x-final").iterdir()} == set(text.split())
    assert fetch_patiently([release], tmp_path, languages=("ko",))[0].was_there
    assert len(server.requests) == 1


@pytest.mark.parametrize("place", ["xnli/xnli.{split}.tsv", "squad/dev-v1.1.json"])
@pytest.mark.parametrize("check_count", [True, False])
def test_a_file_that_was_changed_is_neither_trusted_nor_overwritten(
    serve_entry, tmp_path, place, check_count
):
    release = serve_entry(place, checked=check_count)
    fetch_patiently([release], tmp_path)
    changed_path = tmp_path / (release.to or "xnli/xnli.dev.tsv")
    changed_path.write_text("changed")
    refusal = rf"^{re.escape(str(changed_path))}: .*SHA-256 [0-9a-f]{{64}}; expected [0-9a-f]{{64}}\).*--to"
    for ask in (lambda: existing(release, tmp_path), lambda: fetch_patiently([release], tmp_path)):
        with pytest.raises(DataError, match=refusal):
            ask()
    assert changed_path.read_text() == "changed"


def test_the_checksum_of_the_first_download_holds_for_later_ones(serve_entry, tmp_path):
    fetch_patiently([serve_entry("squad/dev-v1.1.json", checked=False)], tmp_path)
    (tmp_path / "squad/dev-v1.1.json").unlink()
    record = r"\.fetched/squad/dev-v1\.1\.json\.json"
    with pytest.raises(DataError, match=rf"of the first download \({record}; delete it"):
        fetch_patiently([serve_entry("squad/dev-v1.1.json", questions("another"), checked=False)], tmp_path)
    assert not (tmp_path / "squad/dev-v1.1.json").exists()


def test_an_archive_put_there_by_hand_is_checked_and_used(serve_entry, server, tmp_path):
    place = "wikiann/{language}/{split}"
    release = serve_entry(place)
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads/panx_dataset.tar").write_bytes(b"something else")
    with pytest.raises(DataError, match="official"):
        fetch_patiently([release], tmp_path)
    (tmp_path / "downloads/panx_dataset.tar").write_bytes(OFFICIAL[place][0])
    fetch_patiently([release], tmp_path)
    assert (tmp_path / "wikiann/sw/train").exists()
    assert server.requests == []


def test_what_cannot_be_had_says_where_to_put_it(serve_entry, tmp_path):
    with pytest.raises(DataError, match=r"downloads/panx_dataset.tar"):
        fetch_patiently([serve_entry("wikiann/{language}/{split}", b"x", refuse(403))], tmp_path)


def test_a_damaged_record_counts_as_none(serve_entry, server, tmp_path):
    release = serve_entry("xnli/xnli.{split}.tsv")
    fetch_patiently([release], tmp_path)
    for text in ("{", "[]", '{"url": 3}', ""):
        (tmp_path / ".fetched/downloads/XNLI-1.0.zip.json").write_text(text)
        fetch_patiently([release], tmp_path)
    assert len(server.requests) == 1


@pytest.mark.slow
def test_what_came_before_a_failure_is_kept(serve_entry, tmp_path):
    good_entry = serve_entry("xquad/xquad.ru.json")
    bad_entry = serve_entry("squad/dev-v1.1.json", b"x", drop)
    with pytest.raises(DataError, match="6 attempts"):
        fetch_patiently([good_entry, bad_entry], tmp_path)
    assert existing(good_entry, tmp_path)
    assert not existing(bad_entry, tmp_path)


@pytest.mark.slow
def test_two_at_once_fetch_each_file_once(serve_entry, server, tmp_path):
    def slowly(handler, body):
        time.sleep(0.2)
        send()(handler, body)

    entries = [
        serve_entry("xnli/xnli.{split}.tsv", None, slowly),
        serve_entry("squad/dev-v1.1.json", None, slowly),
    ]
    remarks: list[str] = []
    retry = RetryPolicy(sleep=lambda _: time.sleep(0.01))

    def work() -> None:
        list(fetch(entries, tmp_path, retry=retry, on_progress=lambda item: remarks.append(item.remark)))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path for path, _ in server.requests) == ["XNLI-1.0.zip", "dev-v1.1.json"]
    assert any("process fetches into it; waiting" in remark for remark in remarks)


@pytest.mark.slow
def test_fetching_imports_nothing_heavy():
    program = "import sys, isogloss.features.fetching.official_files; print(*sys.modules)"
    parts = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    assert not {"torch", "datasets", "pyarrow", "huggingface_hub", "numpy", "httpx2"} & parts


EVERY = [file for name in fetchable() for file in releases(name).files]


def test_every_corpus_has_a_table_and_every_table_a_corpus():
    assert set(fetchable()) == {*CORPORA, *list_shipped()}


@pytest.mark.parametrize("name", fetchable())
def test_a_table_has_files_or_says_what_to_do(name):
    table = releases(name)
    assert table.files or table.by_hand
    assert set(table.default) <= set(table.parts)
    for text in (table.by_hand, *table.parts_by_hand.values()):
        assert not text or text.endswith(".")


@pytest.mark.parametrize("name", fetchable())
def test_the_entries_of_a_table_are_well_formed(name):
    files = releases(name).files
    for file in files:
        assert urlsplit(file.url).scheme == "https" or FILE_OF_THE_HUB.fullmatch(file.url)
        assert re.fullmatch("[0-9a-f]{64}|", file.sha256)
        assert file.size is None or file.size > 0
        assert bool(file.to) != bool(file.take)
        assert all(check_language(language, file.target) for language in file.languages)
        assert not {"..", "{language}", "{split}"} & {file.target, file.url}
        assert not file.target.startswith("/")
        assert file.sha256 or COMMIT_OR_RELEASE.search(file.url)
    assert len({file.target for file in files}) == len({file.url for file in files}) == len(files)


FILE_OF_THE_HUB = re.compile(r"hub:[\w-]+/[\w-]+@([0-9a-f]{40}|main)/\S+")
COMMIT_OR_RELEASE = re.compile(r"/[0-9a-f]{40}/|@([0-9a-f]{40}|main)/|/r2[.]16/")
"""A file without a checksum belongs to a commit, or to a branch whose commit is resolved once."""


def test_no_two_tables_have_one_place_for_different_files():
    addresses = {(file.target, file.url) for file in EVERY}
    assert len({target for target, _ in addresses}) == len(addresses)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_description_that_is_read_and_its_table_agree_on_languages_and_places(tmp_path):
    names = {name for name in list_shipped() if any(file.to for file in releases(name).files)} - {"ntrex"}
    for name in each(names):
        for file in releases(name).files:
            place = tmp_path / name / (file.to or "later")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        corpus = describe_corpus(list_shipped()[name], str(tmp_path / name))
        for file in each(releases(name).files):
            assert corpus.files(DiskFolder(tmp_path / name), file.languages[0], file.splits[0])


def test_holes_of_a_place_are_holes_of_its_member():
    for member, place in each(part for file in EVERY for part in file.take):
        assert set(re.findall(r"\{(\w+)\}", place)) <= set(re.findall(r"\{(\w+)\}", member))


def test_a_corpus_stands_for_its_default_parts_and_a_part_for_itself():
    assert {file.part for file in select_releases(["xnli"])} == {"test", "train"}
    assert {file.part for file in select_releases(["xnli:test", "squad:xquad"])} == {"test", "xquad"}
    assert select_releases(["xnli", "xnli:test", "xnli"]) == select_releases(["xnli"])


def test_languages_leave_other_files_out():
    assert {file.to for file in select_releases(["squad"], ["ru"])} == {"xquad/xquad.ru.json"}
    assert {file.languages for file in select_releases(["ud:pud"], ["ru", "en"])} == {("ru",), ("en",)}


@pytest.mark.parametrize(
    ("names", "languages", "message"),
    [
        (["xnly"], [], "no corpus 'xnly'. Did you mean 'xnli'? Known: afrisenti"),
        (["xnli:tset"], [], "no part 'tset'. Did you mean 'test'? Known: test, train, translate-train."),
        (
            ["pawsx"],
            ["dee"],
            "--language dee: no file of pawsx has it. Did you mean 'de'? Choose among: de",
        ),
        (["xnli", "ud"], ["sw"], "--language sw: no file of ud has it."),
        (["xnli", "ud"], ["sw", "vi", "ta"], "--language ta: no file of xnli, ud has it."),
    ],
)
def test_what_is_not_there_is_said_with_the_nearest(names, languages, message):
    with pytest.raises(ConfigError) as error:
        select_releases(names, languages)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["udpos", "bible", "rawtext", "bitext:tico19", "bitext:word-alignment"])
def test_what_cannot_be_fetched_says_what_to_do(name):
    with pytest.raises(DataError, match=f"^{name}: .*data folder"):
        select_releases([name])


@pytest.mark.parametrize(
    ("name", "members", "targets"),
    [
        (
            "flores200",
            ["./flores200_dataset/dev/yor_Latn.dev", "./flores200_dataset/devtest/yor_Latn.devtest"],
            ["flores200/dev/yor_Latn.dev", "flores200/devtest/yor_Latn.devtest"],
        ),
        ("massive", ["1.0/data/sw-KE.jsonl"], ["massive/sw-KE.jsonl"]),
    ],
)
def test_languages_of_an_archive_are_taken_by_any_code(server, tmp_path, name, members, targets):
    other_texts = ["flores200_dataset/dev/yue_Hant.dev", "1.0/data/zh-CN.jsonl", "1.0/LICENSE"]
    body = make_tar([(member, b"text\n") for member in (*members, *other_texts)])
    (entry,) = releases(name).files
    url = server.put("archive.tar.gz", body)
    release = replace(entry, url=url, size=len(body), sha256=sha256(body).hexdigest())
    language = "yo" if name == "flores200" else "sw"
    (result,) = fetch([release], tmp_path, languages=[language], retry=PATIENT)
    assert sorted(result.fetched.files) == targets
    assert release.has([language])
    assert not release.has(["gsw"])
