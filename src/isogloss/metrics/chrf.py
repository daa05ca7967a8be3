"""chrF: how alike translations are to references, in character n-grams.

Popović (2015), "chrF: character n-gram F-score for automatic MT evaluation", as sacrebleu computes it for a
corpus: n from 1 to 6, recall twice as important as precision, white space left out.
"""

from collections import Counter
from collections.abc import Sequence

ORDER = 6
BETA = 2


def chrf(references: Sequence[str], translations: Sequence[str]) -> float:
    """Return the corpus's chrF in [0, 1]; n-grams longer than every text do not count."""
    common, asked, given = ([0] * ORDER for _ in range(3))
    for reference, translation in zip(references, translations, strict=True):
        for place in range(ORDER):
            wanted, written = (_grams(text, place + 1) for text in (reference, translation))
            common[place] += (wanted & written).total()
            asked[place] += wanted.total()
            # As sacrebleu: what a reference is too short for is not held against its translation.
            given[place] += written.total() if wanted else 0
    orders = [place for place in range(ORDER) if asked[place] and given[place]]
    if not orders:
        return 0.0
    precision = sum(common[place] / given[place] for place in orders) / len(orders)
    recall = sum(common[place] / asked[place] for place in orders) / len(orders)
    both = BETA**2 * precision + recall
    return (1 + BETA**2) * precision * recall / both if both else 0.0


def _grams(text: str, length: int) -> Counter[str]:
    letters = "".join(text.split())
    return Counter(letters[start : start + length] for start in range(len(letters) - length + 1))
