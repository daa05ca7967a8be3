"""The interface of word aligners, and the table that lists them."""

from typing import TYPE_CHECKING

from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.aligners.setting import Aligner

ALIGNERS: "Registry[type[Aligner]]" = Registry(
    {}, group="aligners", interface="isogloss.aligners.setting:Aligner"
)
"""[align]: how words of translations are linked."""
