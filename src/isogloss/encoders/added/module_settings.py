"""The kinds and languages of language modules, and which are valid."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from isogloss.core.errors import ConfigError, check_named, did_you_mean, unknown_name
from isogloss.core.languages import BOTH, check_language, language_of_text
from isogloss.core.run_parts import Modules

WHERE = "modules"

FEED_FORWARD, ATTENTION, ADAPTER, SHARED_ADAPTER = "feed-forward", "attention", "adapter", "shared-adapter"
EMBEDDING = "embedding"
KINDS = (FEED_FORWARD, ATTENTION, ADAPTER, SHARED_ADAPTER, EMBEDDING)

COPIES = (FEED_FORWARD, ATTENTION)
"""The kinds that are copies of the encoder's modules; the first language uses the encoder's own."""


@dataclass(frozen=True)
class LanguageModules:
    """The settings and the languages of a model's language modules."""

    modules: Modules
    languages: tuple[str, ...]
    """The languages with modules; of copies, the first uses the encoder's own layers."""

    def of(self, language: str) -> str:
        """Return the language whose modules a language, or text such as en-sw, uses; ConfigError if none."""
        code = language_of_text(language)
        if are_shared(self.modules):
            return SHARED_ADAPTER
        if code in self.languages:
            return code
        if code and BOTH not in code and self.modules.fallback:
            return self.modules.fallback
        raise language_error(
            code,
            self.languages,
            has=f"this encoder has {_per_language(self.modules)} modules for each language",
            lacks="and none for",
            then=f"Pretrain it with {code} too, or choose whose modules read what has none (fallback).",
        )


def are_shared(modules: Modules) -> bool:
    """Return whether all languages, known or not, share all modules."""
    return modules.kind == SHARED_ADAPTER and not modules.embedding


def _per_language(modules: Modules) -> str:
    return EMBEDDING if modules.kind == SHARED_ADAPTER else modules.kind


def language_error(code: str, codes: Sequence[str], *, has: str, lacks: str, then: str) -> ConfigError:
    """Return the error for a language without modules or map."""
    if not code:
        what, then = "but the language it reads is unspecified.", "Name it (--language, or language=)."
    elif BOTH in code:
        what = f"and {code} is two languages in one input."
        then = "Take an encoder without modules or maps for languages."
    else:
        what = f"{lacks} {code!r}.{did_you_mean(code, codes)}"
    return ConfigError(f"{has}, {what} Known: {', '.join(codes)}. {then}")


def check_modules(modules: Modules, languages: tuple[str, ...], *, dim: int) -> None:
    """Raise ConfigError for modules that are invalid for these languages and hidden size ``dim``."""
    check_named(WHERE, "kind of module", KINDS, modules.kind)
    if modules.after not in (None, FEED_FORWARD):
        raise unknown_name(f"{WHERE}: after", "place of adapters", str(modules.after), [FEED_FORWARD])
    for code in languages:
        check_language(code, WHERE)
    if not languages or len(set(languages)) < len(languages):
        names = ", ".join(languages) or "(none)"
        raise ConfigError(f"{WHERE}: each language has modules once; found {names}. Name each once.")
    check_reduction(modules.reduction, dim, WHERE)
    if modules.kind not in (ADAPTER, SHARED_ADAPTER) and (modules.after or modules.invertible):
        raise ConfigError(
            f"{WHERE}: after and invertible say where adapters are, and {modules.kind} modules are none. "
            f"Leave them out, or choose the kind {ADAPTER} or {SHARED_ADAPTER}."
        )
    if modules.embedding and (modules.invertible or modules.kind == EMBEDDING):
        other = "the kind embedding" if modules.kind == EMBEDDING else "invertible"
        raise ConfigError(
            f"{WHERE}: embedding adds a vector at the embeddings, where {other} adds something already. "
            f"Leave one of them out."
        )
    if modules.invertible and dim % 4:
        raise ConfigError(
            f"{WHERE}: invertible: these adapters are a quarter as wide as the states, and {dim} has none. "
            f"Leave invertible out."
        )
    check_fallback(modules.fallback, languages)


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
    """Raise ConfigError for modules of another kind, or shape, than an encoder has already."""
    if replace(modules, fallback=info.modules.fallback) != info.modules:
        existing, requested = (
            ", ".join(f"{name} = {value}" for name, value in asdict(settings).items() if value)
            for settings in (info.modules, modules)
        )
        raise ConfigError(
            f"{WHERE}: this encoder has others already ({existing}), and {requested} are asked for. Ask for "
            f"those, or start from an encoder without."
        )
