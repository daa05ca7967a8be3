"""The kinds and languages of language modules, and which are valid."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from isogloss.core.errors import ConfigError, check_named, did_you_mean, unknown_name
from isogloss.core.languages import BOTH, check_language, language_of_text
from isogloss.core.run_parts import Modules
from isogloss.encoders import FAMILIES
from isogloss.encoders.families import require

WHERE = "modules"

FEED_FORWARD = "feed-forward"
ATTENTION = "attention"
ADAPTER = "adapter"
SHARED_ADAPTER = "shared-adapter"
EMBEDDING = "embedding"
KINDS = (FEED_FORWARD, ATTENTION, ADAPTER, SHARED_ADAPTER, EMBEDDING)


ADAPTERS = (ADAPTER, SHARED_ADAPTER)
"""The kinds that are bottlenecks."""

OF_ADAPTERS = ("after", "invertible", "normed", "activation", "leave_out")
"""The settings that apply only to adapters."""

ACTIVATIONS = (None, "relu", "swish")
"""Activations of adapters. None stands for GELU, which the encoders themselves use."""

COPIES = (FEED_FORWARD, ATTENTION)
"""The kinds that are copies of the encoder's modules, except for the first language, which uses the
originals."""


@dataclass(frozen=True)
class LanguageModules:
    """The settings and the languages of a model's language modules."""

    modules: Modules
    languages: tuple[str, ...]
    """The languages with modules, in order. With copies, the first uses the encoder's own layers."""

    def of(self, language: str) -> str:
        """Return the language whose modules a language, or text such as en-sw, uses.

        It is ``SHARED_ADAPTER`` if all languages share all modules. Raises ConfigError for a language without
        modules.
        """
        plain_language = language_of_text(language)
        if are_shared(self.modules):
            return SHARED_ADAPTER
        if plain_language in self.languages:
            return plain_language
        if plain_language and BOTH not in plain_language and self.modules.fallback:
            return self.modules.fallback
        raise language_error(
            plain_language,
            self.languages,
            has_modules=f"this encoder has {_per_language(self.modules)} modules for each language",
            lacks="and none for",
            then=f"Pretrain it with {plain_language} too, or choose the language whose modules read text "
            "in languages without modules (fallback).",
        )


def are_shared(modules: Modules) -> bool:
    """Return whether all languages, known or not, share all modules."""
    return modules.kind == SHARED_ADAPTER and not modules.embedding


def _per_language(modules: Modules) -> str:
    return EMBEDDING if modules.kind == SHARED_ADAPTER else modules.kind


def language_error(
    language: str, codes: Sequence[str], *, has_modules: str, lacks: str, then: str
) -> ConfigError:
    """Return the error for a language without modules or map."""
    if not language:
        subject = "but the language it reads is unspecified."
        then = "Name it (--language, or language=)."
    elif BOTH in language:
        subject = f"and {language} is two languages in one input."
        then = "Take an encoder without modules or maps for languages."
    else:
        subject = f"{lacks} {language!r}.{did_you_mean(language, codes)}"
    return ConfigError(f"{has_modules}, {subject} Known: {', '.join(codes)}. {then}")


def check_modules(modules: Modules, languages: tuple[str, ...], *, dim: int) -> None:
    """Raise ConfigError for modules that are invalid for these languages and hidden size ``dim``."""
    check_named(WHERE, "kind of module", KINDS, modules.kind)
    if modules.after not in (None, FEED_FORWARD):
        raise unknown_name(f"{WHERE}: after", "place of adapters", str(modules.after), [FEED_FORWARD])
    for language in languages:
        check_language(language, WHERE)
    if not languages or len(set(languages)) < len(languages):
        names = ", ".join(languages) or "(none)"
        raise ConfigError(f"{WHERE}: each language has modules once; found {names}. Name each once.")
    check_reduction(modules.reduction, dim, WHERE)
    adapter_settings = [name for name in OF_ADAPTERS if getattr(modules, name)]
    if modules.kind not in ADAPTERS and adapter_settings:
        raise ConfigError(
            f"{WHERE}: {', '.join(adapter_settings)}: this describes adapters, not {modules.kind} modules. "
            f"Remove it, or choose the kind {ADAPTER} or {SHARED_ADAPTER}."
        )
    if modules.embedding and (modules.invertible or modules.kind == EMBEDDING):
        existing = "the kind embedding" if modules.kind == EMBEDDING else "invertible"
        raise ConfigError(
            f"{WHERE}: embedding adds a vector at the embeddings, where {existing} adds something already. "
            f"Leave one of them out."
        )
    if modules.invertible and dim % 4:
        raise ConfigError(
            f"{WHERE}: invertible: these adapters are a quarter as wide as the states, and {dim} has none. "
            f"Remove invertible."
        )
    check_fallback(modules.fallback, languages)


def check_placement(modules: Modules, *, layers: int, family: str) -> None:
    """Raise ConfigError unless ``leave_out`` names layers of an encoder and leaves at least one.

    ``layers`` is the number of the encoder's layers. Raises ModelError for normed adapters in a family whose
    sub-layers do not end in a norm.
    """
    if modules.normed:
        require(FAMILIES[family], "post-norm", use=f"{WHERE}: normed adapters read the states behind a norm")
    omitted_layers = modules.leave_out or ()
    if any(abs(layer) not in range(1, layers + 1) for layer in omitted_layers) or (
        omitted_layers and len(layers_left_out(modules, layers)) == layers
    ):
        numbers = ", ".join(str(layer) for layer in omitted_layers)
        raise ConfigError(
            f"{WHERE}: leave_out: found {numbers}; this encoder has the layers 1 to {layers}, and keeps one "
            f"at least. Give some of these, or -1 for the last."
        )


def layers_left_out(modules: Modules, layers: int) -> set[int]:
    """Return the numbers, from 1 to ``layers``, of the layers without adapters."""
    return {layer if layer > 0 else layers + 1 + layer for layer in modules.leave_out or ()}


def check_reduction(reduction: int, dim: int, where: str) -> None:
    """Raise ConfigError for a bottleneck without width in states ``dim`` wide."""
    if not 1 <= reduction <= dim:
        raise ConfigError(
            f"{where}: a bottleneck of {dim} / {reduction} (reduction): nothing goes through. Choose a "
            f"reduction from 1 to {dim}; 4 is usual."
        )


def check_fallback(fallback: str, languages: tuple[str, ...]) -> None:
    """Raise ConfigError for a fallback language without modules."""
    if fallback:
        check_named(f"{WHERE}: fallback", "language with modules", languages, fallback)


def check_same_modules(info: LanguageModules, modules: Modules) -> None:
    """Raise ConfigError unless an encoder has the given kind and shape of modules."""
    if replace(modules, fallback=info.modules.fallback) != info.modules:
        existing, request = (
            ", ".join(f"{name} = {value}" for name, value in asdict(settings).items() if value)
            for settings in (info.modules, modules)
        )
        raise ConfigError(
            f"{WHERE}: this encoder has other modules already ({existing}), not {request}. Set the existing "
            f"ones, or start from an encoder without modules."
        )
