"""Word F1: precision and recall of single words of entities, as cross-lingual adjustment reports for NER.

Paper: "The Impact of Cross-Lingual Adjustment …", Table 3 (token-level F1, micro-averaged). A word is right
when gold and predicted tags put it into an entity of the same type; B- and I- are not told apart. A word
counts for precision where predicted tags put it inside an entity, for recall where gold ones do.
"""

from collections.abc import Sequence

from isogloss.core.contributions import Contributions, total
from isogloss.metrics.bio import OUTSIDE


def word_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return micro F1 over the words inside entities, in [0, 1]; 0 where there is no such word."""
    return total(word_contributions(gold, predicted))


def word_contributions(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Contributions:
    """Return for each sentence twice its right words, and its gold and predicted ones together."""
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise ValueError("gold and predicted sentences differ in number or length.")
    part, whole = [], []
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        types = [(_type(one), _type(other)) for one, other in zip(gold_tags, predicted_tags, strict=True)]
        part.append(2.0 * sum(one == other != "" for one, other in types))
        whole.append(float(sum((one != "") + (other != "") for one, other in types)))
    return Contributions(part, whole)


def _type(tag: str) -> str:
    return "" if tag == OUTSIDE else tag.partition("-")[2]
