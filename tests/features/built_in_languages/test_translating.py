"""The built-in translator: perfect without noise, predictable with it, labels kept."""

from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.features.built_in_languages import (
    LANGUAGES,
    BuiltInTranslator,
    Language,
    examples,
    translate_corpus,
    translations,
)
from isogloss.features.built_in_languages.concepts import Draws
from isogloss.features.built_in_languages.lexicon import lexicon
from isogloss.features.built_in_languages.meaning import Rates, Sampler
from isogloss.features.built_in_languages.parsing import parse, sentences_in
from isogloss.features.built_in_languages.rendering import render, say
from says import says
from trees import is_tree

PAIRS = [("qaa", other_language) for other_language in LANGUAGES if other_language != "qaa"] + [
    ("qae", "qah"),
    ("qad", "qai"),
]

INVOLVED = Rates(clause=0.3, joined=0.3, modifier=0.3, link=0.5, attached=0.5, second_attached=0.5)


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
def test_parsing_gives_back_what_was_said(language):
    sampler = Sampler(Draws(7), INVOLVED)
    words = lexicon(LANGUAGES[language])
    for _ in range(500):
        sentence = sampler.sentence()
        assert parse([word.form.text for word in render(sentence, words)], words) == sentence


SIDES = st.sampled_from(["before", "after"])
MARKINGS = st.sampled_from(["suffix", "prefix", "particle"])
SPACED = st.sampled_from(["latin", "cyrillic", "greek", "devanagari", "arabic"])
DIALS = {
    "order": st.sampled_from(["SVO", "SOV", "VSO"]),
    **dict.fromkeys(("adjective", "adposition", "relative", "determiner"), SIDES),
    "shared": st.sampled_from([0.0, 0.5]),
    "seed": st.integers(0, 2**31),
}
AFFIXES = {
    "script": SPACED,
    **dict.fromkeys(("number", "tense", "negation"), MARKINGS),
    "case": MARKINGS | st.just("none"),
    "agreement": st.booleans(),
}
PARTICLES = {
    "script": st.just("han"),
    **dict.fromkeys(("number", "tense", "negation"), st.just("particle")),
    "case": st.sampled_from(["particle", "none"]),
}


# The nine languages are read back exactly (above). Other settings of the dials may put homonyms side by side,
# and "a sees b and c and d sees e" has two readings: some sentences are not understood, none is misquoted.
@pytest.mark.nightly
@pytest.mark.slow
@settings(max_examples=25, derandomize=True)
@given(st.fixed_dictionaries(DIALS | AFFIXES) | st.fixed_dictionaries(DIALS | PARTICLES))
def test_text_of_other_settings_of_the_dials_is_mostly_read_back_and_never_misquoted(dials):
    words = lexicon(Language(code="qtz", name="Any", **dials))
    sampler = Sampler(Draws(dials["seed"]), INVOLVED)
    understood = 0
    for _ in range(30):
        sentence = sampler.sentence()
        text = say(sentence, words)
        [read] = sentences_in(text, words)
        meaning = parse(read, words)
        understood += meaning == sentence
        assert meaning is None or say(meaning, words) == text
    assert understood >= 20


@pytest.mark.parametrize(("source", "target"), [*PAIRS, *((right, left) for left, right in PAIRS)])
def test_translation_without_noise_is_the_gold_one_with_its_links(source, target):
    translator = BuiltInTranslator(source, target)
    for pair in each(islice(translations(source, target, "dev"), 40)):
        assert translator.translate_words(pair.first.split()) == (tuple(pair.second.split()), pair.links)


def test_spaces_before_punctuation_do_not_matter():
    for pair in each(islice(translations("qaa", "qai", "dev"), 20)):
        translator = BuiltInTranslator("qai", "qaa")
        assert translator.translate(pair.second) == translator.translate(pair.second.replace(" ", ""))


def texts(count=100):
    return [line.text for line in islice(examples("text", "qaa", "dev"), count)]


