"""Translated examples keep ids, order and labels. Answers are found again or named as lost."""

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
)
from isogloss.data.projection.example_texts import Translated, texts_of, translate_inputs
from isogloss.data.projection.words import locate_by_links
from isogloss.features.built_in_languages import BuiltInTranslator, examples, translate_corpus, words_of
from isogloss.features.translation.example_files import example_line
from isogloss.features.translation.label_projection import Projection, translate_examples
from isogloss.features.translation.locating import (
    MARKS,
    add_marks,
    locate_by_text,
    remove_marks,
    span_links,
)

GERMAN = {"the": "das", "old": "alte", "town": "Städtchen", "lies": "liegt", "where": "wo", "there": "dort"}


def word_by_word(texts: Iterable[str]) -> Iterator[Translated]:
    """Translate each word. Keep other text, such as brackets."""
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
            whole_result, links = translator.translate_linked(text)
            yield Translated(whole_result, words=words_of(whole_result, target), links=links)

    return translate


def question(answer: str = "old town", passage: str = "there lies the old town .") -> Question:
    return Question(
        id="q", passage=passage, question="where lies the town", answers=((passage.index(answer), answer),)
    )


def test_every_kind_of_example_keeps_its_id_label_and_place() -> None:
    sentence_pairs: list[Example] = [
        SentencePair(id="1", first="the town", second="the old town", label="entailment"),
        Choice(id="2", context="the town", options=("the old town", "town"), label=1, prompt="town"),
        Choice(id="2b", context="the town", question="where lies the town", options=("town", "old"), label=0),
        question(),
        TextLine(id="3", text="the town", document=4),
        TaggedSentence(id="4", words=("the", "town"), tags=("DET", "NOUN")),
        Translation(id="5", first="the town", second="la ville", links=((0, 0),)),
        ParsedSentence(id="6", words=("town",), tags=("NOUN",), heads=(0,), relations=("root",)),
    ]
    result = translate_examples(sentence_pairs, word_by_word)
    assert result.lost == ()
    assert result.examples == [
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
    arguments = []

    def translate(texts: Iterable[str]) -> Iterator[Translated]:
        for text in texts:
            arguments.append(text)
            yield Translated("¡La OMS, no (sí)!")

    tagged_sentence = TaggedSentence(id="1", words=("No", ",", "not", '"', "it", '"', "!"), tags=())
    nothing = {"tags": (), "heads": (), "relations": ()}
    parsed_sentence = ParsedSentence(
        id="2", words=("de", "el"), lines=("# text = Del ...", "# sent_id = 2"), **nothing
    )
    result = translate_examples(
        [tagged_sentence, parsed_sentence, replace(parsed_sentence, lines=())], translate
    ).examples
    assert arguments == ['No, not "it"!', "Del ...", "de el"]
    assert {sentence.words for sentence in result} == {("¡", "La", "OMS", ",", "no", "(", "sí", ")", "!")}


def test_an_answer_whose_marks_are_lost_is_counted_and_left_out() -> None:
    projection = Projection(answers=("marks",))
    kept_sentence_pair = SentencePair(id="p", first="a", second="b", label="x")
    result = translate_examples([question(), kept_sentence_pair], without_marks, projection=projection)
    assert result.lost == ("q",)
    assert [example.id for example in result.examples] == ["p"]


def test_the_next_way_is_tried_on_what_the_first_one_lost() -> None:
    (example,) = translate_examples([question()], without_marks).examples
    assert isinstance(example, Question)
    assert example.answers == ((15, "alte Städtchen"),)


def test_word_links_of_an_aligner_find_answers() -> None:
    projection = Projection(
        answers=("alignment",),
        find_links=lambda pairs: [[(n, n) for n in range(len(pair.first.split()))] for pair in pairs],
    )
    (example,) = translate_examples([question()], word_by_word, projection=projection).examples
    assert isinstance(example, Question)
    assert example.answers == ((15, "alte Städtchen"),)


def test_a_question_says_the_language_of_its_new_passage_only_if_it_said_one() -> None:
    from dataclasses import replace

    questions = [question(), replace(question(), id="r", language="en")]
    result = translate_examples(questions, word_by_word, language="de").examples
    assert [row.language for row in result if isinstance(row, Question)] == ["", "de"]


@pytest.mark.parametrize("target", ["qab", "qaf"])
def test_the_built_in_translators_own_links_find_what_the_built_in_corpora_find(target: str) -> None:
    inputs = list(islice(examples("squad", "qaa", "dev"), 60))
    projection = Projection(answers=("links",))
    result = translate_examples(inputs, built_in("qaa", target, 0.05), projection=projection)
    ids = {example.id for example in inputs}
    theirs = takewhile(
        lambda example: example.id in ids, translate_corpus("squad", f"qaa-{target}", "dev", noise=0.05)
    )
    assert result.examples == list(theirs)
    assert result.lost
    assert {*result.lost, *(example.id for example in result.examples)} == ids


@pytest.mark.parametrize("target", ["qab", "qah"])
def test_projected_tags_are_those_that_the_translation_says(target: str) -> None:
    """The built-in corpora tag a translation by what it means: the oracle of projection."""
    theirs = {example.id: example for example in islice(translate_corpus("ud", f"qaa-{target}", "dev"), 200)}
    inputs = list(islice(examples("ud", "qaa", "dev"), 200))
    result = translate_examples(inputs, built_in("qaa", target), projection=Projection(tags="links"))
    pairs = [
        (tag, known_tag)
        for example in result.examples
        for tag, known_tag in zip(example.tags, theirs[example.id].tags, strict=True)
    ]
    tagged_words = [tag == known_pair for tag, known_pair in pairs if tag]
    assert len(result.examples) == 200
    assert all(tagged_words)
    assert (
        len(tagged_words) / len(pairs) > 0.75
    )  # the rest are adpositions and the like, which nothing is linked to


@pytest.mark.parametrize("target", ["qab", "qah"])
def test_projected_entities_are_those_that_the_translation_says(target: str) -> None:
    inputs = list(islice(examples("wikiann", "qaa", "dev"), 200))
    result = translate_examples(inputs, built_in("qaa", target), projection=Projection(tags="links"))
    assert result.examples == list(islice(translate_corpus("wikiann", f"qaa-{target}", "dev"), 200))
    noisy = translate_examples(inputs, built_in("qaa", target, 0.3), projection=Projection(tags="links"))
    assert {*noisy.lost, *(example.id for example in noisy.examples)} == {example.id for example in inputs}
    assert noisy.lost  # an entity of which no word is left


def test_an_aligner_is_asked_about_the_words_that_are_tagged() -> None:
    arguments: list[Translation] = []

    def find_links(pairs):
        arguments.extend(pairs)
        return [[(0, 0), (2, 2)] for _ in pairs]

    tagged_sentence = TaggedSentence(id="1", words=("the", "old", "town"), tags=("DET", "ADJ", "NOUN"))
    projection = Projection(tags="alignment", find_links=find_links)
    (example,) = translate_examples([tagged_sentence], word_by_word, projection=projection).examples
    assert example == TaggedSentence(id="1", words=("das", "alte", "Städtchen"), tags=("DET", "", "NOUN"))
    assert arguments[0].words == (tagged_sentence.words, example.words)


def test_sentences_keep_the_links_of_the_translator_when_asked() -> None:
    inputs = list(islice(examples("ud", "qaa", "dev"), 50))
    plain_examples = translate_examples(inputs, built_in("qaa", "qad", 0.1)).examples
    result = translate_examples(inputs, built_in("qaa", "qad", 0.1), projection=Projection(links="links"))
    assert result.examples == plain_examples and not result.lost  # Links do not make another sentence of it.
    assert [example_line(plain_example) for plain_example in plain_examples] == [
        example_line(replace(example, links=None)) for example in result.examples
    ]
    translator = BuiltInTranslator("qaa", "qad", noise=0.1)
    for sentence, other_example in zip(inputs, result.examples, strict=True):
        words, gold = translator.translate_words(sentence.words)
        assert (other_example.words, other_example.tags) == (words, ())
        assert (
            set(other_example.links) <= set(gold) and len(other_example.links) > len(gold) / 2
        )  # not adpositions and case
    tagged_examples = translate_examples(
        inputs, built_in("qaa", "qad", 0.1), projection=Projection(tags="links", links="links")
    )
    assert [example.links for example in tagged_examples.examples] == [
        example.links for example in result.examples
    ]
    assert all(any(example.tags) for example in tagged_examples.examples)


def test_links_of_a_back_translation_lead_from_the_translation() -> None:
    """After both translations without noise, a word becomes the original word again."""
    inputs = list(islice(examples("ud", "qaa", "dev"), 50))
    projection = Projection(links="links")
    folder = translate_examples(inputs, built_in("qaa", "qad"), projection=projection).examples
    back = translate_examples(folder, built_in("qad", "qaa"), projection=projection).examples
    for sentence, translation, again in zip(inputs, folder, back, strict=True):
        round_trip = {
            (a, c) for a, b in translation.links for other_link, c in again.links if other_link == b
        }
        assert again.words == sentence.words
        assert round_trip >= {(n, n) for n, _ in round_trip} and len(round_trip) > len(sentence.words) / 2


def test_an_aligner_is_asked_once_for_each_way() -> None:
    counts = []

    def find_links(pairs):
        counts.append(len(pairs))
        return [[(0, 1), (1, 0)] for _ in pairs]

    tagged_sentence = TaggedSentence(id="1", words=("old", "town"), tags=("ADJ", "NOUN"))
    projection = Projection(tags="alignment", links="alignment", find_links=find_links)
    (example,) = translate_examples([tagged_sentence], word_by_word, projection=projection).examples
    assert (example.links, example.tags, counts) == (((0, 1), (1, 0)), ("NOUN", "ADJ"), [1])


def test_sentences_without_a_tag_to_carry_stay_untagged_and_others_are_lost() -> None:
    projection = Projection(tags="alignment", find_links=lambda pairs: [[] for _ in pairs])
    bare_tagged_sentence = TaggedSentence(id="1", words=("the", "town"), tags=())
    tagged_sentence = TaggedSentence(id="2", words=("the", "town"), tags=("DET", "NOUN"))
    result = translate_examples([bare_tagged_sentence, tagged_sentence], word_by_word, projection=projection)
    assert result.examples == [TaggedSentence(id="1", words=("das", "Städtchen"), tags=())]
    assert result.lost == ("2",)


def test_translating_back_is_translating_twice() -> None:
    inputs = list(islice(examples("xnli", "qaa", "dev"), 50))
    folder = translate_examples(inputs, built_in("qaa", "qad")).examples
    back = translate_examples(folder, built_in("qad", "qaa")).examples
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
    arguments = []
    read = []

    def translate(texts):
        for text in texts:
            arguments.append(text)
            yield Translated(text.upper())

    passage = "Anna lives in Rome."
    examples = [
        Question(id="1", passage=passage, question="Where?", answers=((0, "Anna"),), language="en"),
        Question(id="2", passage=passage, question="Who?", answers=((0, "Anna"),), repaired="it was"),
        SentencePair(id="3", first="a", second="a", label="x"),
        TaggedSentence(id="4", words=("a", "b"), tags=("X", "Y")),
    ]
    inputs = list(translate_inputs((read.append(example.id) or example for example in examples), translate))
    assert arguments == ["Where?", passage, "Who?", "a", "a b"]
    first_question, second, pair, words = inputs
    assert (first_question.id, first_question.question, first_question.passage) == (
        "1",
        "WHERE?",
        passage.upper(),
    )
    assert (second.question, second.passage, second.answers) == ("WHO?", passage.upper(), ())
    assert first_question.language == second.repaired == ""
    assert (pair.first, pair.second) == ("A", "A")
    assert (words.words, words.tags) == (("A", "B"), ())
    arguments.clear(), read.clear()
    next(translate_inputs((read.append(example.id) or example for example in examples), translate))
    assert (arguments, read) == (["Where?", passage], ["1"])
    assert [list(texts_of(example)) for example in examples[2:]] == [["a", "a"], ["a b"]]


def test_without_a_way_questions_are_kept_and_no_text_depends_on_their_answers() -> None:
    questions = [question(), replace(question(), id="unanswered", answers=())]
    result = translate_examples(questions, word_by_word, projection=Projection(answers=()))
    assert result.lost == ()
    assert [example.answers for example in result.examples] == [(), ()]
    assert result.examples[0] == replace(result.examples[1], id=result.examples[0].id)
    assert result.examples[0].passage == next(iter(word_by_word([question().passage]))).text


BRACKETS, TAGS, QUOTES = MARKS
TEXTS = st.text(alphabet="ab éдж中文ไท .,", min_size=1, max_size=30)


ANSWERS = TEXTS.map(str.strip).filter(bool)


@given(TEXTS, ANSWERS, TEXTS, st.sampled_from(MARKS))
def test_marks_taken_out_again_leave_the_answer_at_its_offset(
    state_before, answer, state_after, mark
) -> None:
    text = add_marks(state_before + answer + state_after, (len(state_before), answer), mark)
    assert text is not None
    marks = remove_marks(text, mark)
    assert marks is not None
    passage, (start, inner) = marks
    assert inner == answer
    assert passage[start : start + len(inner)] == inner
    assert passage.split() == (state_before + answer + state_after).split()


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
    text = "the old town lies here"
    translation = "hier liegt die alte Stadt."
    links = span_links(text, translation, [(0, 2), (1, 3), (2, 4), (3, 1), (4, 0)])
    assert locate_by_links((4, "old town"), translation, links) == (15, "alte Stadt")


def test_a_foreign_word_within_the_linked_ones_loses_the_answer() -> None:
    text = "the old town lies"
    translation = "alte liegt Stadt"
    assert (
        locate_by_links((4, "old town"), translation, span_links(text, translation, [(1, 0), (2, 2), (3, 1)]))
        is None
    )
    assert locate_by_links((4, "old"), translation, []) is None


@pytest.mark.parametrize(
    ("answer", "translation", "result"),
    [
        ("rome.", "In Rome it rained", (3, "Rome")),
        ("罗马", "他住在罗马很久", (3, "罗马")),
        ("art", "the party saw Art there", (14, "Art")),
        ("1990", "1990 and 1990", None),
        ("Paris", "Rome", None),
        (" . ", "a . b", None),
    ],
)
def test_an_answer_translated_alone_must_stand_exactly_once(answer, translation, result) -> None:
    assert locate_by_text(answer, translation) == result
