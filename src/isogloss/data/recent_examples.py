"""Splits as they were read: runs, and the languages of one, ask for the same few again and again."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable

from isogloss.data.examples import Example


class RecentExamples:
    """Splits as they were read, the least recently asked for forgotten first."""

    def __init__(self, limit: int) -> None:
        """Keep up to ``limit`` examples of all splits together; a longer split is never kept."""
        self._limit = limit
        self._kept: OrderedDict[Hashable, tuple[Example, ...]] = OrderedDict()

    def examples(self, key: Hashable, read: Callable[[], Iterable[Example]]) -> list[Example]:
        """Return the examples kept under a key, which must name their file's state too, or read them."""
        found = self._kept.pop(key, None)
        if found is None:
            found = tuple(read())
        if len(found) <= self._limit:
            self._kept[key] = found
            while sum(map(len, self._kept.values())) > self._limit:
                self._kept.popitem(last=False)
        return list(found)