def test_noise_changes_more_words_the_higher_it_is():
    perfect = [BuiltInTranslator("qaa", "qab").translate(text).split() for text in texts()]
    kept_totals = []
    for noise in (0.0, 0.1, 0.3, 0.8):
        noisy = [BuiltInTranslator("qaa", "qab", noise=noise).translate(text).split() for text in texts()]
        kept_totals.append(sum(len(set(a) & set(b)) for a, b in zip(perfect, noisy, strict=True)))
    assert kept_totals[0] > kept_totals[1] > kept_totals[2] > kept_totals[3]


def test_noise_drops_about_as_many_words_as_its_rate_says():
    perfect = [len(BuiltInTranslator("qaa", "qab").translate(text).split()) for text in texts(400)]
    noisy = [len(BuiltInTranslator("qaa", "qab", noise=0.2).translate(text).split()) for text in texts(400)]
    assert 0.15 < 1 - sum(noisy) / sum(perfect) < 0.25


def test_noise_follows_from_seed_and_sentence_alone():
    text, other_text = texts(2)
    translator = BuiltInTranslator("qaa", "qad", 0.3, 5)
    assert (
        translator.translate(f"{text} {other_text}")
        == f"{translator.translate(text)} {translator.translate(other_text)}"
    )
    assert [translator.translate(text) for text in texts()] != [
        BuiltInTranslator("qaa", "qad", 0.3, 6).translate(text) for text in texts()
    ]


@pytest.mark.parametrize("target", LANGUAGES)
def test_noisy_translations_can_be_translated_back(target):
    built_in_translator = BuiltInTranslator("qaa", target, noise=0.3)
    back = BuiltInTranslator(target, "qaa", noise=0.3)
    assert all(back.translate(built_in_translator.translate(text)) for text in each(texts(50)))


def test_links_of_noisy_translations_are_in_range():
    for pair in each(islice(translations("qaa", "qai", "dev"), 100)):
        words, links = BuiltInTranslator("qaa", "qai", noise=0.3).translate_words(pair.first.split())
        assert all(a < len(pair.first.split()) and b < len(words) for a, b in each(links))


def noun_of(language: str, concept: int, *, is_plural: bool = False) -> str:
    """Return the form of a noun as a subject."""
    form, _ = lexicon(LANGUAGES[language]).nouns[concept][is_plural]
    return form.text


@pytest.mark.parametrize("language", ["qaa", "qai"])
def test_word_of_another_language_is_an_error_that_names_it(language):
    text = texts(1)[0]
    with pytest.raises(DataError, match=r"text in \w+: '.*'.*unknown = \"copy\""):
        BuiltInTranslator(language, "qab").translate("hello" if language == "qaa" else text)
    word = noun_of("qaa", 0)
    with pytest.raises(DataError, match=f"'{word}'"):
        BuiltInTranslator("qaa", "qab").translate(word + "x")


def test_word_of_another_language_is_copied_where_asked():
    noun = noun_of("qaa", 3)
    translation = BuiltInTranslator("qaa", "qab", unknown="copy").translate(f"hello {noun}.")
    assert translation == f"hello {noun_of('qab', 3)}."
    noisy = BuiltInTranslator("qaa", "qab", noise=1.0, unknown="copy")
    assert noisy.translate("hello") == "hello"  # no other word is like it, so none is put in its place


def test_words_that_make_no_sentence_are_translated_one_by_one():
    name = lexicon(LANGUAGES["qaa"]).names[520][-1].text
    words = [noun_of("qaa", 5, is_plural=True), noun_of("qaa", 9), name]
    translated_word, links = BuiltInTranslator("qaa", "qad").translate_words(words)
    assert translated_word == (noun_of("qad", 5, is_plural=True), noun_of("qad", 9), name)
    assert links == ((0, 0), (1, 1), (2, 2))
    assert BuiltInTranslator("qaa", "qad").translate("") == ""


def test_impossible_options_are_errors():
    with says(ConfigError, "1.5"):
        BuiltInTranslator("qaa", "qab", noise=1.5)
    with pytest.raises(ConfigError, match="no language 'qax'"):
        BuiltInTranslator("qaa", "qax")
    with says(ConfigError, "'copi'", "Did you mean 'copy'"):
        BuiltInTranslator("qaa", "qab", unknown="copi")


