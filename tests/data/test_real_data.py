"""The real corpora, each read whole once: counts are those that its SOURCE.md states."""

import re
from collections import Counter
from pathlib import Path

import pytest

from isogloss.core.errors import DataError
from isogloss.data import CORPORA
from isogloss.data.bible import Bible
from isogloss.data.bitext import Bitext
from isogloss.data.conllu import read_conllu, write_conllu
from isogloss.data.corpora import SPLITS
from isogloss.data.joined import joined
from isogloss.data.mixed import mixed_pairs, mixed_questions
from isogloss.data.mlqa import Mlqa
from isogloss.data.parallel_files import THREE_LETTERS
from isogloss.data.parallel_table import languages_in
from isogloss.data.ud import Ud
from isogloss.data.xnli import LABELS

pytestmark = pytest.mark.data


def source(folder, corpus):
    return Path(folder.path, corpus, "SOURCE.md").read_text()


def rows(text):
    """Give the cells of the rows of all tables of a Markdown text."""
    return [
        [part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if "|" in line
    ]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["ud", "ud-extra", "ud-legacy", "ud-pud"])
def test_treebanks_have_their_sentences_and_are_written_back_byte_for_byte(real_data, place):
    read = 0
    for treebank, name, sentences, words, *_ in (
        row for row in rows(source(real_data, place)) if len(row) > 3
    ):
        files = real_data.find([f"{place}/{treebank}/{name}"]) if name.endswith(".conllu") else []
        for file in files:
            parsed = list(read_conllu(file))
            assert (len(parsed), sum(len(one.words) for one in parsed)) == (int(sentences), int(words)), name
            assert "".join(line + "\n" for line in write_conllu(parsed, "ud")) == "".join(file.read()), name
            assert len({one.id for one in parsed}) == len(parsed)
            read += 1
    assert read == len(real_data.find([f"{place}/*/*.conllu"])) > 0


def test_treebanks_are_found_by_language(real_data):
    assert sum(1 for _ in Ud().read(real_data, "vi", "dev")) == 1123
    assert sum(1 for _ in Ud(treebanks=(("fr", "Sequoia"),)).read(real_data, "fr", "dev")) == 412
    assert sum(1 for _ in Ud(treebanks=(("hi", "PUD"),)).read(real_data, "hi", "test")) == 1000
    older = Ud(treebanks=(("vi", "ud-legacy/v2.5_UD_Vietnamese-VTB"),))
    assert sum(1 for _ in older.read(real_data, "vi", "dev")) == 800


def test_parallel_treebanks_share_their_ids(real_data):
    ids = [
        [one.id for one in Ud(treebanks=((code, "PUD"),)).read(real_data, code, "test")]
        for code in ("en", "th")
    ]
    assert ids[0] == ids[1]


@pytest.mark.slow
def test_udpos_has_its_sentences_and_words(real_data):
    for language, *cells in (row for row in rows(source(real_data, "udpos-xtreme")) if len(row[0]) == 2):
        for split, cell in zip(SPLITS, cells, strict=True):
            if not real_data.find([f"udpos-xtreme/{split}-{language}.tsv"]):
                continue
            read = list(CORPORA["udpos"].read(real_data, language, split))
            assert f"{len(read)} / {sum(len(one.words) for one in read)}" == cell, (language, split)


@pytest.mark.slow
def test_wikiann_has_its_sentences(real_data):
    stated = re.findall(r"\b([a-z]{2}) (\d+)/(\d+)(?:/(\d+))?", source(real_data, "panx"))
    assert len(stated) == 20
    for language, *counts in stated:
        for split, count in zip(SPLITS, counts, strict=True):
            if real_data.find([f"panx/{split}-{language}.tsv"]):
                assert sum(1 for _ in CORPORA["wikiann"].read(real_data, language, split)) == int(count)


