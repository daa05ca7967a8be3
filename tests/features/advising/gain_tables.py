"""Made-up gains of options in languages."""

from collections.abc import Mapping, Sequence

from isogloss.features.advising.evidence import Gain

LANGUAGES = ("de", "es", "ru", "vi", "sw", "yo", "hi", "ar", "zh", "tr", "fi", "th")


def gains_of(
    values_by_option: Mapping[str, Sequence[float]],
    labels: Mapping[str, int] | None = None,
    hours: Mapping[str, float] | None = None,
) -> list[Gain]:
    """Return a gain for each option and value, in the first languages. An option costs a tenth of an hour."""
    return [
        Gain(
            task="upos",
            encoder="made",
            option=option,
            language=language,
            gain=value,
            seeds=3,
            labels=(labels or {}).get(option, 0),
            hours=(hours or {}).get(option, 0.1),
        )
        for option, values in values_by_option.items()
        for language, value in zip(LANGUAGES, values, strict=False)
    ]
