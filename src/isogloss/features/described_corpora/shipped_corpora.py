"""The descriptions of corpora that come with the package."""

from pathlib import Path

SHIPPED = Path(__file__).with_name("shipped")


def list_shipped() -> dict[str, Path]:
    """Return the paths of the package's descriptions by name. Their files are below the data folder."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.toml"))}
