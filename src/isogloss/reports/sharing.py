"""Share equal parts of many records as one object: the runs of a study differ only in a few fields."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from sys import intern
from typing import Any

from isogloss.core.records import Record, Row


@dataclass(frozen=True)
class Shared:
    """The parts of the records read so far."""

    _scalars: dict[tuple[type, Any], Any] = field(default_factory=dict)
    _parts: dict[tuple[type, bytes], Any] = field(default_factory=dict)
    """By class and the addresses of what is inside, which stay as long as these tables."""

    def record(self, record: Record) -> Record:
        """Return an equal record whose run shares all equal parts, and whose rows share names and texts."""
        needs = tuple(self._scalar(need) for need in record.needs)
        warnings = tuple(self._scalar(warning) for warning in record.warnings)
        return replace(
            record,
            id=self._scalar(record.id),
            run=self.part(record.run),
            needs=needs,
            rows=self._rows(record.rows),
            warnings=warnings,
            read=self._scalar(record.read),
        )

    def part(self, value: Any) -> Any:
        """Return the part of JSON that equals a value, types of numbers included."""
        if isinstance(value, dict):
            inside = {
                intern(name): self.part(child) if isinstance(child, dict | list) else self._scalar(child)
                for name, child in value.items()
            }
            addresses = array("Q", [*map(id, inside), *map(id, inside.values())])
            return self._parts.setdefault((dict, addresses.tobytes()), inside)
        if isinstance(value, list):
            items = [self.part(child) for child in value]
            return self._parts.setdefault((list, array("Q", (id(item) for item in items)).tobytes()), items)
        return self._scalar(value)

    def _scalar(self, value: Any) -> Any:
        return self._scalars.setdefault((type(value), value), value)

    def _rows(self, rows: Sequence[Row]) -> list[Row]:
        return [
            {
                intern(name): self._scalar(value) if isinstance(value, str) else value
                for name, value in row.items()
            }
            for row in rows
        ]
