"""Making what comes of bitext: word alignments, and encoders that were adjusted with them."""

from dataclasses import replace
from typing import Any

from isogloss.core.runs import Adjust, Align
from isogloss.data.examples import Translation
from isogloss.data.files import disk_file
from isogloss.data.pharaoh import format_aligned, read_aligned
from isogloss.encoders import save_model
from isogloss.experiments.workshop import WORK, Made, Workshop
from isogloss.training.setting import AdjustSetting

LINKS = "links.txt"
"""The word alignments of a run: Pharaoh's format with scores, a line a translation."""


def bitext_of(shop: Workshop, run: Align) -> list[Translation]:
    """Read the translations a finished run aligned, with its links."""
    links = read_aligned(disk_file(shop.store.folder(run) / LINKS))
    pairs = _read(shop, run)
    return [replace(pair, links=found.links, possible=()) for pair, found in zip(pairs, links, strict=True)]
