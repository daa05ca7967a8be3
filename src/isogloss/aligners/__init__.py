"""Word aligners, one per file, and the table that lists them."""

from typing import TYPE_CHECKING

from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.aligners.setting import Aligner

ALIGNERS: "Registry[type[Aligner]]" = Registry(
    {
        "encoder": "isogloss.aligners.encoder:EncoderSimilarity",
        "given": "isogloss.aligners.given:GivenLinks",
    },
    group="aligners",
    interface="isogloss.aligners.setting:Aligner",
)
"""[align]: how words of translations are linked."""
