"""If all examples have one label, the message reports this, instead of a failure to learn."""

from dataclasses import replace

import pytest

from isogloss.data.examples import Choice, LabelledText, TaggedSentence
from isogloss.tasks import TASKS, find_task
from isogloss.training.fine_tuning import fine_tune, of_one_label
from made_up import on, tagged_sentences

TOPICS = find_task("text-classification", ("neg", "pos"))
EMOTIONS = find_task("multi-label-classification", ("joy", "love"))
EXAMPLES = "training examples of en"
END = "so they do not distinguish labels. Add examples with other labels."


def texts(*labels) -> list[LabelledText]:
    return [LabelledText(id=str(n), text="a", label=label) for n, label in enumerate(labels)]


@pytest.mark.parametrize(
    ("task", "examples", "label"),
    [
        (TOPICS, texts("pos", "pos"), "pos"),
        (EMOTIONS, texts(("joy", "love"), ("love", "joy")), "joy+love"),
        (EMOTIONS, texts((), ()), "none"),
        (find_task("regression"), texts(2.5, 2.5), "2.5"),
        (TASKS["ner"], [TaggedSentence(id=str(n), words=("a", "b"), tags=("O", "O")) for n in range(2)], "O"),
    ],
)
def test_one_label_of_all_is_named(task, examples, label):
    message = of_one_label(task, examples, EXAMPLES)
    assert message == f"all 2 training examples of en have the label {label}, {END}"


@pytest.mark.parametrize(
    ("task", "examples"),
    [
        (TOPICS, texts("pos", "neg")),
        (TOPICS, texts("pos")),
        (TOPICS, texts("", "")),
        (TOPICS, []),
        (TASKS["ner"], [TaggedSentence(id=str(n), words=("a",), tags=()) for n in range(2)]),
        (
            find_task("multiple-choice"),
            [Choice(id=str(n), context="a", options=("b", "c"), label=0) for n in range(2)],
        ),
    ],
)
def test_several_labels_a_single_example_and_none_are_not_told_of(task, examples):
    assert of_one_label(task, examples, EXAMPLES) == ""


@pytest.fixture
def equal_tags():
    return [
        replace(tagged_sentence, tags=("NOUN",) * len(tagged_sentence.words))
        for tagged_sentence in tagged_sentences("en", 10)
    ]


@pytest.mark.slow
def test_training_on_one_label_is_said_instead_of_stuck_at_chance(make_setting, equal_tags):
    setting = replace(
        make_setting(epochs=1, learning_rate=1e-9), train=lambda _: equal_tags, dev=lambda _: equal_tags
    )
    text = f"have the label NOUN, {END}"
    assert fine_tune(setting, on("en")).warnings == (
        f"all 10 training examples of en {text}",
        f"all 10 dev examples of en {text}",
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_dev_examplesof_one_label_are_said_of_their_language_alone(make_setting, equal_tags):
    setting = make_setting(("en",), ("de",), epochs=1, learning_rate=1e-9)
    mixed_setting = replace(
        setting, dev=lambda language: equal_tags if language == "en" else setting.dev(language)
    )
    first_warning, second = fine_tune(mixed_setting, on("en", "de")).warnings
    assert first_warning.startswith("all 10 dev examples of en have the label NOUN")
    assert second.startswith("stuck at chance: the best accuracy on de dev is")
