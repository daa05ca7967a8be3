"""Do rows of text fit what an encoder was trained on? Longer ones measure positions it never learned."""

from isogloss.diagnostics.setting import MeasureSetting


def warn_of_length(setting: MeasureSetting, where: str, field: str, longest: int) -> None:
    """Warn when the ``longest`` row, in subwords, is beyond those that the encoder was pretrained on.

    Embeddings of positions that no row reached keep their first, random weights: losses there are high, and
    gradients large. ``field`` of the diagnostic ``where`` sets the length. Of encoders made elsewhere nothing
    is known.
    """
    known = setting.subjects[0].trained_length
    if known is not None and longest > known:
        setting.warn(
            f"{where}: rows of up to {longest} subwords, but the encoder was pretrained on rows of {known}: "
            f"what it never learned can outweigh the rest of losses and gradients. Set {field} = {known}."
        )
