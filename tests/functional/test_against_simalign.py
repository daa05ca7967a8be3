"""Links by an encoder's states equal the links of simalign, an independent implementation by its authors."""

import importlib.util
import json

import pytest
from simalign_links import FILE, LAYERS, MATCHINGS, compute_links, sentences

import isogloss

LINKS = json.loads(FILE.read_text(encoding="utf-8"))


def ours(matching, layer):
    """Return our links, as lists."""
    first_item, second = zip(*sentences(), strict=True)
    links = isogloss.align(
        first_item,
        second,
        *isogloss.load_encoder("shipped"),
        matching=matching,
        layer=layer,
        precision="float32",
    )
    return [[list(link) for link in pair_link] for pair_link in links]


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("matching", MATCHINGS)
def test_links_are_those_that_simalign_found(matching, layer):
    links = ours(matching, layer)
    assert len(links) == 80 and sum(len(value) for value in links) > 200
    assert links == LINKS[f"{matching} {layer}"]


@pytest.mark.skipif(importlib.util.find_spec("simalign") is None, reason="simalign is not installed")
def test_the_links_on_record_are_those_of_simalign():
    assert compute_links() == LINKS