def first(corpus, count=60):
    return list(islice(corpus, count))


@pytest.mark.each_value
@pytest.mark.parametrize(("left", "right"), PAIRS)
@pytest.mark.parametrize("corpus", ["xnli", "pawsx", "squad", "ud", "wikiann"])
def test_dev_in_perfect_translation_is_the_other_language_s_dev(corpus, left, right):
    assert first(translate_corpus(corpus, f"{left}-{right}", "dev")) == first(examples(corpus, right, "dev"))


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_every_answer_is_found_again_in_every_perfect_translation(left, right):
    assert list(translate_corpus("squad", f"{left}-{right}", "test")) == list(
        examples("squad", right, "test")
    )


@pytest.mark.parametrize("corpus", ["xnli", "pawsx", "squad", "ud", "wikiann"])
def test_perfect_translation_there_and_back_is_what_it_was(corpus):
    assert first(translate_corpus(corpus, "qaa-qad-qaa", "train")) == first(examples(corpus, "qaa", "train"))


def test_noisy_translations_keep_ids_and_labels():
    source = first(examples("xnli", "qaa", "train"))
    noisy = first(translate_corpus("xnli", "qaa-qab", "train", noise=0.2))
    assert [(example.id, example.label) for example in noisy] == [
        (example.id, example.label) for example in source
    ]
    assert noisy != first(translate_corpus("xnli", "qaa-qab", "train"))
    assert noisy == first(translate_corpus("xnli", "qaa-qab", "train", noise=0.2))


@pytest.mark.nightly
@pytest.mark.slow
def test_answers_of_noisy_translations_stand_in_the_passage_and_lost_ones_are_counted():
    folder = {example.id: example for example in examples("squad", "qaa", "dev")}
    corpora = list(translate_corpus("squad", "qaa-qab", "dev", noise=0.2))
    assert 0 < len(corpora) < len(folder)
    for corpus in corpora:
        assert corpus.id in folder
        for start, text in corpus.answers:
            assert text
            assert corpus.passage[start : start + len(text)] == text


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("languages", ["qaa-qab", "qaa-qai", "qaa-qab-qaa"])
def test_noisy_translations_of_sentences_are_trees_with_a_tag_for_each_word(languages, noise):
    source = first(examples("ud", "qaa", "train"), 80)
    result = first(translate_corpus("ud", languages, "train", noise=noise), 80)
    assert [example.id for example in result] == [example.id for example in source]
    for sentence in result:
        assert len(sentence.words) == len(sentence.tags) == len(sentence.heads) == len(sentence.relations)
        assert [head == 0 for head in sentence.heads] == [name == "root" for name in sentence.relations]
        assert is_tree(sentence.heads)


def test_noisy_translations_of_entities_keep_their_kinds():
    source = first(examples("wikiann", "qaa", "train"), 80)
    result = first(translate_corpus("wikiann", "qaa-qab", "train", noise=0.1), 80)
    assert [example.id for example in result] == [example.id for example in source]
    for left, right in zip(source, result, strict=True):
        assert len(right.words) == len(right.tags)
        assert {tag[2:] for tag in right.tags} <= {tag[2:] for tag in left.tags}


def test_linked_translation_is_the_translation_and_its_places_are_words():
    translator = BuiltInTranslator("qaa", "qai", noise=0.1)
    for question in each(first(examples("squad", "qaa", "dev"), 20)):
        text, links = translator.translate_linked(question.passage)
        assert text == translator.translate(question.passage)
        words = set(question.passage.replace(",", " ,").replace(".", " .").split())
        assert links
        for (start, stop), (begin, end) in links:
            assert question.passage[start:stop] in words
            assert 0 <= begin < end <= len(text)


@pytest.mark.parametrize(
    ("corpus", "languages", "message"),
    [
        ("text", "qaa-qab", "'text'.*squad,"),
        ("xnli", "qaa", "'qaa'.*qaa-qab"),
        ("xnli", "qaa-qtz", "qtz"),
    ],
)
def test_what_cannot_be_translated_is_refused(corpus, languages, message):
    with pytest.raises(ConfigError, match=message):
        list(translate_corpus(corpus, languages, "dev"))
