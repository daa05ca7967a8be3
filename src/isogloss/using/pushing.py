"""Pushing a model to the Hugging Face hub: its export in one commit, under the login of this machine."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from isogloss.core.caches import user_cache
from isogloss.core.errors import ConfigError, RunError, one_line
from isogloss.core.processes import this_process
from isogloss.core.records import sweep, writing
from isogloss.core.version import VERSION
from isogloss.using.exporting import CARD, card, export
from isogloss.using.fine_tuned import FineTuned

LOGIN = "Log in with a token that may write: hf auth login (or set HF_TOKEN)."


@dataclass(frozen=True, kw_only=True)
class PushOptions:
    """Where a model goes."""

    name: str
    """Its name on the hub: owner/name, or a name of one's own account."""
    private: bool = False
    revision: str = ""
    """Branch; made where it is missing. main when empty."""
    update: bool = False
    """Whether a repository that is there already gets a new commit."""


NO_BRANCH = re.compile(r"[\s~^:?*\[\\]|\.\.|//|@\{|^[-/.]|[/.]$|\.lock$")
"""What a name of a branch has nowhere, by git's rules."""


def check_names(options: PushOptions) -> None:
    """Raise ConfigError for a name or a branch that the hub does not take."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(options.name)
    except HFValidationError as error:
        raise ConfigError(
            f"push: {options.name!r} is no name of a model on the hub ({error}). Give owner/name."
        ) from error
    if found := NO_BRANCH.search(options.revision):
        raise ConfigError(
            f"push: --revision {options.revision!r}: {found.group()!r} may not stand there in the name of a "
            f"branch. Give one as in v1 or main."
        )


def check_login() -> None:
    """Raise ConfigError where the hub's library has no token."""
    from huggingface_hub import get_token

    if get_token() is None:
        raise ConfigError(f"push: no login to the Hugging Face hub is on this machine. {LOGIN}")


def push(model: FineTuned, options: PushOptions) -> str:
    """Upload a model's export in one commit and return the commit's address.

    ConfigError without a login or permission and where the name is taken; RunError where the hub cannot be
    reached or refuses the files.
    """
    from huggingface_hub import HfApi

    check_names(options)
    check_login()
    hub = HfApi()
    with _swept_folder(user_cache() / "push") as temporary:
        folder = export(model, temporary / "model")
        with _explained(options, hub.endpoint):
            private = options.private or None
            name = hub.create_repo(options.name, private=private, exist_ok=options.update).repo_id
            if options.revision:
                hub.create_branch(name, branch=options.revision, exist_ok=True)
            commit = hub.upload_folder(
                repo_id=name,
                folder_path=with_card(model, folder, name),
                revision=options.revision or None,
                commit_message=f"{model.provenance.title} (run {model.provenance.run}, isogloss {VERSION})",
                delete_patterns="*" if options.update else None,  # No file of an earlier model stays.
            )
    return str(commit.commit_url)


@contextmanager
def _swept_folder(path: Path) -> Iterator[Path]:
    """Yield a folder for this user alone; remove it, and those of processes that were killed."""
    sweep(path)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix=f".{path.name}.{this_process()}.", suffix=".tmp", dir=path.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def with_card(model: FineTuned, folder: Path, name: str) -> Path:
    """Let the card of an exported model load it by its name on the hub; return the folder."""
    (folder / CARD).write_text(card(model, onnx=False, place=name), encoding="utf-8")
    return folder


@contextmanager
def _explained(options: PushOptions, endpoint: str) -> Iterator[None]:
    """Turn an error of the hub, or on the way to it, into one that says what to do.

    Its own is not kept as the cause: the hub may have answered with the token, which a traceback would show.
    """
    from huggingface_hub.errors import HfHubHTTPError

    # The error of its HTTP client, which differs by version.
    client_error: type[Exception] = HfHubHTTPError.__mro__[1]
    try:
        yield
    except HfHubHTTPError as error:
        said = error.server_message or str(error)
        raise _refused(options, error.response.status_code, said) from None
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"push: {endpoint} does not answer as the Hugging Face hub does ({one_line(error)}). Look "
            f"whether HF_ENDPOINT is right."
        ) from None
    except (client_error, ConnectionError) as error:
        raise RunError(
            f"push: the Hugging Face hub ({endpoint}) cannot be reached ({one_line(error)}). "
            f"Run the same command again where it can; what was uploaded already is not uploaded twice."
        ) from None


def _refused(options: PushOptions, status: int, said: str) -> ConfigError | RunError:
    said = " ".join(said.split())
    if status == 401:
        return ConfigError(f"push: the hub does not know the login of this machine ({said}). {LOGIN}")
    if status == 403:
        return ConfigError(
            f"push: this login may not write to {options.name} ({said}). Take a token that may write, or a "
            f"name of your own account."
        )
    if status == 409:
        return ConfigError(
            f"push: {options.name} is there already. Choose another name, or give it a new commit "
            f"by --update."
        )
    return RunError(
        f"push: the hub refused {options.name} ({status}: {said}). Mend what it says, and push again."
    )
