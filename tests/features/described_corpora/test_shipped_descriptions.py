"""Descriptions of the package: each reads a file of its layout, and the real files where they are."""

import gzip
import json
from pathlib import Path

import pytest

from isogloss.core.errors import DataError
from isogloss.data.corpora.own import KNOWN, list_shipped, register_corpus
from isogloss.data.examples import Choice, LabelledText, SentencePair, TaggedSentence, Translation
from isogloss.data.files import DiskFolder
from isogloss.data.projection.parallel_examples import match_by_id
from isogloss.features.described_corpora.contents import inspect_splits
from says import says

DATA = Path(__file__).parents[4] / "shared" / "data"


def pair(name, first_text, second, label):
    return SentencePair(id=name, first=first_text, second=second, label=label)


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
    "afrixnli": (
        "afrixnli/swa/dev.tsv",
        'premise\thypothesis\tlabel\n"Alisema ""ndiyo"""\tAlikataa\t2\n',
        ("sw", "dev", pair("0", 'Alisema "ndiyo"', "Alikataa", "contradiction")),
    ),
    "americasnli": (
        "americasnli/test/gn.tsv",
        "id\tlanguage\tpremise\thypothesis\tlabel\n7\tgn\tHe'i \"ma\tNdaipóri\tneutral\n",
        ("gn", "test", pair("7", "He'i \"ma", "Ndaipóri", "neutral")),
    ),
    "indicxnli": (
        "indicxnli/forward/train/xnli_or.json",
        '[\n {\n  "premise": "a",\n  "hypothesis": "b",\n  "label": 1\n }\n]',
        ("or", "train", pair("0", "a", "b", "neutral")),
    ),
    "xnli-eu": (
        "xnli-eu/xnli.train.eu.mt.tsv",
        'premise\thypothesis\tlabel\n"Bai\tEz\t0\n',
        ("eu", "train", pair("0", '"Bai', "Ez", "entailment")),
    ),
    "xnli-eu-native": (
        "xnli-eu/xnli.test.eu.native.tsv",
        "premise\thypothesis\tlabel\nBai\tEz\t2\n",
        ("eu", "test", pair("0", "Bai", "Ez", "contradiction")),
    ),
    "c-xnli": (
        "c-xnli/xnli.dev.hr.csv",
        'premise,hypo,promptID,pairID,genre,label\n"Pa, ne",Da,2,4,fiction,contradiction\n',
        ("hr", "dev", pair("4", "Pa, ne", "Da", "contradiction")),
    ),
    "myxnli": (
        "myxnli/my.genre.test.tsv",
        "genre\tlabel\tsentence1_en\tsentence2_en\tsentence1_my\tsentence2_my\nfiction\tneutral\tA\tB\tက\tခ\n",
        ("my", "test", pair("0", "က", "ခ", "neutral")),
    ),
    "uner": (
        "uner/UNER_Swedish-Talbanken/sv_talbanken-ud-train.iob2",
        "# sent_id = 1\n# text = Anna for\n1\tAnna\tB-PER\t-\tx\n2\tfor\tB-OTH\t-\tx\n\n",
        ("sv", "train", TaggedSentence(id="0", words=("Anna", "for"), tags=("B-PER", "O"))),
    ),
    "massive": (
        "massive/sw-KE.jsonl",
        '{"id": "0", "locale": "sw-KE", "partition": "test", "intent": "alarm_set", "utt": "niamshe"}\n'
        '{"id": "3", "locale": "sw-KE", "partition": "dev", "intent": "qa_maths", "utt": "jumlisha"}\n',
        ("sw", "dev", LabelledText(id="3", text="jumlisha", label="qa_maths")),
    ),
    "massive-slots": (
        "massive/ja-JP.jsonl",
        '{"id": "0", "partition": "train", "annot_utt": "[time : 九時] に app を [date : 金 曜] [date : x]"}',
        (
            "ja",
            "train",
            TaggedSentence(
                id="0",
                words=("九", "時", "に", "app", "を", "金", "曜", "x"),
                tags=("B-time", "I-time", "O", "O", "O", "B-date", "I-date", "B-date"),
            ),
        ),
    ),
    "flores200": (
        "flores200/devtest/{}.devtest",
        {"swh_Latn": "Jua\n", "eng_Latn": "Sun\n"},
        ("swh_Latn-en", "test", Translation(id="0", first="Jua", second="Sun")),
    ),
    "ntrex": (
        "ntrex/newstest2019-ref.{}.txt",
        {"swa": "Jua\n", "eng": "Sun\n"},
        ("en-sw", "test", Translation(id="0", first="Sun", second="Jua")),
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
"""A path of the official layout, its text or each language's, what is read: language, split and example."""

READ = {
    "sib200": 27108,
    "masakhanews": 5137,
    "afrisenti": 49770,
    "nusax-senti": 6000,
    "taxi1500": 9585,
    "xnli-eu": 5010,
    "xnli-eu-native": 621,
    "c-xnli": 2490 + 5010,
    "myxnli": 2490 + 5010,
    "flores200": 11 * (997 + 1012),
    "xcopa": 7068,
}
"""Examples of the available real files. FLORES pairs twelve languages, each with the next."""

FLORES = (
    "en eng_Latn|de deu_Latn|fr fra_Latn|es spa_Latn|ru rus_Cyrl|ar arb_Arab|hi hin_Deva|zh zho_Hans|"
    "vi vie_Latn|tr tur_Latn|bg bul_Cyrl|el ell_Grek"
)
PLACES = {
    "xnli-eu/xnli.test.eu.tsv.gz": "xnli-ext/eu/xnli-eu-original.tsv.gz",
    "xnli-eu/xnli.test.eu.native.tsv.gz": "xnli-ext/eu/xnli-eu-native.tsv.gz",
    **{
        f"c-xnli/xnli.{language}.hr.csv.gz": f"xnli-ext/hr/xnli.{language}.hr.csv.gz"
        for language in ("dev", "test")
    },
    **{
        f"myxnli/my.genre.{language}.tsv.gz": f"xnli-ext/my/my.genre.{language}.tsv.gz"
        for language in ("dev", "test")
    },
    **{
        f"flores200/{split}/{name}.{split}.gz": f"flores-mt/ref/flores-{short_language}.{language}.gz"
        for language, name in (str.split(part) for part in FLORES.split("|"))
        for split, short_language in (("dev", "dev"), ("devtest", "test"))
    },
}
"""Folders of official files among the real ones, if their names differ there."""


@pytest.fixture(autouse=True)
def forget_descriptions(monkeypatch):
    """Forget the descriptions that a test registers."""
    monkeypatch.setattr("isogloss.data.corpora.own.KNOWN", KNOWN)
    state_before = dict(KNOWN)
    yield
    KNOWN.clear()
    KNOWN.update(state_before)


def test_every_description_has_a_layout_here():
    assert LAYOUTS.keys() == list_shipped().keys()


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_file_of_the_official_layout_is_read(name, tmp_path):
    place, text, (language, split, expected) = LAYOUTS[name]
    (tmp_path / place).parent.mkdir(parents=True)
    for language_code, own_part in (text if isinstance(text, dict) else {"": text}).items():
        (tmp_path / place.format(language_code)).write_text(own_part, encoding="utf-8")
    corpus = KNOWN[register_corpus(name, str(tmp_path))]
    assert corpus.name == name
    assert corpus.about.licence and corpus.about.text and corpus.about.url.startswith("https://")
    examples = list(corpus.read(DiskFolder(tmp_path), language, split))
    assert examples == [expected]
    tasks = {
        TaggedSentence: "span-tagging",
        LabelledText: "text-classification",
        SentencePair: "nli",
        Choice: "multiple-choice",
    }
    assert corpus.tasks == (tasks.get(type(expected), "bitext"),)


def test_one_description_is_read_from_two_data_folders(tmp_path):
    place, text, (_, split, expected) = LAYOUTS["sib200"]
    for folder, language in (("first", "swh_Latn"), ("second", "yor_Latn")):
        path = tmp_path / folder / place.replace("swh_Latn", language)
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
        corpus = KNOWN[register_corpus("sib200", str(tmp_path / folder))]
        assert list(corpus.read(DiskFolder(tmp_path / folder), language, split)) == [expected]


def test_without_the_files_it_is_said_what_was_looked_for(tmp_path):
    with says(DataError, "sib200: ", "isogloss fetch sib200", "--data hub"):
        register_corpus("sib200", str(tmp_path))
    (tmp_path / "sib200/swh_Latn").mkdir(parents=True)
    (tmp_path / "sib200/swh_Latn/dev.tsv").write_text(LAYOUTS["sib200"][1], encoding="utf-8")
    corpus = KNOWN[register_corpus("sib200", str(tmp_path))]
    with says(DataError, "isogloss fetch sib200 --language sw --to DATA"):
        corpus.files(DiskFolder(tmp_path), "sw", "test")


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_the_real_files_are_read_whole(name, tmp_path):
    if not DATA.is_dir():
        pytest.skip("the real corpora are not here")
    for place, real_place in PLACES.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).symlink_to(DATA / real_place)
    folder = str(DATA if (DATA / name).is_dir() else tmp_path)
    splits = list(inspect_splits(KNOWN[register_corpus(name, folder)], folder))
    assert not [error for split in splits for error in split.errors]
    assert sum(split.examples for split in splits) == READ[name]


