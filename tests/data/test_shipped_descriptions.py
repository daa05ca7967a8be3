"""Descriptions of the package: each reads a file of its layout, and the real files where they are."""

import gzip
import json
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError
from isogloss.data.described import KNOWN, shipped
from isogloss.data.examples import Choice, LabelledText, TaggedSentence
from isogloss.data.parallel_examples import matched
from isogloss.experiments.descriptions import known_as, looked_through

DATA = Path(__file__).parents[3] / "shared" / "data"
LAYOUTS = {
    "sib200": (
        "sib200/swh_Latn/dev.tsv",
        'index_id\tcategory\ttext\n7\ttravel\t"Meli ""Uhuru"" imefika"\n',
        ("swh_Latn", "dev", LabelledText(id="7", text='Meli "Uhuru" imefika', label="travel")),
    ),
    "masakhanews": (
        "masakhanews/hau/test.tsv",
        'category\theadline\ttext\turl\nreligion\tAzumi\t"layi\nbiyu"\thttp://a\n',
        ("ha", "test", LabelledText(id="0", text="Azumi", label="religion")),
    ),
    "afrisenti": (
        "afrisenti/yor/train.tsv",
        'tweet\tlabel\n@user "o dara\tpositive\n',
        ("yo", "train", LabelledText(id="0", text='@user "o dara', label="positive")),
    ),
    "nusax-senti": (
        "nusax-senti/javanese/valid.csv",
        'id,text,label\n31,"Apik, murah",positive\n',
        ("jv", "dev", LabelledText(id="31", text="Apik, murah", label="positive")),
    ),
    "taxi1500": (
        "taxi1500/te/train.tsv",
        "id\tlabel\tverse\ttext\n66018007\tSin\tREV 18:7\ta b\n",
        ("te", "train", LabelledText(id="66018007", text="a b", label="Sin")),
    ),
    "masakhaner": (
        "masakhaner/wol/train.txt",
        "Aadama B-PER\ndemb B-DATE\n\n",
        ("wo", "train", TaggedSentence(id="0", words=("Aadama", "demb"), tags=("B-PER", "B-DATE"))),
    ),
    "masakhaner2": (
        "masakhaner2/zul/dev.txt",
        "ETheku B-LOC\nizolo B-DATE\n\n",
        ("zu", "dev", TaggedSentence(id="0", words=("ETheku", "izolo"), tags=("B-LOC", "B-DATE"))),
    ),
    "xcopa": (
        "xcopa/data/sw/val.sw.jsonl",
        '{"premise": "Alianguka.", "choice1": "Alilia.", "choice2": "Alicheka.", "question": "effect", '
        '"label": 0, "idx": 3, "changed": false}\r\n',
        (
            "sw",
            "dev",
            Choice(id="3", context="Alianguka.", prompt="effect", options=("Alilia.", "Alicheka."), label=0),
        ),
    ),
    "belebele": (
        "belebele/swh_Latn.jsonl",
        '{"link": "http://a", "question_number": 2, "flores_passage": "Jua kali.", "question": "Nini?", '
        '"mc_answer1": "a", "mc_answer2": "b", "mc_answer3": "c", "mc_answer4": "d", '
        '"correct_answer_num": "4", "dialect": "swh_Latn", "ds": "2023-05-03"}\n',
        (
            "swh_Latn",
            "test",
            Choice(id="http://a 2", context="Jua kali.", question="Nini?", options=tuple("abcd"), label=3),
        ),
    ),
}
"""A path of the official layout, its text, and what is read from it: language, split and first example."""

READ = {
    **{"sib200": 27108, "masakhanews": 5137, "afrisenti": 49770, "nusax-senti": 6000, "taxi1500": 9585},
    "xcopa": 7068,
}
"""Examples of the real files at hand."""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """What a test makes known is known to it alone."""
    monkeypatch.setattr("isogloss.data.described.KNOWN", KNOWN)
    before = dict(KNOWN)
    yield
    KNOWN.clear()
    KNOWN.update(before)


def test_every_description_has_a_layout_here():
    assert LAYOUTS.keys() == shipped().keys()


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_of_the_official_layout_is_read(name, tmp_path):
    place, text, (language, split, expected) = LAYOUTS[name]
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).write_text(text, encoding="utf-8")
    corpus = KNOWN[known_as(name, str(tmp_path))]
    assert corpus.name == name
    assert corpus.licence and corpus.about and corpus.url.startswith("https://")
    found = list(corpus.read(_disk(tmp_path), language, split))
    assert found == [expected]
    tasks = {
        TaggedSentence: "span-tagging",
        LabelledText: "text-classification",
        Choice: "multiple-choice",
    }
    assert corpus.tasks == (tasks[type(expected)],)


def test_without_the_files_it_is_said_what_was_looked_for(tmp_path):
    with pytest.raises(ConfigError, match=r"none of sib200/\{language\}/train\.tsv.* give --data"):
        known_as("sib200", str(tmp_path))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_the_real_files_are_read_whole(name):
    if not (DATA / name).is_dir():
        pytest.skip("the real corpora are not here")
    corpus = KNOWN[known_as(name, str(DATA))]
    found = list(looked_through(corpus, str(DATA)))
    assert not [one.error for one in found if one.error]
    assert sum(one.examples for one in found) == READ[name]


@pytest.mark.data
@pytest.mark.slow
def test_the_real_questions_of_belebele_are_read_whole(tmp_path):
    """The copy at hand has a passage a line with its questions; official files have a question a line."""
    if not (DATA / "belebele").is_dir():
        pytest.skip("the real corpora are not here")
    places = dict.fromkeys(("eng_Latn", "deu_Latn"), 0)
    (tmp_path / "belebele").mkdir()
    for language in places:
        with gzip.open(DATA / f"belebele/{language}.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = [line for one in file for line in _official(json.loads(one))]
        (tmp_path / f"belebele/{language}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    corpus = KNOWN[known_as("belebele", str(tmp_path))]
    english, german = looked_through(corpus, str(tmp_path))
    for one in (english, german):
        assert (one.examples, one.repeated, one.error) == (900, 0, "")
        assert one.labels == {"0": 206, "1": 251, "2": 246, "3": 197}
    found = [
        list(corpus.read(_disk(tmp_path), language, "test"))
        for language in (english.language, german.language)
    ]
    both = matched(*found, names=("en", "de"))
    assert len(both) == 900
    assert all(len(one.options) == len(other.options) == 4 for one, other in both)


def _official(passage):
    """Yield a line for each question of a passage, as the official files have it."""
    for number, item in enumerate(passage["items"], start=1):
        right = [answer["correct"] for answer in item["answers"]].index(True)
        yield json.dumps(
            {
                "link": passage["metadata"]["extra"]["url"],
                "question_number": number,
                "flores_passage": passage["text"],
                "question": item["question"],
                **{f"mc_answer{n}": one["text"] for n, one in enumerate(item["answers"], start=1)},
                "correct_answer_num": str(right + 1),
            }
        )


def _disk(folder):
    from isogloss.data.files import DiskFolder

    return DiskFolder(folder)
