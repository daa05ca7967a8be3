import pytest

from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import DataError
from isogloss.data.examples import Translation
from isogloss.features.alignment.given_links import GivenLinks


def test_the_links_of_the_bitext_are_taken_in_order():
    pairs = [
        Translation(id="1", first="a b", second="c d", links=((1, 0), (0, 1)), possible=((0, 0),)),
        Translation(id="2", first="a", second="c", links=()),
    ]
    assert [link.links for link in GivenLinks().align(AlignSetting(pairs=pairs))] == [((0, 1), (1, 0)), ()]


def test_bitext_without_links_is_refused():
    plain_align_setting = AlignSetting(pairs=[Translation(id="7", first="a", second="b")])
    with pytest.raises(DataError, match=r"translation '7'.*links.*aligner"):
        GivenLinks().align(plain_align_setting)
