"""Translated examples keep ids, order and labels; answers are found again or named as lost."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice, takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError
from isogloss.data.examples import (
    Choice,
    Example,
    ParsedSentence,
    Question,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
    example_line,
)
from isogloss.data.languages import BuiltInTranslator, examples, translate_corpus, words_of
from isogloss.data.projection.label_projection import (
    Projection,
    Translated,
    texts_of,
    translate_examples,
    translate_inputs,
)
from isogloss.data.projection.words import (
    MARKS,
    add_marks,
    locate_by_links,
    locate_by_text,
    remove_marks,
    span_links,
)

GERMAN = {"the": "das", "old": "alte", "town": "Städtchen", "lies": "liegt", "where": "wo", "there": "dort"}


def word_by_word(texts: Iterable[str]) -> Iterator[Translated]:
    """Translate each word; keep other text, such as brackets."""
    for text in texts:
        words = (GERMAN.get(word, word) for word in text.replace("[", "[ ").replace("]", " ]").split())
        yield Translated(" ".join(words))


def without_marks(texts: Iterable[str]) -> Iterator[Translated]:
    for text in texts:
        yield from word_by_word([text.translate(str.maketrans("", "", "[]<>/“”"))])


def built_in(source: str, target: str, noise: float = 0.0):
    def translate(texts: Iterable[str]) -> Iterator[Translated]:
        translator = BuiltInTranslator(source, target, noise=noise)
        for text in texts:
            whole, links = translator.translate_linked(text)
            yield Translated(whole, words=words_of(whole, target), links=links)

    return translate


def question(answer: str = "old town", passage: str = "there lies the old town .") -> Question:
    return Question(
        id="q", passage=passage, question="where lies the town", answers=((passage.index(answer), answer),)
    )


def test_every_kind_of_example_keeps_its_id_label_and_place() -> None:
    given: list[Example] = [
        SentencePair(id="1", first="the town", second="the old town", label="entailment"),
        Choice(id="2", context="the town", options=("the old town", "town"), label=1, prompt="town"),
        Choice(id="2b", context="the town", question="where lies the town", options=("town", "old"), label=0),
        question(),
        TextLine(id="3", text="the town", document=4),
        TaggedSentence(id="4", words=("the", "town"), tags=("DET", "NOUN")),
        Translation(id="5", first="the town", second="la ville", links=((0, 0),)),
        ParsedSentence(id="6", words=("town",), tags=("NOUN",), heads=(0,), relations=("root",)),
    ]
    found = translate_examples(given, word_by_word)
    assert found.lost == ()
    assert found.examples == [
        SentencePair(id="1", first="das Städtchen", second="das alte Städtchen", label="entailment"),
        Choice(
            id="2",
            context="das Städtchen",
            options=("das alte Städtchen", "Städtchen"),
            label=1,
            prompt="town",
        ),
        Choice(
            id="2b",
            context="das Städtchen",
            question="wo liegt das Städtchen",
            options=("Städtchen", "alte"),
            label=0,
        ),
        Question(
            id="q",
            passage="dort liegt das alte Städtchen .",
            question="wo liegt das Städtchen",
            answers=((15, "alte Städtchen"),),
        ),
        TextLine(id="3", text="das Städtchen", document=4),
        TaggedSentence(id="4", words=("das", "Städtchen"), tags=()),
        Translation(id="5", first="the town", second="das Städtchen"),
        TaggedSentence(id="6", words=("Städtchen",), tags=()),
    ]


def test_words_are_translated_as_running_text_and_parted_again() -> None:
    asked = []

    def translate(texts: Iterable[str]) -> Iterator[Translated]:
        for text in texts:
            asked.append(text)
            yield Translated("¡La OMS, no (sí)!")

    tagged = TaggedSentence(id="1", words=("No", ",", "not", '"', "it", '"', "!"), tags=())
    nothing = {"tags": (), "heads": (), "relations": ()}
    parsed = ParsedSentence(
        id="2", words=("de", "el"), lines=("# text = Del ...", "# sent_id = 2"), **nothing
    )
    found = translate_examples([tagged, parsed, replace(parsed, lines=())], translate).examples
    assert asked == ['No, not "it"!', "Del ...", "de el"]
    assert {one.words for one in found} == {("¡", "La", "OMS", ",", "no", "(", "sí", ")", "!")}


def test_an_answer_whose_marks_are_lost_is_counted_and_left_out() -> None:
    how = Projection(answers=("marks",))
    kept = SentencePair(id="p", first="a", second="b", label="x")
    found = translate_examples([question(), kept], without_marks, projection=how)
    assert found.lost == ("q",)
    assert [one.id for one in found.examples] == ["p"]


def test_the_next_way_is_tried_on_what_the_first_one_lost() -> None:
    (found,) = translate_examples([question()], without_marks).examples
    assert isinstance(found, Question)
    assert found.answers == ((15, "alte Städtchen"),)


def test_word_links_of_an_aligner_find_answers() -> None:
    how = Projection(
        answers=("alignment",),
        find_links=lambda pairs: [[(n, n) for n in range(len(one.first.split()))] for one in pairs],
    )
    (found,) = translate_examples([question()], word_by_word, projection=how).examples
    assert isinstance(found, Question)
    assert found.answers == ((15, "alte Städtchen"),)


def test_a_question_says_the_language_of_its_new_passage_only_if_it_said_one() -> None:
    from dataclasses import replace

    given = [question(), replace(question(), id="r", language="en")]
    found = translate_examples(given, word_by_word, language="de").examples
    assert [one.language for one in found if isinstance(one, Question)] == ["", "de"]


@pytest.mark.parametrize("target", ["qab", "qaf"])
def test_the_built_in_translators_own_links_find_what_the_built_in_corpora_find(target: str) -> None:
    given = list(islice(examples("squad", "qaa", "dev"), 60))
    how = Projection(answers=("links",))
    found = translate_examples(given, built_in("qaa", target, 0.05), projection=how)
    asked = {one.id for one in given}
    theirs = takewhile(
        lambda one: one.id in asked, translate_corpus("squad", f"qaa-{target}", "dev", noise=0.05)
    )
    assert found.examples == list(theirs)
    assert found.lost
    assert {*found.lost, *(one.id for one in found.examples)} == asked


@pytest.mark.parametrize("target", ["qab", "qah"])
def test_projected_tags_are_those_that_the_translation_says(target: str) -> None:
    """The built-in corpora tag a translation by what it means: the oracle of projection."""
    theirs = {one.id: one for one in islice(translate_corpus("ud", f"qaa-{target}", "dev"), 200)}
    given = list(islice(examples("ud", "qaa", "dev"), 200))
    found = translate_examples(given, built_in("qaa", target), projection=Projection(tags="links"))
    pairs = [
        (tag, known)
        for one in found.examples
        for tag, known in zip(one.tags, theirs[one.id].tags, strict=True)
    ]
    tagged = [tag == known for tag, known in pairs if tag]
    assert len(found.examples) == 200
    assert all(tagged)
    assert (
        len(tagged) / len(pairs) > 0.75
    )  # the rest are adpositions and the like, which nothing is linked to


@pytest.mark.parametrize("target", ["qab", "qah"])
def test_projected_entities_are_those_that_the_translation_says(target: str) -> None:
    given = list(islice(examples("wikiann", "qaa", "dev"), 200))
    found = translate_examples(given, built_in("qaa", target), projection=Projection(tags="links"))
    assert found.examples == list(islice(translate_corpus("wikiann", f"qaa-{target}", "dev"), 200))
    noisy = translate_examples(given, built_in("qaa", target, 0.3), projection=Projection(tags="links"))
    assert {*noisy.lost, *(one.id for one in noisy.examples)} == {one.id for one in given}
    assert noisy.lost  # an entity of which no word is left


def test_an_aligner_is_asked_about_the_words_that_are_tagged() -> None:
    asked: list[Translation] = []

    def find_links(pairs):
        asked.extend(pairs)
        return [[(0, 0), (2, 2)] for _ in pairs]

    given = TaggedSentence(id="1", words=("the", "old", "town"), tags=("DET", "ADJ", "NOUN"))
    how = Projection(tags="alignment", find_links=find_links)
    (found,) = translate_examples([given], word_by_word, projection=how).examples
    assert found == TaggedSentence(id="1", words=("das", "alte", "Städtchen"), tags=("DET", "", "NOUN"))
    assert asked[0].words == (given.words, found.words)


def test_sentences_keep_the_links_of_the_translator_when_asked() -> None:
    given = list(islice(examples("ud", "qaa", "dev"), 50))
    plain = translate_examples(given, built_in("qaa", "qad", 0.1)).examples
    found = translate_examples(given, built_in("qaa", "qad", 0.1), projection=Projection(links="links"))
    assert found.examples == plain and not found.lost  # Links do not make another sentence of it.
    assert [example_line(one) for one in plain] == [
        example_line(replace(one, links=None)) for one in found.examples
    ]
    translator = BuiltInTranslator("qaa", "qad", noise=0.1)
    for one, other in zip(given, found.examples, strict=True):
        words, gold = translator.translate_words(one.words)
        assert (other.words, other.tags) == (words, ())
        assert {*other.links} <= {*gold} and len(other.links) > len(gold) / 2  # not adpositions and case
    tagged = translate_examples(
        given, built_in("qaa", "qad", 0.1), projection=Projection(tags="links", links="links")
    )
    assert [one.links for one in tagged.examples] == [one.links for one in found.examples]
    assert all(any(one.tags) for one in tagged.examples)


def test_links_of_a_back_translation_lead_from_the_translation() -> None:
    """After both translations without noise, a word becomes the original word again."""
    given, how = list(islice(examples("ud", "qaa", "dev"), 50)), Projection(links="links")
    there = translate_examples(given, built_in("qaa", "qad"), projection=how).examples
    back = translate_examples(there, built_in("qad", "qaa"), projection=how).examples
    for one, translation, again in zip(given, there, back, strict=True):
        round_trip = {(a, c) for a, b in translation.links for other, c in again.links if other == b}
        assert again.words == one.words
        assert round_trip >= {(n, n) for n, _ in round_trip} and len(round_trip) > len(one.words) / 2


def test_an_aligner_is_asked_once_for_each_way() -> None:
    asked = []

    def find_links(pairs):
        asked.append(len(pairs))
        return [[(0, 1), (1, 0)] for _ in pairs]

    given = TaggedSentence(id="1", words=("old", "town"), tags=("ADJ", "NOUN"))
    how = Projection(tags="alignment", links="alignment", find_links=find_links)
    (found,) = translate_examples([given], word_by_word, projection=how).examples
    assert (found.links, found.tags, asked) == (((0, 1), (1, 0)), ("NOUN", "ADJ"), [1])


def test_sentences_without_a_tag_to_carry_stay_untagged_and_others_are_lost() -> None:
    how = Projection(tags="alignment", find_links=lambda pairs: [[] for _ in pairs])
    bare = TaggedSentence(id="1", words=("the", "town"), tags=())
    tagged = TaggedSentence(id="2", words=("the", "town"), tags=("DET", "NOUN"))
    found = translate_examples([bare, tagged], word_by_word, projection=how)
    assert found.examples == [TaggedSentence(id="1", words=("das", "Städtchen"), tags=())]
    assert found.lost == ("2",)


def test_translating_back_is_translating_twice() -> None:
    given = list(islice(examples("xnli", "qaa", "dev"), 50))
    there = translate_examples(given, built_in("qaa", "qad")).examples
    back = translate_examples(there, built_in("qad", "qaa")).examples
    assert back == list(islice(translate_corpus("xnli", "qaa-qad-qaa", "dev"), 50))


def test_ways_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="'marks'"):
        Projection(answers=("mark",))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="aligner"):
        Projection(answers=("alignment",))
    with pytest.raises(ConfigError, match="'links'"):
        Projection(tags="link")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="'links'"):
        Projection(links="link")  # type: ignore[arg-type]
    for name in ("tags", "links"):
        with pytest.raises(ConfigError, match="aligner"):
            Projection(**{name: "alignment"})


def test_inputs_are_translated_as_they_come_and_what_is_said_again_once():
    asked, read = [], []

    def translate(texts):
        for text in texts:
            asked.append(text)
            yield Translated(text.upper())

    passage = "Anna lives in Rome."
    examples = [
        Question(id="1", passage=passage, question="Where?", answers=((0, "Anna"),), language="en"),
        Question(id="2", passage=passage, question="Who?", answers=((0, "Anna"),), repaired="it was"),
        SentencePair(id="3", first="a", second="a", label="x"),
        TaggedSentence(id="4", words=("a", "b"), tags=("X", "Y")),
    ]
    found = list(translate_inputs((read.append(one.id) or one for one in examples), translate))
    assert asked == ["Where?", passage, "Who?", "a", "a b"]
    first, second, pair, words = found
    assert (first.id, first.question, first.passage) == ("1", "WHERE?", passage.upper())
    assert (second.question, second.passage, second.answers) == ("WHO?", passage.upper(), ())
    assert first.language == second.repaired == ""
    assert (pair.first, pair.second) == ("A", "A")
    assert (words.words, words.tags) == (("A", "B"), ())
    asked.clear(), read.clear()
    next(translate_inputs((read.append(one.id) or one for one in examples), translate))
    assert (asked, read) == (["Where?", passage], ["1"])
    assert [list(texts_of(one)) for one in examples[2:]] == [["a", "a"], ["a b"]]


def test_without_a_way_questions_are_kept_and_no_text_depends_on_their_answers() -> None:
    given = [question(), replace(question(), id="unanswered", answers=())]
    found = translate_examples(given, word_by_word, projection=Projection(answers=()))
    assert found.lost == ()
    assert [one.answers for one in found.examples] == [(), ()]
    assert found.examples[0] == replace(found.examples[1], id=found.examples[0].id)
    assert found.examples[0].passage == next(iter(word_by_word([question().passage]))).text


BRACKETS, TAGS, QUOTES = MARKS
TEXTS = st.text(alphabet="ab éдж中文ไท .,", min_size=1, max_size=30)


ANSWERS = TEXTS.map(str.strip).filter(bool)


@given(TEXTS, ANSWERS, TEXTS, st.sampled_from(MARKS))
def test_marks_taken_out_again_leave_the_answer_at_its_offset(before, answer, after, mark) -> None:
    text = add_marks(before + answer + after, (len(before), answer), mark)
    assert text is not None
    found = remove_marks(text, mark)
    assert found is not None
    passage, (start, inner) = found
    assert inner == answer
    assert passage[start : start + len(inner)] == inner
    assert passage.split() == (before + answer + after).split()


@pytest.mark.parametrize(
    ("translation", "mark", "passage", "answer"),
    [
        ("vivió en [Roma] mucho", BRACKETS, "vivió en Roma mucho", (9, "Roma")),
        ("vivió en [ Roma ], mucho", BRACKETS, "vivió en Roma, mucho", (9, "Roma")),
        ("他住在【罗马】很久", BRACKETS, "他住在罗马很久", (3, "罗马")),
        ("à < b >Rome</ b >.", TAGS, "à Rome.", (2, "Rome")),
        ("il dit « Rome » hier", QUOTES, "il dit Rome hier", (7, "Rome")),
        ("er sagt „Rom“ gern", QUOTES, "er sagt Rom gern", (8, "Rom")),
    ],
)
def test_marks_are_known_again_as_a_translation_writes_them(translation, mark, passage, answer) -> None:
    assert remove_marks(translation, mark) == (passage, answer)


@pytest.mark.parametrize(
    "text", ["no mark", "[ ]", "only [one", "]wrong[", "[two] [pairs]", "[three [marks]"]
)
def test_marks_that_are_not_one_pair_round_something_are_lost(text: str) -> None:
    assert remove_marks(text, BRACKETS) is None


def test_a_passage_with_marks_of_its_own_is_not_marked_with_them() -> None:
    assert add_marks("see [1] there", (8, "there"), BRACKETS) is None
    assert add_marks("see [1] there", (8, "there"), TAGS) == "see [1] <b>there</b>"


def test_links_lead_from_the_first_to_the_last_linked_word() -> None:
    text, translation = "the old town lies here", "hier liegt die alte Stadt."
    links = span_links(text, translation, [(0, 2), (1, 3), (2, 4), (3, 1), (4, 0)])
    assert locate_by_links((4, "old town"), translation, links) == (15, "alte Stadt")


def test_a_foreign_word_within_the_linked_ones_loses_the_answer() -> None:
    text, translation = "the old town lies", "alte liegt Stadt"
    assert (
        locate_by_links((4, "old town"), translation, span_links(text, translation, [(1, 0), (2, 2), (3, 1)]))
        is None
    )
    assert locate_by_links((4, "old"), translation, []) is None


@pytest.mark.parametrize(
    ("answer", "translation", "found"),
    [
        ("rome.", "In Rome it rained", (3, "Rome")),
        ("罗马", "他住在罗马很久", (3, "罗马")),
        ("art", "the party saw Art there", (14, "Art")),
        ("1990", "1990 and 1990", None),
        ("Paris", "Rome", None),
        (" . ", "a . b", None),
    ],
)
def test_an_answer_translated_alone_must_stand_exactly_once(answer, translation, found) -> None:
    assert locate_by_text(answer, translation) == found
