"""Which kind of inputs each task has, by the task's name."""

from isogloss.using.formats import Kind
from isogloss.using.pairs import pairs
from isogloss.using.questions import questions
from isogloss.using.words import ENTITIES, TREES, UPOS, words

TAGGER = {"auto_class": "AutoModelForTokenClassification", "pipeline": "token-classification"}

KINDS: dict[str, Kind] = {
    "upos": words(UPOS, **TAGGER),
    "ner": words(ENTITIES, **TAGGER),
    "parsing": words(TREES, auto_class=""),
    "nli": pairs(),
    "paraphrase": pairs(),
    "qa": questions(),
}
"""One line for each task."""
