"""Rows of mined bitext."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class MiningRow:
    """Translations mined from comparable text at the best threshold on dev, in one layer."""

    frame: ClassVar[str] = "mining"
    model: str
    first: str
    second: str
    split: str
    layer: int
    centred: bool
    margin: str
    neighbours: int
    sentences_first: int
    sentences_second: int
    gold: int
    mined: int
    threshold: float
    precision: float
    recall: float
    f1: float


MINING = (MiningRow,)
"""Classes of rows by diagnostic."""
