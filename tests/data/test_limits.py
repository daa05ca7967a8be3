"""Limits on examples of a split, drawn at random because its order may be meaningful."""

import random
from dataclasses import replace

import pytest

from isogloss.data.examples import LabelledText, limit_examples
from isogloss.data.sources import Sources

SORTED = [LabelledText(id=str(n), text=f"t{n}", label="pos" if n < 100 else "neg") for n in range(200)]


def test_a_limit_of_a_sorted_split_has_every_label_about_as_often_as_the_split():
    labels = [example.label for example in limit_examples(SORTED, 100)]
    assert 35 <= labels.count("pos") <= 65


def test_the_order_of_the_split_stays():
    assert [item for item in SORTED if item in limit_examples(SORTED, 50)] == limit_examples(SORTED, 50)


def test_a_smaller_limit_is_part_of_a_larger_one():
    assert (
        set(limit_examples(SORTED, 20)) < set(limit_examples(SORTED, 60)) < set(limit_examples(SORTED, 200))
    )


@pytest.mark.parametrize("maximum", [200, 201, 10_000])
def test_a_limit_of_as_many_as_there_are_or_more_is_all(maximum):
    assert limit_examples(SORTED, maximum) == SORTED


def test_an_empty_split_stays_empty():
    assert limit_examples([], 3) == []


def test_parallel_examples_are_the_same_whatever_their_order_and_whichever_are_missing():
    other_item = [replace(example, text="u") for example in SORTED if example.id != "0"]
    random.Random(0).shuffle(other_item)
    chosen_ids = {example.id for example in limit_examples(SORTED, 50)}
    assert len(chosen_ids & {example.id for example in limit_examples(other_item, 50)}) >= 49


def test_examples_beyond_the_limit_are_not_held():
    alive: set[int] = set()
    most_counts = []

    class Counted(LabelledText):
        __slots__ = ()

        def __del__(self):
            alive.discard(int(self.id))

    def read():
        for index in range(500):
            alive.add(index)
            most_counts.append(len(alive))
            yield Counted(id=str(index), text="", label="")

    assert len(limit_examples(read(), 10)) == 10
    assert max(most_counts) < 20


@pytest.fixture
def sorted_corpus(tmp_path):
    """A described corpus of two labels, sorted by them."""
    rows = "".join(f"{item.text},{item.label}\n" for item in SORTED)
    (tmp_path / "en.train.csv").write_text(f"text,label\n{rows}", encoding="utf-8")
    (tmp_path / "by-label.toml").write_text(
        'kind = "text"\nfiles = "{language}.{split}.csv"\nlanguages = ["en"]\n'
    )
    from isogloss.data.corpora.own import register_corpus

    return register_corpus(str(tmp_path / "by-label.toml"), "")


def test_files_are_drawn_from(sorted_corpus):
    sources = Sources()
    assert {example.label for example in sources.examples(sorted_corpus, "en", "train", examples=20)} == {
        "pos",
        "neg",
    }
    whole_examples = sources.examples(sorted_corpus, "en", "train")
    assert sources.examples(sorted_corpus, "en", "train", examples=20) == limit_examples(whole_examples, 20)


def test_corpora_read_as_one_are_drawn_from_as_a_whole(put_files, tmp_path):
    header = "sentence1\tsentence2\tgold_label\n"
    rows = "".join(f"a{n}\tb{n}\tneutral\n" for n in range(100))
    sick = "pair_ID\tsentence_A\tsentence_B\tentailment_judgment\n"
    more = "".join(f"{n}\tc{n}\td{n}\tNEUTRAL\n" for n in range(100))
    put_files({"snli/snli_dev.tsv": header + rows, "sick/SICK_trial.txt": sick + more})
    examples = Sources(str(tmp_path)).examples("snli+sick", "en", "dev", examples=40)
    assert 10 <= sum(example.id.startswith("sick") for example in examples) <= 30


def test_of_the_built_in_languages_a_limit_takes_the_first():
    sources = Sources()
    assert sources.examples("pawsx", "qaa", "dev", examples=5) == sources.examples("pawsx", "qaa", "dev")[:5]


def test_corpora_of_the_built_in_languages_read_as_one_are_drawn_from_as_a_whole():
    examples = Sources().examples("bitext[dev,test]", "qaa-qab", "train", examples=40)
    assert {example.id.split(":")[1] for example in examples} == {"dev", "test"}


def test_a_fingerprint_says_how_a_limit_chooses_of_files_alone(sorted_corpus):
    sources = Sources()
    assert sources.fingerprint(sorted_corpus, "en", "train", examples=20) != sources.fingerprint(
        sorted_corpus, "en", "train"
    )
    built_in = [sources.fingerprint("pawsx", "qaa", "dev", examples=maximum) for maximum in (0, 20)]
    assert len(set(built_in)) == 1
