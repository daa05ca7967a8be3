"""Records that share their equal parts equal those that do not, types of numbers included."""

import json

from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.records import Record
from isogloss.reports.sharing import Shared

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 2)
    | st.sampled_from([0.0, 1.0, 0.5])
    | st.text("ab", max_size=2),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inside, max_size=3)
    ),
    max_leaves=12,
)


@given(st.lists(VALUES, min_size=1, max_size=5))
def test_what_is_shared_is_written_as_before(values):
    shared = Shared()
    assert json.dumps([shared.part(item) for item in values]) == json.dumps(values)


def test_equal_parts_of_records_are_one_object_and_rows_share_their_texts():
    shared = Shared()
    texts = [json.dumps({"encoder": {"layers": 4, "dim": [256]}, "seed": seed}) for seed in (0, 1)]
    first_record, second = (
        shared.record(
            Record(
                id=str(seed), kind="fine-tune", title="", run=json.loads(text), rows=[{"metric": "f" + "1"}]
            )
        )
        for seed, text in enumerate(texts)
    )
    assert first_record.run["encoder"] is second.run["encoder"]
    assert [first_record.run["seed"], second.run["seed"]] == [0, 1]
    assert first_record.rows[0]["metric"] is second.rows[0]["metric"]
    assert first_record.rows == [{"metric": "f1"}]


def test_numbers_of_other_types_are_other_parts():
    whole_result, fraction, truth = (Shared().part(value) for value in ({"a": 1}, {"a": 1.0}, {"a": True}))
    assert [type(part["a"]) for part in (whole_result, fraction, truth)] == [int, float, bool]
