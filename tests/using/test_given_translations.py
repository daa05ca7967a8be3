"""Inputs are mixed with their own translations, in step, and those without one are reported once."""

import json
import warnings
from dataclasses import replace
from itertools import count

import pytest
import torch

from each import each
from in_translation import link_words, pairs, questions, sentences
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import TaggedSentence
from isogloss.data.files import File
from isogloss.data.projection.example_texts import Translated, translate_inputs
from isogloss.data.sources import Sources
from isogloss.using.predicting import PredictOptions, check_translations, input_translator, predict_file
from isogloss.using.predictor import GROUP_SIZE
from isogloss.using.scoring import EvaluateOptions, check_evaluation
from says import check_wording
from used import join_lines, text_file

VALUES = {
    "upos": lambda language: [sentence.words for sentence in sentences(language, 12)],
    "nli": lambda language: [(pair.first, pair.second) for pair in pairs(language, 12)],
    "qa": lambda language: (
        [(example.question, example.passage) for example in questions("en", 12)]
        if language == "en"
        else [(example.question + " slow", example.passage[::-1]) for example in questions("en", 12)]
    ),
}
TASKS = pytest.mark.parametrize("task", sorted(VALUES))


@pytest.fixture
def warnings_list():
    return []


def predict_text(model, text, reported, **options):
    return join_lines(predict_file(model, text_file(text), PredictOptions(warn=reported.append, **options)))


def score_values(model, values, translations=None):
    examples = [model.kind.example(value, str(number), "") for number, value in enumerate(values)]
    translated_examples = translations and [
        None if translation is None else model.kind.example(translation, "x", "")
        for translation in translations
    ]
    return model.prepare(examples, translations=translated_examples).scores(model.network)


@TASKS
def test_values_are_predicted_as_the_corpus_scores_them(make_mixing, task):
    model = make_mixing(task)
    inputs, translations = VALUES[task]("de"), VALUES[task]("en")
    examples = [model.kind.example(value, str(number), "") for number, value in enumerate(inputs)]
    translated_examples = [
        model.kind.example(value, str(number), "") for number, value in enumerate(translations)
    ]
    prepared_inputs = model.prepare_by_id(examples, translated_examples[::-1])
    scores = score_values(model, inputs, translations)
    assert all(map(torch.equal, scores, prepared_inputs.scores(model.network)))
    assert not all(map(torch.equal, scores, score_values(model, inputs)))
    assert model.predict(inputs, translations=translations) == prepared_inputs.predict(model.network)
    assert model.predict(examples, translations=translated_examples) == prepared_inputs.predict(model.network)


def test_labelled_examples_are_scored_beside_their_translations(make_mixing):
    model, gold, translations = make_mixing(), sentences("de", 24), sentences("en", 24)
    prepared_inputs = model.prepare_by_id(gold, translations)
    assert (
        model.score(gold, translations=translations)
        == prepared_inputs.score(model.network)
        != model.score(gold)
    )
    assert model.measures(gold, translations=translations) == prepared_inputs.measures(model.network)
    with pytest.raises(ValueError, match="zip"):
        model.score(gold, translations=translations[1:])


@TASKS
def test_what_has_no_translation_is_predicted_as_without_any(make_mixing, task, recwarn):
    model, inputs, translations = make_mixing(task), VALUES[task]("de"), VALUES[task]("en")
    some_translations = [
        translation if number % 3 else None for number, translation in enumerate(translations)
    ]
    found_scores, mixed_scores, plain_scores = (
        score_values(model, inputs, given_translations)
        for given_translations in (some_translations, translations, None)
    )
    for number, scores in enumerate(found_scores):
        assert torch.allclose(scores, (mixed_scores if number % 3 else plain_scores)[number], atol=1e-4)
    model.predict(inputs, translations=some_translations)
    (warning,) = recwarn
    assert "translation" in str(warning.message)


def test_blank_translations_are_none(make_mixing, recwarn):
    model, inputs = make_mixing(), VALUES["upos"]("de")
    assert model.predict(inputs, translations=["", "  ", [], None] * 3) == model.predict(inputs)
    assert len(recwarn) == 2
    two = make_mixing("nli")
    inputs = VALUES["nli"]("de")
    assert two.predict(inputs, translations=[("", " ")] * 12) == two.predict(inputs)


def test_without_translations_one_warning_says_what_to_do(make_mixing):
    model = make_mixing()
    with pytest.warns(UserWarning, match="en.*1.*translations") as caught_warnings:
        model.predict(["Anna saw"] * 600)
    assert len(caught_warnings) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(["Anna saw"], language="en")  # The source's own inputs have nothing to be mixed with.
        model.predict(["Anna saw"], translations=["Anna"])
        list(model.predict_stream([]))


