"""Existing translation models."""

from functools import lru_cache

from isogloss.runs.pretrained import Pretrained, identify_folder, model_folder, on_hub


def translation_model(source: str) -> Pretrained:
    """Identify an existing translation model, independently of its path on this machine."""
    from isogloss.features.translation.seq2seq_models import seq2seq_folder

    folder = model_folder(source)
    if folder is None:
        return on_hub(source)
    seq2seq_folder(folder)
    return identify_folder(folder)


@lru_cache(maxsize=256)
def check_subwords(folder: str, source: str, target: str) -> None:
    """Raise ModelError unless the translation model in a folder has subwords for these languages."""
    from isogloss.features.translation.seq2seq_models import load_subwords

    load_subwords(folder, (source, target))