@pytest.mark.slow
@pytest.mark.parametrize(("split", "count"), [("dev", 2490), ("test", 5010)])
def test_xnli_has_its_pairs_in_fifteen_languages(real_data, split, count):
    xnli = CORPORA["xnli"]
    languages = ["ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh"]
    gold = [pair.label for pair in xnli.read(real_data, "en", split)]
    assert Counter(gold) == dict.fromkeys(set(LABELS.values()), count // 3)
    for language in languages:
        pairs = list(xnli.read(real_data, language, split))
        assert [pair.label for pair in pairs] == gold
        assert [pair.id for pair in pairs] == [str(number) for number in range(1, count + 1)]


@pytest.mark.parametrize("language", ["ar", "en", "sw", "zh"])
def test_xtreme_s_layout_of_xnli_gives_the_same_pairs(real_data, language):
    from isogloss.data.sentence_pairs import read_pairs

    (file,) = real_data.find([f"xnli/xtreme-format/dev-{language}.tsv"])
    assert list(read_pairs(file, language, LABELS)) == list(CORPORA["xnli"].read(real_data, language, "dev"))


def test_mrpc_has_its_pairs(real_data):
    (stated,) = re.findall(r"(\d+) train / (\d+) val / (\d+) test", source(real_data, "mrpc"))
    for split, count in zip(SPLITS, stated, strict=True):
        assert sum(1 for _ in CORPORA["mrpc"].read(real_data, "en", split)) == int(count)


def test_english_inference_corpora_have_their_pairs(real_data):
    stated = dict(
        re.findall(r"^\| ([a-z]+).*\| ([0-9 +/]+) \|$", source(real_data, "nli-train-en"), re.MULTILINE)
    )
    places = {"snli": ("snli", SPLITS[1:]), "cad": ("cad-nli", SPLITS), "sick": ("sick", SPLITS)}
    assert set(stated) == set(places)
    for place, (name, splits) in places.items():
        for split, count in zip(splits, re.findall(r"\d+", stated[place]), strict=True):
            pairs = list(CORPORA[name].read(real_data, "en", split))
            assert len({pair.id for pair in pairs}) == len(pairs) == int(count), (name, split)
    assert CORPORA["snli"].left_out(real_data, "en", "dev") == 0


def test_joined_corpora_train_on_what_there_is(real_data):
    whole = joined("snli[dev,test]+cad-nli+sick", CORPORA.__getitem__)
    for split, count in (("train", 9842 + 9824 + 8330 + 4500), ("dev", 1000 + 500), ("test", 2000 + 4927)):
        ids = [pair.id for pair in whole.read(real_data, "en", split)]
        assert len(set(ids)) == len(ids) == count


def test_pawsx_has_its_pairs(real_data):
    tests = {"de": 2000, "zh": 2000, "en": 1994, "es": 1994, "fr": 1996, "ja": 1997, "ko": 1997}
    for language, count in tests.items():
        for split, expected in (("dev", 2000), ("test", count)):
            pairs = list(CORPORA["pawsx"].read(real_data, language, split))
            assert len({pair.id for pair in pairs}) == expected


def test_parallel_test_sets_can_be_mixed(real_data):
    def both(corpus, language):
        return [list(CORPORA[corpus].read(real_data, code, "test")) for code in (language, "en")]

    assert len(mixed_questions(*both("squad", "ar"))) == 1190
    assert len(mixed_pairs(*both("pawsx", "de"), partial=True)) == 1994 - 8
    with pytest.raises(DataError, match="6 of the target are not in the source"):
        mixed_pairs(*both("pawsx", "de"))


@pytest.mark.slow
@pytest.mark.parametrize(("split", "count"), [("train", 87_599), ("dev", 10_570)])
def test_squad_has_its_questions(real_data, split, count):
    assert sum(1 for _ in CORPORA["squad"].read(real_data, "en", split)) == count


def test_xquad_has_its_questions(real_data):
    languages = ["ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh"]
    ids = [[one.id for one in CORPORA["squad"].read(real_data, language, "test")] for language in languages]
    assert all(len(one) == 1190 and set(one) == set(ids[0]) for one in ids)


def test_mlqa_has_its_questions(real_data):
    stated = {"ar": 517, "de": 512, "en": 1148, "es": 500, "hi": 507, "vi": 511, "zh": 504}
    ids = {}
    for language, count in stated.items():
        ids[language] = {one.id for one in Mlqa().read(real_data, language, "dev")}
        assert len(ids[language]) == count
    crossed = {one.id for one in Mlqa(questions="de").read(real_data, "en", "dev")}
    assert crossed == ids["de"] & ids["en"]


def test_tydiqa_has_its_questions(real_data):
    stated = {"ar": 921, "bn": 113, "en": 440, "fi": 782, "id": 565, "ru": 812}
    for language, count in stated.items():
        assert sum(1 for _ in CORPORA["tydiqa"].read(real_data, language, "dev")) == count
    assert sum(1 for _ in CORPORA["tydiqa"].read(real_data, "en", "train")) == 3696


@pytest.mark.slow
def test_raw_text_has_its_lines_and_documents(real_data):
    table = [row for row in rows(source(real_data, "rawtext")) if len(row) == 9 and len(row[0]) == 2]
    stated = {(row[0], row[1]): (int(row[5]), int(row[4])) for row in table}
    for language in sorted({language for language, _ in stated}):
        files = real_data.find([f"rawtext/{language}/*.txt"])
        names = [Path(file.plain_name).stem for file in files]
        lines = list(CORPORA["rawtext"].read(real_data, language, "train"))
        expected = [sum(stated[language, name][part] for name in names) for part in (0, 1)]
        assert [len(lines), lines[-1].document + 1] == expected, language


@pytest.mark.slow
def test_bible_has_its_verses(real_data):
    stated = {"en": 31090, "de": 31097, "es": 31081, "zh": 31016, "fr": 29907, "ru": 26058}
    stated |= {"vi": 30526, "te": 29971, "sw": 7767}
    (table,) = real_data.find(["bible/*.tsv"])
    assert set(languages_in(table)) == set(stated)
    for language, count in stated.items():
        ids = [verse.id for split in SPLITS for verse in Bible().read(real_data, language, split)]
        assert len(ids) == len(set(ids)) == count


def test_bible_holds_out_enough_verses_for_retrieval(real_data):
    assert 1100 < sum(1 for _ in Bitext(collection="bible").read(real_data, "en-vi", "test")) < 1400


@pytest.mark.slow
def test_tico19_is_complete_in_all_languages(real_data):
    (table,) = real_data.find(["tico19/*.tsv"])
    languages = languages_in(table)
    assert len(languages) == 13
    for language in languages[1:]:
        assert sum(1 for _ in Bitext(collection="tico19").read(real_data, f"en-{language}", "test")) == 3071


def test_tatoeba_has_its_pairs(real_data):
    fewer = {"ka": 746, "ml": 687, "th": 548, "sw": 390, "ta": 307, "te": 234}
    languages = {Path(file.plain_name).name[8:11] for file in real_data.find(["tatoeba/*-eng.eng"])}
    codes = {code for code, three in THREE_LETTERS.items() if three in languages}
    assert len(codes) == len(languages) == 34
    for language in codes:
        pairs = list(Bitext(collection="tatoeba").read(real_data, f"{language}-en", "test"))
        assert len(pairs) == fewer.get(language, 1000), language


def test_gold_alignments_are_read(real_data):
    english = list(Bitext(collection="word-alignment").read(real_data, "en-fr", "test"))
    assert (len(english), sum(1 for pair in english if pair.possible)) == (447, 429)
    assert sum(1 for _ in Bitext(collection="word-alignment").read(real_data, "zh-en", "test")) == 450