def test_a_stream_reads_both_sides_no_further_than_it_answers(make_mixing):
    read = {"inputs": 0, "translations": 0}

    def endless(side):
        for _ in count():
            read[side] += 1
            yield "Anna saw"

    answers = make_mixing().predict_stream(endless("inputs"), translations=endless("translations"))
    assert len(next(answers)) == 2
    assert read == {"inputs": GROUP_SIZE, "translations": GROUP_SIZE}


@pytest.mark.parametrize(
    ("inputs", "translations", "counts"), [(5, 3, "3 translations for 5"), (3, 5, "5 translations for 3")]
)
def test_unequal_counts_are_both_named(make_mixing, inputs, translations, counts):
    with pytest.raises(DataError, match=f"^translations: {counts} inputs"):
        make_mixing().predict(["Anna"] * inputs, translations=["Anna"] * translations)


def test_what_is_no_translation_is_named_by_its_number(make_mixing):
    with pytest.raises(DataError, match=r"translation 1: .*'3'"):
        make_mixing().predict(["a", "b"], translations=["a", 3])
    with pytest.raises(DataError, match=r"input 0: .*'None'"):
        make_mixing().predict([None], translations=["a"])


def test_a_model_that_does_not_mix_refuses_translations(make_model):
    model = make_model()
    with pytest.raises(ConfigError, match=r"^translations: .*\(source-only\).*x-mixup"):
        model.predict(["Anna"], translations=["Anna"])
    with pytest.raises(ConfigError, match=r"^--translations: .*--translations"):
        predict_file(model, text_file("Anna\n"), PredictOptions(translations=text_file("Anna\n")))


def lines(values):
    return join_lines(" ".join(words) for words in values)


def lines_of_pairs(values):
    return join_lines("\t".join(pair) for pair in values)


def test_lines_of_a_file_are_mixed_with_lines_of_another(make_mixing, warnings_list):
    model, inputs, translations = make_mixing(), VALUES["upos"]("de"), VALUES["upos"]("en")
    output = predict_text(
        model, lines(inputs), warnings_list, translations=text_file(lines(translations), "en")
    )
    answers = model.predict(inputs, translations=translations)
    assert [line.partition("\t")[2].split() for line in output.splitlines()] == [
        list(tags) for tags in answers
    ]
    assert warnings_list == []


def conllu(values):
    rows = (
        "\t".join((str(place), word, *"_" * 8)) for words in values for place, word in enumerate(words, 1)
    )
    blocks = iter(rows)
    return "".join(f"# sent\n{join_lines(next(blocks) for _ in words)}\n" for words in values)


def test_formats_need_not_be_the_same(make_mixing, warnings_list):
    model, inputs, translations = make_mixing(), VALUES["upos"]("de"), VALUES["upos"]("en")
    expected = [list(sentence_tags) for sentence_tags in model.predict(inputs, translations=translations)]
    objects = join_lines(json.dumps({"words": words}) for words in translations)
    for translation_text in (lines(translations), conllu(translations), objects):
        output = predict_text(
            model, conllu(inputs), warnings_list, translations=text_file(translation_text, "en")
        )
        tags = [line.split("\t")[3] for line in output.splitlines() if line[:1].isdigit()]
        assert tags == [tag for sentence_tags in expected for tag in sentence_tags]


def test_headers_and_comments_stand_beside_nothing(make_mixing, warnings_list):
    model, inputs, translations = make_mixing("nli"), VALUES["nli"]("de"), VALUES["nli"]("en")
    header = "sentence1\tsentence2\n"
    rows = [lines_of_pairs(values) for values in (inputs, translations)]
    output = predict_text(model, header + rows[0], warnings_list, translations=text_file(rows[1], "en"))
    again = predict_text(model, rows[0], warnings_list, translations=text_file(header + rows[1], "en"))
    labels = model.predict(inputs, translations=translations)
    for text in (output.split("\n", 1)[1], again):
        assert [line.split("\t")[-1] for line in text.splitlines()] == labels


def test_probabilities_of_pairs_are_means_over_both_sides(make_mixing, warnings_list):
    model, inputs, translations = make_mixing("nli"), VALUES["nli"]("de"), VALUES["nli"]("en")
    options = {"translations": text_file(lines_of_pairs(translations)), "scores": True, "as_json": True}
    predictions = [
        json.loads(line)
        for line in predict_text(model, lines_of_pairs(inputs), warnings_list, **options).splitlines()
    ]
    for prediction, scores in each(zip(predictions, score_values(model, inputs, translations), strict=True)):
        assert list(prediction["scores"].values()) == pytest.approx(scores.exp().flatten().tolist(), abs=1e-5)
        assert sum(prediction["scores"].values()) == pytest.approx(1, abs=1e-5)


