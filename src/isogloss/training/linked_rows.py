"""Links between words of a text and its translation, as links between the subwords of their rows.

Alignments link words, and mixing is done subword by subword (X-Mixup, ``attends = "links"``): every subword
of a word is linked to every subword of the words that this one is linked to. Of windows only the words that
both show are linked; special subwords belong to no word.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool
from torch import Tensor

from isogloss.core.errors import DataError
from isogloss.data.examples import Example
from isogloss.data.files import some
from isogloss.data.projection.tag_projection import WordLinks
from isogloss.encoders.mixup import LINKS_NEEDED, MAKE_LINKS
from isogloss.tasks.batch import EncodedRow


class LinkedRows(NamedTuple):
    """Rows of the two sides of a pair, and the links (word of the source, word of the target), if known."""

    source: EncodedRow
    target: EncodedRow
    links: WordLinks | None


def turned(links: WordLinks | None) -> WordLinks | None:
    """Return links the other way round."""
    return None if links is None else [(other, one) for one, other in links]


def subword_links(pairs: Sequence[LinkedRows], *, width: int) -> Bool[Tensor, "pair target source"] | None:
    """Return which subwords of rows padded to ``width`` are linked; None unless it is known of every pair."""
    if any(pair.links is None for pair in pairs):
        return None
    found = torch.zeros(len(pairs), width, width, dtype=torch.bool)
    for row, (source, target, links) in enumerate(pairs):
        sources, targets = (torch.tensor(side.word_of, dtype=torch.long) for side in (source, target))
        linked = torch.zeros(
            _words(target.word_of, links, 1), _words(source.word_of, links, 0), dtype=torch.bool
        )
        for one, other in links or ():
            linked[other, one] = True
        found[row, : len(targets), : len(sources)] = linked[targets][:, sources]
    return found


def _words(word_of: Sequence[int], links: WordLinks | None, side: int) -> int:
    """Return a number of words that no word reaches: the last one's is that of special subwords, -1."""
    return 2 + max((*word_of, *(pair[side] for pair in links or ())), default=0)


def check_linked(translations: Iterable[Example], where: str) -> None:
    """Raise DataError, with ids, for translations whose links to what was translated are not known."""
    missing = [one.id for one in translations if getattr(one, "links", None) is None]
    if missing:
        raise DataError(
            f"{where}: {LINKS_NEEDED}, and {len(missing)} translations have no word links (ids "
            f"{some(missing)}). {MAKE_LINKS}"
        )
