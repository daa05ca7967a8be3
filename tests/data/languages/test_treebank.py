import pytest

from isogloss.data.languages import LANGUAGES, Translator, examples

RELATIONS = {
    "root", "nsubj", "obj", "obl", "nmod", "case", "det", "nummod", "amod", "acl:relcl", "cc", "conj",
    "advcl", "mark", "advmod", "aux", "punct", "flat",
}  # fmt: skip
LEAVES = {"det", "case", "punct", "cc", "mark", "aux", "nummod", "amod", "flat"}


def dev(corpus, code):
    return list(examples(corpus, code, "dev"))


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_tree_has_one_root_and_no_cycle(code):
    for sentence in dev("ud", code):
        heads = sentence.heads
        assert heads.count(0) == 1 and all(0 <= head <= len(heads) for head in heads)
        assert [relation == "root" for relation in sentence.relations] == [head == 0 for head in heads]
        reached = set(range(len(heads) + 1))
        for _ in heads:  # After as many steps as there are words, everything has come to the root.
            reached = {0 if place == 0 else heads[place - 1] for place in reached}
        assert reached == {0}


@pytest.mark.parametrize("code", LANGUAGES)
def test_function_words_are_leaves_and_relations_universal(code):
    for sentence in dev("ud", code):
        assert set(sentence.relations) <= RELATIONS
        for place, relation in enumerate(sentence.relations, start=1):
            assert relation not in LEAVES or place not in sentence.heads


@pytest.mark.parametrize("code", LANGUAGES)
def test_lines_are_conllu_that_agrees_with_the_fields_and_spells_the_text(code):
    for sentence in dev("ud", code):
        rows = [line.split("\t") for line in sentence.lines if not line.startswith("#")]
        assert sentence.lines[0] == f"# sent_id = {sentence.id}"
        assert all(len(row) == 10 and all(row) for row in rows)
        assert tuple(row[0] for row in rows) == tuple(str(n) for n in range(1, len(rows) + 1))
        columns = list(zip(*rows, strict=True))
        assert (columns[1], columns[3], columns[7]) == (sentence.words, sentence.tags, sentence.relations)
        assert tuple(map(int, columns[6])) == sentence.heads
        text = "".join(row[1] + ("" if row[9] == "SpaceAfter=No" else " ") for row in rows).rstrip()
        assert sentence.lines[1] == f"# text = {text}"
        for row in rows:
            names = [feature.split("=")[0] for feature in row[5].split("|") if row[5] != "_"]
            assert names == sorted(set(names))


def test_sentences_are_three_to_25_words_about_nine_on_average():
    for code in LANGUAGES:
        lengths = [len(sentence.words) for sentence in dev("ud", code)]
        assert min(lengths) >= 3 and max(lengths) <= 25
        assert 8 <= sum(lengths) / len(lengths) <= 12


@pytest.mark.parametrize("code", LANGUAGES)
def test_entity_tags_are_valid_bio_of_all_kinds(code):
    seen = set()
    for sentence in dev("wikiann", code):
        assert len(sentence.tags) == len(sentence.words)
        before = "O"
        for tag in sentence.tags:
            assert not tag.startswith("I-") or before[2:] == tag[2:]
            before = tag
        seen.update(sentence.tags)
    assert seen == {"O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"}


@pytest.mark.parametrize("code", LANGUAGES)
def test_dev_sets_say_the_same_in_every_language(code):
    translator = Translator("qaa", code)
    for corpus in ("ud", "wikiann"):
        for ours, theirs in zip(dev(corpus, "qaa"), dev(corpus, code), strict=True):
            assert ours.id == theirs.id
            assert translator.translate_words(ours.words)[0] == theirs.words
