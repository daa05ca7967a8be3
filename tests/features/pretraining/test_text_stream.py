import errno

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core import atomic_files
from isogloss.core.errors import DataError, StorageError
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining.streams import is_stream, open_stream, write_stream
from isogloss.tasks import masked_lm
from isogloss.tasks.masked_lm import subwords_of
from made_up import TEXT

WORDS = st.sampled_from([*TEXT.split(), "xyz", "日"])
LINES = st.lists(st.lists(WORDS, max_size=12).map(" ".join), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def tokenizer(bert_folder):
    return load_tokenizer(bert_folder)


def naive(lines, tokenizer, longest):
    """Subwords of every line and a separator. A start at each line and after every ``longest`` subwords."""
    flat = []
    starts = []
    for line in lines:
        ids = tokenizer(line, add_special_tokens=False)["input_ids"]
        if ids:
            starts += [len(flat) + place for place in range(0, len(ids), longest)]
            flat += [*ids, tokenizer.sep_token_id]
    return flat, starts


@given(lines=LINES, longest=st.integers(1, 9), joint_value=st.sampled_from([1, 3, 2000]))
def test_a_stream_is_its_lines_in_order(tokenizer, tmp_path_factory, lines, longest, joint_value):
    flat, starts = naive(lines, tokenizer, longest)
    folder = tmp_path_factory.mktemp("stream") / "en"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masked_lm, "LINES_PER_CALL", joint_value)
        if not flat:
            with pytest.raises(DataError, match="en:"):
                write_stream(iter(lines), tokenizer, folder, longest=longest)
            assert not is_stream(folder)
            return
        stream = write_stream(iter(lines), tokenizer, folder, longest=longest)
    assert stream.subwords.tolist() == flat
    assert stream.starts.tolist() == starts
    assert len(stream) == len(flat)
    again = open_stream(folder)
    assert np.array_equal(again.subwords, stream.subwords)
    assert np.array_equal(again.starts, stream.starts)


def test_a_block_begins_where_reading_may_and_is_always_full(tokenizer, tmp_path):
    stream = write_stream([TEXT, "the cat", TEXT], tokenizer, tmp_path, longest=7)
    for place, start in enumerate(stream.starts):
        block = stream.block(place, 10)
        assert len(block) == 10
        first_start = min(start, len(stream) - 10)
        assert block.tolist() == stream.subwords[first_start : first_start + 10].tolist()
    assert stream.block(0, 500).tolist() == stream.subwords.tolist()  # Shorter than a block: all of it.


def test_a_stream_is_mapped_not_loaded(tokenizer, tmp_path):
    assert isinstance(write_stream([TEXT], tokenizer, tmp_path, longest=7).subwords, np.memmap)


def test_a_stream_that_was_interrupted_is_none(tokenizer, tmp_path):
    def stopping():
        yield TEXT
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(masked_lm, "LINES_PER_CALL", 1)
        write_stream(stopping(), tokenizer, tmp_path, longest=7)
    assert not is_stream(tmp_path)
    whole_stream = write_stream([TEXT], tokenizer, tmp_path, longest=7)
    assert len(whole_stream) == len(naive([TEXT], tokenizer, 7)[0])


def test_two_processes_that_write_the_same_stream_do_not_disturb_each_other(tokenizer, tmp_path, monkeypatch):
    """One of them was paused, and resumes after the other has taken its run over."""
    monkeypatch.setattr(masked_lm, "LINES_PER_CALL", 1)
    text = [TEXT, "the cat", TEXT]

    def pause_reading():
        yield text[0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(atomic_files, "this_process", lambda: "another-7-7")
            write_stream(text, tokenizer, tmp_path, longest=7)
        yield from text[1:]

    assert (
        write_stream(pause_reading(), tokenizer, tmp_path, longest=7).subwords.tolist()
        == (naive(text, tokenizer, 7)[0])
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["starts.bin", "subwords.bin"]


def test_lines_are_read_once_and_never_all_at_once(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(masked_lm, "LINES_PER_CALL", 10)
    ahead_value = []

    def lines():
        for index in range(100):
            ahead_value.append(index)
            yield "the cat"

    for value, _ in enumerate(subwords_of(lines(), tokenizer)):
        assert len(ahead_value) <= value + 10 + 1
    assert len(ahead_value) == 100


@pytest.mark.parametrize("failing", ["os.mkdir", "os.open", "os.replace"])
def test_a_full_disk_is_a_storage_error(tokenizer, tmp_path, monkeypatch, failing):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(failing, full)
    with pytest.raises(StorageError, match="device"):
        write_stream([TEXT], tokenizer, tmp_path / "en", longest=7)
    monkeypatch.undo()
    assert not is_stream(tmp_path / "en")


def test_an_error_of_the_text_is_not_blamed_on_the_disk(tokenizer, tmp_path):
    def missing():
        raise FileNotFoundError("corpus.txt")
        yield

    with pytest.raises(FileNotFoundError, match=r"corpus\.txt"):
        write_stream(missing(), tokenizer, tmp_path, longest=7)