def test_an_empty_line_leaves_its_input_unmixed(make_mixing, warnings_list):
    model = make_mixing()
    output = predict_text(
        model, "Anna saw\n\nthe cat\n", warnings_list, translations=text_file("Anna saw\nx\n\n", "en")
    )
    assert [len(line.partition("\t")[2].split()) for line in output.splitlines()] == [2, 0, 2]
    assert len(warnings_list) == 1
    assert "1 of 2 inputs have none. They are predicted unmixed. Give translations" in warnings_list[0]


def test_a_file_of_another_length_is_refused_before_anything_is_predicted(make_mixing, warnings_list):
    model, options = (
        make_mixing(),
        PredictOptions(warn=warnings_list.append, translations=text_file("a\n\nb\n", "to.en")),
    )
    with pytest.raises(DataError, match=r"to.en: .*3.*4"):
        check_translations(model, text_file("a\nb\nc\nd\n"), options)
    broken_options = PredictOptions(translations=text_file("a\n"), translate=lambda texts: texts)
    with pytest.raises(ConfigError, match="--translations and --translator:"):
        check_translations(model, text_file("a\n"), broken_options)
    assert warnings_list == []


@pytest.mark.slow
def test_objects_carry_their_own_translations(make_mixing, warnings_list):
    for task, keys in (("upos", ["words"]), ("nli", ["text", "text_pair"]), ("qa", ["question", "context"])):
        model, inputs, translations = make_mixing(task), VALUES[task]("de"), VALUES[task]("en")

        def body(value, keys=keys):
            return dict(zip(keys, [value] if len(keys) == 1 else value, strict=True))

        joint_text = join_lines(
            json.dumps({**body(value), "translation": body(translation)})
            for value, translation in zip(inputs, translations, strict=True)
        )
        input_text = join_lines(json.dumps(body(value)) for value in inputs)
        translation_file = text_file(
            join_lines(json.dumps(body(translation)) for translation in translations), "en"
        )
        answers = [
            [
                line.get("labels", line.get("label", line.get("answer")))
                for line in map(json.loads, output_lines)
            ]
            for output_lines in (
                predict_text(model, joint_text, warnings_list).splitlines(),
                predict_text(model, input_text, warnings_list, translations=translation_file).splitlines(),
            )
        ]
        assert answers[0] == answers[1]
        assert warnings_list == []


def test_a_translation_that_is_no_object_of_its_kind_is_named_with_its_line(
    make_mixing, make_model, warnings_list
):
    wrong = '{"words": ["a"]}\n{"words": ["a"], "translation": "a"}\n'
    with pytest.raises(DataError, match=r"input:2: .*'a'"):
        predict_text(make_mixing(), wrong, warnings_list)
    with pytest.raises(DataError, match="input:1: translation:"):
        predict_text(make_mixing(), '{"words": ["a"], "translation": {"x": 1}}\n', warnings_list)
    assert predict_text(make_model(), wrong, warnings_list).count('"translation": "a"') == 1


def squad(ids, text):
    qas = [{"id": name, "question": "Anna?", "answers": []} for name in ids]
    return json.dumps({"data": [{"paragraphs": [{"context": text, "qas": qas}]}]})


def test_questions_of_squad_are_matched_by_their_ids(make_mixing, warnings_list):
    model = make_mixing("qa")
    input_text, translation_text = squad("abc", "happen slow " * 9), squad("cdb", "Anna Lee in Rome " * 9)
    options = {"format": "squad", "translations": text_file(translation_text, "en.json")}
    answers = json.loads(predict_text(model, input_text, warnings_list, **options))
    assert "1 of 3 inputs have none" in warnings_list[0]
    question, passage = "Anna?", "happen slow " * 9
    translation = ("Anna?", "Anna Lee in Rome " * 9)
    with pytest.warns(UserWarning, match="1 of 3"):
        mixed_answers = model.predict(
            [(question, passage)] * 3, translations=[None, translation, translation]
        )
    assert list(answers.values()) == mixed_answers
    strange = text_file(squad("xy", "Anna"), "en.json")
    with pytest.raises(DataError, match=r"en\.json: .*2"):
        predict_text(model, input_text, warnings_list, format="squad", translations=strange)


def as_translator(texts):
    return (Translated(" ".join(reversed(text.split()))) for text in texts)


def test_a_translator_on_the_way_is_as_a_file_of_its_translations(make_mixing, warnings_list):
    model, inputs = make_mixing(), [*VALUES["upos"]("de"), (), ("Anna",)]
    translation_text = join_lines(
        translation.text for translation in as_translator(lines(inputs).splitlines())
    )
    assert predict_text(model, lines(inputs), warnings_list, translate=as_translator) == predict_text(
        model, lines(inputs), warnings_list, translations=text_file(translation_text)
    )
    assert warnings_list == []


