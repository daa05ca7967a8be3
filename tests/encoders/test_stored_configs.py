"""Configurations read without transformers equal those of transformers, whatever a config.json lacks."""

import json
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoConfig

from isogloss.core.errors import ModelError
from isogloss.encoders import FAMILIES
from isogloss.encoders.families import has_masked_lm_head, has_text_head, is_causal
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.stored_configs import COUNTS, FLAGS, NAMES, read_stored_config

OTHERS = ("hidden_act", "pad_token_id", "id2label", "position_buckets")
"""Fields that are never read from the file itself."""

MISSING = object()


@pytest.fixture(params=sorted(FAMILIES.places))
def folder(request, tmp_path):
    """Return the folder of a configuration of each family."""
    config = AutoConfig.for_model(request.param)
    config.architectures = ["AnyForMaskedLM"]
    config.save_pretrained(tmp_path)
    return tmp_path


def rewrite(folder, **changes):
    """Change fields of a config.json. None removes a field."""
    path = folder / "config.json"
    fields = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in fields.items() if value is not None}))


def assert_equal(folder):
    stored_config = read_stored_config(folder)
    loaded_encoder_config = load_encoder_config(folder)
    for name in (*COUNTS, *FLAGS, *NAMES, *OTHERS, "model_type"):
        assert getattr(stored_config, name, MISSING) == getattr(loaded_encoder_config, name, MISSING), name
    family = FAMILIES[loaded_encoder_config.model_type]
    assert family.languages(stored_config) == family.languages(loaded_encoder_config)
    assert family.longest_text(stored_config) == family.longest_text(loaded_encoder_config)
    for decide in (has_masked_lm_head, has_text_head, is_causal):
        assert decide(stored_config) == decide(loaded_encoder_config)


def test_fields_of_every_family_are_those_of_transformers(folder):
    assert_equal(folder)


@pytest.mark.parametrize("name", [*COUNTS, *FLAGS, "architectures"])
def test_what_a_file_leaves_out_is_the_default_of_transformers(folder, name):
    rewrite(folder, **{name: None})
    assert_equal(folder)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from((*COUNTS, *FLAGS, *NAMES, "id2label")),
    value=st.one_of(
        *(st.integers(-1, 9), st.booleans(), st.floats(0, 9), st.text(max_size=2)),
        *(st.lists(st.integers(0, 3), max_size=2), st.dictionaries(st.text("01a", max_size=1), st.text("x"))),
    ),
)
def test_odd_values_are_read_as_transformers_reads_them_or_refused_with_it(tmp_path_factory, name, value):
    folder = tmp_path_factory.mktemp("config")
    AutoConfig.for_model("bert").save_pretrained(folder)
    rewrite(folder, **{name: value})
    try:
        load_encoder_config(folder)
    except ModelError:
        with pytest.raises(ModelError):
            _ = read_stored_config(folder).hidden_size
    else:
        assert_equal(folder)


def test_facts_of_a_whole_configuration_need_no_transformers(tmp_path):
    AutoConfig.for_model("bert", architectures=["BertForMaskedLM"]).save_pretrained(tmp_path)
    program = (
        "import sys; from isogloss.runs.estimates import read_facts; "
        "print(read_facts(sys.argv[1], '').dim); sys.exit('transformers' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", program, str(tmp_path)], text=True) == "768\n"
