"""Texts chunk by chunk: bounded memory, and what was translated before an interruption is not done again.

A chunk is written whole or not at all, under a hash of its texts and of how they are translated; a folder
left by something else, or used several times, is therefore harmless.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

from isogloss.core.atomic_files import atomic_file
from isogloss.core.identity import identity
from isogloss.data.label_projection import Translated
from isogloss.translators.setting import TranslateSetting

CHUNK = 1024
"""Texts of one chunk: enough to sort by length with profit, few enough to be done again."""

TranslateChunk = Callable[[list[str]], list[Translated]]


def in_chunks(
    texts: Iterable[str], setting: TranslateSetting, translator: object, load: Callable[[], TranslateChunk]
) -> Iterator[Translated]:
    """Give one translation for each text, in order; nothing is loaded when all are translated already."""
    loaded: list[TranslateChunk] = []
    remaining, done = iter(texts), 0
    how = f"{identity(translator)} {setting.source} {setting.target} {setting.model} {setting.precision}"
    setting.told(done)
    for chunk in iter(lambda: list(islice(remaining, CHUNK)), []):
        content = sha256(json.dumps([how, *chunk]).encode()).hexdigest()
        path = setting.folder / f"chunk-{content[:32]}.jsonl"
        found = _read(path, content, len(chunk))
        if found is None:
            loaded = loaded or [load()]
            found = loaded[0](chunk)
            _write(path, content, found)
        yield from found
        done += len(chunk)
        setting.told(done)


def _read(path: Path, content: str, count: int) -> list[Translated] | None:
    """Return a chunk that was translated before; None when it was another one, or damaged."""
    if not path.is_file():
        return None
    try:
        first, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
        pairs = [json.loads(line) for line in lines]
    except ValueError:
        return None
    if first != content or len(pairs) != count:
        return None
    return [Translated(text, cuts) for text, cuts in pairs]


def _write(path: Path, content: str, found: list[Translated]) -> None:
    with atomic_file(path) as file:
        file.write(f"{content}\n")
        file.writelines(f"{json.dumps([one.text, one.cuts], ensure_ascii=False)}\n" for one in found)
