"""The interface of translators, and the table that lists them.

Existing translations need no translator: corpora read them, in XTREME's translate-train and translate-test
layouts, as examples of a pair such as ``en-sw``.
"""

from typing import TYPE_CHECKING

from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.translators.setting import Translator

TRANSLATORS: "Registry[type[Translator]]" = Registry(
    {}, group="translators", interface="isogloss.translators.setting:Translator"
)
"""[translate]: what translates texts."""