def test_a_translator_is_asked_no_further_than_it_is_needed(make_mixing):
    asked_texts = []

    def noting(texts):
        for text in texts:
            asked_texts.append(text)
            yield Translated(text)

    endless = File("stdin", lambda: (f"Anna saw {number}\n" for number in count()), lambda: "")
    next(predict_file(make_mixing(), endless, PredictOptions(translate=noting)))
    assert len(asked_texts) == GROUP_SIZE


def test_a_translator_needs_to_know_its_languages_and_its_model(make_mixing, make_model, tmp_path):
    def get_refusal(name="seq2seq", model=None, **more):
        with pytest.raises(ConfigError) as error:
            input_translator(model or make_mixing(), name, **({"language": "sw", "folder": tmp_path} | more))
        return str(error.value)

    assert "--translator: no translator 'seqseq'. Did you mean 'seq2seq'" in get_refusal("seqseq")
    assert "--translator seq2seq" in get_refusal()
    assert "--model: translator built-in takes none" in get_refusal("built-in", translator_model="x")
    assert "--translator:" in get_refusal(language="")
    for language in ("en", "eng_Latn"):
        assert "en" in get_refusal(language=language)
    assert "(source-only)" in get_refusal(model=make_model())
    check_wording(get_refusal(model=make_mixing(source=())), "--translator:")


def test_built_in_languages_are_translated_on_the_way(make_mixing, tmp_path):
    model = make_mixing(source=("qaa",))
    translate = input_translator(model, "built-in", language="qab", folder=tmp_path)
    (translation,) = translate(["gar zinormunil bimajen botonbon."])
    assert translation.text.startswith("jado ")
    assert list(tmp_path.iterdir()) == []


# Mixed by word links


@pytest.fixture
def make_linking(make_mixing):
    """Make a model that mixes words with those that they are linked to."""

    def make(task="upos", **options):
        model = make_mixing(task, **options)
        return replace(model, mixup=replace(model.mixup, attends="links"))

    return make


def test_sentences_are_mixed_with_translations_that_have_links(make_linking):
    model, inputs, translations = make_linking(), sentences("de", 12), link_words(sentences("en", 12))
    scores = model.prepare(inputs, translations=translations).scores(model.network)
    prepared_inputs = model.prepare_by_id(inputs, translations[::-1])
    assert all(map(torch.equal, scores, prepared_inputs.scores(model.network)))
    assert not all(map(torch.equal, scores, model.prepare(inputs).scores(model.network)))
    assert model.predict(inputs, translations=translations) == prepared_inputs.predict(model.network)


def test_a_translator_that_knows_links_gives_them_on_the_way(make_linking, tmp_path, warnings_list):
    model = make_linking(source=("qaa",))
    source_lines = [" ".join(example.words) for example in Sources().examples("ud", "qab", "dev", examples=5)]
    text = "".join(f"{line}\n" for line in source_lines)
    translate = input_translator(model, "built-in", language="qab", folder=tmp_path)
    output = predict_text(model, text, warnings_list, translate=translate)
    examples = [
        TaggedSentence(id=str(n), words=tuple(line.split()), tags=()) for n, line in enumerate(source_lines)
    ]
    translations = list(translate_inputs(examples, translate))
    assert all(translation.links for translation in translations)
    tags = model.predict(examples, translations=translations)
    assert [line.split("\t")[1].split() for line in output.splitlines()] == list(map(list, tags))
    assert warnings_list == []


def test_translations_without_links_are_refused_with_what_to_do(make_linking, warnings_list, tmp_path):
    model, inputs, translations = make_linking(), VALUES["upos"]("de"), VALUES["upos"]("en")
    file = text_file(lines(translations))
    with pytest.raises(ConfigError, match=r"--translations: .*--translator built-in"):
        predict_text(model, lines(inputs), warnings_list, translations=file)
    with pytest.raises(ConfigError, match=r"--translator: .*seq2seq"):
        input_translator(model, "seq2seq", language="de", translator_model="x", folder=tmp_path)
    with pytest.raises(DataError, match=r"12.*TaggedSentence\.links"):
        model.predict(inputs, translations=translations)
    with pytest.raises(DataError, match=r"1 translations.*links"):
        predict_text(model, '{"words": ["a"], "translation": {"words": ["b"]}}\n', warnings_list)
    with pytest.warns(UserWarning, match="predicted"):
        assert len(model.predict(inputs)) == len(inputs)
    options = EvaluateOptions(corpus="ud", languages=("qab",), inputs="paired")
    with pytest.raises(ConfigError, match="--inputs paired:"):
        check_evaluation(model, options, Sources())
