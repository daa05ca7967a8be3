"""Which kind of inputs each task has, by the task's name."""

from isogloss.using.formats import Kind
from isogloss.using.pairs import pairs
from isogloss.using.questions import questions
from isogloss.using.words import entities_filled, tags_filled, words

KINDS: dict[str, Kind] = {
    "upos": words(tags_filled),
    "ner": words(entities_filled),
    "nli": pairs(),
    "paraphrase": pairs(),
    "qa": questions(),
}
"""One line for each task."""