@pytest.mark.data
@pytest.mark.slow
def test_the_real_questions_of_belebele_are_read_whole(tmp_path):
    """The copy at hand has a passage a line with its questions. Official files have a question a line."""
    if not (DATA / "belebele").is_dir():
        pytest.skip("the real corpora are not here")
    places = dict.fromkeys(("eng_Latn", "deu_Latn"), 0)
    (tmp_path / "belebele").mkdir()
    for language in places:
        with gzip.open(DATA / f"belebele/{language}.jsonl.gz", "rt", encoding="utf-8") as file:
            lines = [line for item in file for line in _official(json.loads(item))]
        (tmp_path / f"belebele/{language}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    corpus = KNOWN[register_corpus("belebele", str(tmp_path))]
    english, german = inspect_splits(corpus, str(tmp_path))
    for first_item in (english, german):
        assert (first_item.examples, first_item.repeated, first_item.errors) == (900, 0, ())
        assert first_item.labels == {"0": 206, "1": 251, "2": 246, "3": 197}
    examples = [
        list(corpus.read(DiskFolder(tmp_path), language, "test"))
        for language in (english.language, german.language)
    ]
    both_parts = match_by_id(*examples, names=("en", "de"))
    assert len(both_parts) == 900
    assert all(len(left.options) == len(right.options) == 4 for left, right in both_parts)


def _official(passage):
    """Yield a line for each question of a passage, as the official files have it."""
    for index, item in enumerate(passage["items"], start=1):
        right = [answer["correct"] for answer in item["answers"]].index(True)
        yield json.dumps(
            {
                "link": passage["metadata"]["extra"]["url"],
                "question_number": index,
                "flores_passage": passage["text"],
                "question": item["question"],
                **{f"mc_answer{n}": answer["text"] for n, answer in enumerate(item["answers"], start=1)},
                "correct_answer_num": str(right + 1),
            }
        )
