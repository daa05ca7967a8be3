"""Some of a training text set apart, for losses that must not be of the very text that was learned.

The text held out for perplexity is another: whatever training looks at is no longer held out.
"""

import numpy as np

from isogloss.core.errors import DataError
from isogloss.tasks.text_stream import TextStream

BLOCKS = 20
"""Blocks of a stretch that is set apart: few enough that a text of many parts loses some of each, many enough
that little is lost between stretches."""


def set_apart(
    stream: TextStream, *, share: float, length: int, language: str
) -> tuple[TextStream, TextStream]:
    """Return two views of a text: to train on, and a share, set apart, in stretches from its whole length.

    No block of ``length`` subwords of one has a subword of the other. DataError when the text is too short.
    """
    total = len(stream)
    size = max(length, round(total * share))
    count = max(1, size // (BLOCKS * length))
    ends = np.arange(1, count + 1) * total // count
    firsts = np.minimum(stream.starts, max(0, total - length))  # Where a block that starts there is read.
    section = np.searchsorted(ends, firsts, side="right")
    begins = ends[section] - size // count
    kept, apart = firsts + length <= begins, (firsts >= begins) & (firsts + length <= ends[section])
    if not apart.any() or not kept.any():
        raise DataError(
            f"{language}: its text of {total} subwords is too short to set a share of {share:g} apart, in "
            f"rows of {length}. Add text, leave the language out, or lower block."
        )
    return (
        TextStream(stream.subwords, stream.starts[kept]),
        TextStream(stream.subwords, stream.starts[apart]),
    )
