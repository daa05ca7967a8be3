"""Languages at a known distance from their source: each dial from 0 (equal) to 1 (unrelated)."""

from dataclasses import replace
from itertools import islice, pairwise, product

import pytest

from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.languages import canonical_language, is_built_in
from isogloss.data.sources import Sources
from isogloss.features.built_in_languages import (
    LANGUAGES,
    BuiltInTranslator,
    card,
    derive_language,
    examples,
    find_language,
    measure_distances,
    translations,
)
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.family import CONSONANTS, VOWELS, write
from isogloss.features.built_in_languages.lexicon import CONTENT, FUNCTION, all_forms, lexicon
from isogloss.features.built_in_languages.relations import DIALS
from says import says

CORPORA = ["ud", "wikiann", "xnli", "pawsx", "squad", "text"]
VALUES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
SOURCE = lexicon(LANGUAGES["qaa"])


def first_examples(corpus, language, split="dev", count=40):
    return list(islice(examples(corpus, language, split), count))


@pytest.mark.parametrize("source", LANGUAGES)
def test_language_at_distance_0_is_the_source(source):
    twin = derive_language(source)
    same = lexicon(LANGUAGES[source])
    other = lexicon(twin)
    assert twin.code != source
    assert (other.roots, other.nouns, other.verbs) == (same.roots, same.nouns, same.verbs)
    assert (other.adjectives, other.words, other.names) == (same.adjectives, same.words, same.names)
    assert (other.readings, other.called) == (same.readings, same.called)


@pytest.mark.parametrize("corpus", CORPORA)
def test_test_sets_at_distance_0_are_those_of_the_source_and_training_sets_are_not(corpus):
    assert first_examples(corpus, "qaa_Wrda_000") == first_examples(corpus, "qaa") or corpus == "text"
    assert first_examples(corpus, "qaa_Wrda_000", "train") != first_examples(corpus, "qaa", "train")


def test_translation_to_a_language_at_distance_0_is_the_original():
    translator = BuiltInTranslator("qaa", "qaa_Orda_000")
    sentences = first_examples("ud", "qaa", "train")
    assert all(translator.translate_words(s.words)[0] == s.words for s in each(sentences))


@pytest.mark.parametrize(("dial", "draw"), list(product(DIALS, (0, 1))))
def test_measured_distance_grows_with_its_dial_and_no_other_moves(dial, draw):
    """The statistic counts words, letters and trees of test sentences, and knows nothing of the dials."""
    rows = [measure_distances("qaa", derive_language("qaa", draw=draw, **{dial: value})) for value in VALUES]
    assert rows[0] == dict.fromkeys(DIALS, 0.0)
    assert all(later[dial] > earlier[dial] for earlier, later in pairwise(rows))
    follows = {
        "senses": {"words"},  # Verbs have other words.
        "world": {"words", "names", "senses", "order"},  # Other sentences are counted.
        "script": {"words", "names"},  # A word in other letters is another word.
    }.get(dial, set())
    for other in DIALS.keys() - {dial} - follows:
        assert [row[other] for row in rows] == [0.0] * len(rows)
    if dial in ("words", "names", "world", "script"):
        assert rows[-1][dial] > 0.98
    if dial == "world":
        assert all(row["order"] < 0.02 for row in rows)


@pytest.mark.parametrize("dial", DIALS)
def test_dials_leave_the_other_parts_of_the_language_unchanged(dial):
    language = derive_language("qaa", **{dial: 1.0})
    words = lexicon(language)
    same_roots = sum(words.roots[k] == SOURCE.roots[k] for k in (*CONTENT, *FUNCTION))
    changed_verbs = sum(words.roots[k] != SOURCE.roots[k] for k in c.VERBS)
    expected = {"words": 0, "senses": len(CONTENT) + len(FUNCTION) - len(c.VERBS)}
    assert same_roots == expected.get(dial, len(CONTENT) + len(FUNCTION))
    assert changed_verbs == (len(c.VERBS) if dial in ("words", "senses") else 0)
    assert (words.name_words == SOURCE.name_words) == (dial not in ("names", "script"))
    plain = replace(language, relation=None, code="qaa", name="Ansa")
    assert (plain == LANGUAGES["qaa"]) == (dial != "order")
    letters = CONSONANTS + VOWELS
    assert (write(letters, language) == letters) == (dial != "script")


@pytest.mark.parametrize("source", ["qaa", "qae", "qai"])
def test_share_of_words_is_what_the_dial_says_and_the_words_are_nested(source):
    same = lexicon(LANGUAGES[source]).roots
    roots = [lexicon(derive_language(source, words=value)).roots for value in VALUES]
    units = {same[k] for k in CONTENT} | {same[k] for k in FUNCTION}
    for value, derived in zip(VALUES, roots, strict=True):
        kept = {root for concept, root in same.items() if derived[concept] == root}
        assert len(units - kept) == round(value * len(units))
    for earlier, later in pairwise(roots):
        assert all(later[k] == earlier[k] for k in each(same) if earlier[k] != same[k])


@pytest.mark.parametrize(
    ("source", "dials"),
    [
        ("qaa", {"words": 0.5}),
        ("qaa", {"words": 0.5, "names": 0.5, "order": 1.0, "script": 0.5}),
        ("qaa", {"senses": 1.0}),
        ("qac", {"words": 1.0, "senses": 0.5, "order": 0.4}),
        ("qag", {"words": 0.3, "names": 1.0}),
        ("qah", {"order": 0.6, "script": 1.0}),
        ("qai", {"words": 0.5, "names": 0.5}),
    ],
)
def test_translations_there_and_back_are_the_original(source, dials):
    language = derive_language(source, draw=3, **dials)
    there = BuiltInTranslator("qaa", language)
    back = BuiltInTranslator(language, "qaa")
    for line in each(first_examples("text", "qaa", count=150)):
        assert back.translate(there.translate(line.text)) == line.text


