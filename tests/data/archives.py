"""Archives made in memory: honest ones and traps."""

import io
import tarfile
import zipfile
from collections.abc import Iterable

Members = Iterable[tuple[str, bytes]]


def zipped(members: Members, **how: object) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = int(how.get("mode", 0o100644)) << 16
            archive.writestr(info, body)
    return stream.getvalue()


def tarred(members: Members, *, packed: bool = True) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz" if packed else "w") as archive:
        for name, body in members:
            info = tarfile.TarInfo(name)
            info.size = len(body)
            archive.addfile(info, io.BytesIO(body))
    return stream.getvalue()


def tarred_special(name: str, kind: bytes, to: str = "") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, to
        archive.addfile(info)
    return stream.getvalue()
