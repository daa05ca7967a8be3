"""The letters of claims run on from paper to paper: in one report each stands for one claim."""

import re
from collections import defaultdict
from pathlib import Path

from isogloss import reports

FOLDER = Path(reports.__file__).parent
MADE = re.compile(r"\b_?(?:[Cc]laim|both)\(\s*\"([a-z])\"")


def test_no_two_claims_have_one_letter():
    makers = defaultdict(set)
    for path in FOLDER.glob("*claims.py"):
        for letter in MADE.findall(path.read_text(encoding="utf-8")):
            makers[letter].add(path.name)
    assert {letter: names for letter, names in makers.items() if len(names) > 1} == {}
    assert sorted(makers) == [chr(ord("a") + place) for place in range(len(makers))]
