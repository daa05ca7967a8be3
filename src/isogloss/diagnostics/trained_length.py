"""Warn where rows of text are longer than those an encoder was pretrained on."""

from isogloss.diagnostics.setting import MeasureSetting


def warn_of_length(setting: MeasureSetting, where: str, field: str, longest: int) -> None:
    """Warn when the ``longest`` row, in subwords, exceeds the rows that the encoder was pretrained on.

    Position embeddings beyond these keep their random initial weights, which makes losses high and gradients
    large. ``field`` of the diagnostic ``where`` sets the length. Nothing is known of
    encoders that were not pretrained here.
    """
    known = setting.subjects[0].trained_length
    if known is not None and longest > known:
        setting.warn(
            f"{where}: rows of up to {longest} subwords, but the encoder was pretrained on rows of {known}: "
            f"what it never learned can outweigh the rest of losses and gradients. Set {field} = {known}."
        )