@pytest.mark.parametrize("source", ["qaa", "qae", "qai"])
def test_forms_lead_back_to_their_concept(source):
    script = 0.5 if source != "qai" else 0.0
    words = lexicon(derive_language(source, words=0.5, names=0.5, script=script, draw=2))
    assert all(
        words.readings[form.text][form.tag].concept == reading.concept
        for form, reading in each(all_forms(words))
    )


def test_sentences_of_an_unrelated_world_have_no_translation():
    language = derive_language("qaa", world=1.0)
    pairs = list(islice(translations("qaa", language, "train"), 400))
    identical = sum(pair.first == pair.second for pair in pairs)
    assert identical < 0.05 * len(pairs)
    links = [(pair.first.split(), pair.second.split(), pair.links) for pair in pairs]
    same = [a[i] == b[j] for a, b, row in links for i, j in row]
    by_chance = [x == y for a, b, _ in links for x in a for y in b]
    assert abs(sum(same) / len(same) - sum(by_chance) / len(by_chance)) < 0.02


def test_translations_into_an_unrelated_world_have_the_labels_of_random_words():
    language = derive_language("qaa", world=1.0)
    translator = BuiltInTranslator("qaa", language)
    right = total = 0
    for sentence in first_examples("ud", "qaa", "train", 300):
        for word in translator.translate_analysed(sentence.words):
            readings = lexicon(language).readings.get(word.form.text)
            if readings:
                right += word.form.tag in readings
                total += 1
    assert total and right / total < 0.3


def test_half_of_the_sentences_keep_their_translation_at_a_world_of_one_half():
    pairs = list(islice(translations("qaa", "qaa_Wlda_050", "train"), 600))
    assert 0.44 < sum(pair.first == pair.second for pair in pairs) / len(pairs) < 0.56


@pytest.mark.parametrize("dials", [{"words": 0.37}, {"order": 0.4, "words": 0.6}, {"world": 0.29}, {}])
def test_codes_of_recipes_stand_for_the_language_of_python(dials):
    language = derive_language("qaa", draw=1, **dials)
    assert is_built_in(language.code) and find_language(language.code) == language
    assert canonical_language(language.code.replace("_", "-")) == language.code
    assert Sources().examples("ud", language.code, "test", examples=5) == first_examples(
        "ud", language, "test", 5
    )


def test_values_between_hundredths_have_a_language_in_python_only():
    language = derive_language("qaa", words=1 / 3)
    assert not is_built_in(language.code)
    assert first_examples("ud", language) != first_examples("ud", "qaa")


@pytest.mark.parametrize(
    ("dial", "value"),
    [*((dial, 1.01) for dial in DIALS), *(("words", value) for value in (-0.1, True, "0.5", float("nan")))],
)
def test_a_dial_out_of_range_is_refused(dial, value):
    with says(ConfigError, dial, repr(value), "0", "1"):
        derive_language("qaa", **{dial: value})


def test_codes_out_of_range_are_refused_with_what_is_allowed():
    with says(ConfigError, "qaa_Wrda_101", "100"):
        Sources().examples("ud", "qaa_Wrda_101", "test")
    with says(ConfigError, "qaa_Wrxa_050", "'Wrx'", "Did you mean 'Wrd'"):
        find_language("qaa_Wrxa_050")
    with says(ConfigError, "0.3", "0.2", "0.4"):
        find_language("qaa_Orda_030")
    with says(ConfigError, "qaa_Mixa_206", "0 to 5"):
        find_language("qaa_Mixa_206")
    with says(ConfigError, "'qaz'"):
        derive_language("qaz")
    with says(ConfigError, "draw is -1"):
        derive_language("qaa", draw=-1)
    with says(ConfigError, "'han'", "latin"):
        derive_language("qai", script=0.5)


@pytest.mark.parametrize("corpus", ["xnli", "pawsx", "squad"])
def test_corpora_whose_labels_are_meanings_are_refused_in_a_world_of_ones_own(corpus):
    for language in ("qaa_Wlda_050", "qaa-qaa_Wlda_050"):
        with says(ConfigError, corpus, "0.5", "wikiann"):
            Sources().examples(corpus, language, "train", examples=3)


def test_card_of_a_derived_language_says_its_dials():
    fields = card("qaa_Mixa_130")
    assert fields["language"] == "Ansa (words 0.2, order 0.6) (qaa_Mixa_130)"
    assert fields["shared vocabulary"] == "80% of all words with qaa"


def test_recipe_with_derived_languages_is_planned_and_one_out_of_range_is_refused(tmp_path):
    from isogloss.planning.plan import plan_recipe

    def plan(target):
        (tmp_path / "r.toml").write_text(
            'title = "Distance"\nencoder = "shipped"\n'
            f'[grid]\ncorpus = "ud"\ntask = "upos"\nsource = "qaa"\ntargets = ["{target}"]\nseeds = [0]\n'
            'method = [{ name = "translate-train" }, { name = "bilingual" }]\n'
            '[[measure]]\nname = "scores"\nsplit = "test"\n'
        )
        return plan_recipe(str(tmp_path / "r.toml"), out=tmp_path / "runs")

    targets = [run.target for run in plan("qaa_Wrda_050").runs if hasattr(run, "target")]
    assert ("qaa_Wrda_050",) in targets
    with says(ConfigError, "150"):
        plan("qaa_Wrda_150")
