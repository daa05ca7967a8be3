"""Pushing a model to the Hugging Face hub: its export in one commit, under the login of this machine."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha1, sha256
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core import VERSION
from isogloss.core.atomic_files import make_folder, sweep, temporary_name, writing
from isogloss.core.errors import ConfigError, RunError, one_line
from isogloss.core.shared_files import file_size, list_files, make_new_folder, open_file, remove
from isogloss.core.untrusted import user_cache
from isogloss.features.publishing.encoder_exports import (
    PretrainedEncoder,
    encoder_card,
    encoder_of_run,
    export_encoder,
)
from isogloss.features.publishing.exporting import CARD, card, export
from isogloss.features.publishing.licences import non_commercial
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.models import load_model

if TYPE_CHECKING:
    from huggingface_hub import HfApi

HUB_FILE = ".gitattributes"
"""File that the hub itself puts into a new repository."""

LOGIN = "Log in with a token that has write access: hf auth login (or set HF_TOKEN)."


@dataclass(frozen=True, kw_only=True)
class PushOptions:
    """The repository of a model on the hub."""

    name: str
    """owner/name, or a name in the account of the login."""
    private: bool = False
    revision: str = ""
    """Branch, which is created if it is missing. Default: main."""
    update: bool = False
    """Whether an existing repository gets a new commit."""


NO_BRANCH = re.compile(r"[\s~^:?*\[\\]|\.\.|//|@\{|^[-/.]|[/.]$|\.lock$")
"""Patterns that git forbids in the name of a branch."""


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
    if match := NO_BRANCH.search(options.revision):
        raise ConfigError(
            f"push: --revision {options.revision!r}: {match.group()!r} is not allowed there in the name "
            f"of a branch. Give one as in v1 or main."
        )


def check_login() -> None:
    """Raise ConfigError where the hub's library has no token."""
    from huggingface_hub import get_token

    if get_token() is None:
        raise ConfigError(f"push: this machine is not logged in to the Hugging Face hub. {LOGIN}")


@dataclass(frozen=True)
class Exportable:
    """An upload: functions that write its folder and its card, and its title."""

    write: Callable[..., Path]
    card: Callable[..., str]
    """Takes the ``address`` that the card loads it by."""
    title: str
    warning: str = ""
    """Marks of a licence that forbids commercial use."""

    def with_card(self, folder: Path, name: str) -> Path:
        """Make the model's card load it by its name on the hub, and return its folder."""
        (folder / CARD).write_text(self.card(address=name), encoding="utf-8")
        return folder


def load_exportable(folder: str | Path) -> Exportable:
    """Load what is exported of a run: its encoder, or its fine-tuned model."""
    encoder = encoder_of_run(Path(folder))
    return exportable(load_model(folder)) if encoder is None else exportable_encoder(encoder)


def exportable(model: FineTuned) -> Exportable:
    """Return the upload of a fine-tuned model."""
    provenance = model.provenance
    title = f"{provenance.title} (run {provenance.run}, isogloss {VERSION})"
    return Exportable(
        partial(export, model), partial(card, model, onnx=False), title, non_commercial(provenance)
    )


def exportable_encoder(encoder: PretrainedEncoder) -> Exportable:
    """Return the upload of an encoder."""
    title = f"{encoder.record.title} (run {encoder.record.id}, isogloss {VERSION})"
    return Exportable(partial(export_encoder, encoder), partial(encoder_card, encoder), title)


def push_model(
    model: FineTuned, *, name: str, private: bool = False, revision: str = "", update: bool = False
) -> str:
    """Upload a fine-tuned model and return the commit's address."""
    return push(exportable(model), PushOptions(name=name, private=private, revision=revision, update=update))


def push(model: Exportable, options: PushOptions) -> str:
    """Upload a model's export in one commit and return the commit's address.

    ConfigError without a login or permission and where the name is taken; RunError where the hub cannot be
    reached or refuses the files.
    """
    from huggingface_hub import HfApi

    check_names(options)
    check_login()
    hub = HfApi()
    with _work_folder() as work:
        folder = model.write(work / "model")
        with _explain_hub_errors(options, hub.endpoint):
            return _upload(hub, model, options, folder)


def _upload(hub: "HfApi", model: Exportable, options: PushOptions, folder: Path) -> str:
    name = hub.create_repo(options.name, private=options.private or None, exist_ok=True).repo_id
    model.with_card(folder, name)
    if not options.update and (commit := _find_earlier_commit(hub, name, options, folder)):
        return f"{hub.endpoint}/{name}/commit/{commit}"
    if options.revision:
        hub.create_branch(name, branch=options.revision, exist_ok=True)
    commit = hub.upload_folder(
        repo_id=name,
        folder_path=folder,
        revision=options.revision or None,
        commit_message=model.title,
        delete_patterns="*" if options.update else None,  # No file of an earlier model stays.
    )
    return str(commit.commit_url)


def _find_earlier_commit(hub: "HfApi", name: str, options: PushOptions, folder: Path) -> str:
    """Return the commit of a repository that contains the same files. Empty if it contains none.

    A push that was killed leaves one or the other. ConfigError for a repository with other files, or a public
    one where a private one was requested.
    """
    from huggingface_hub.hf_api import RepoFile

    if options.private and not hub.model_info(name).private:
        raise _exists(options)
    heads = {head.name: head.target_commit for head in hub.list_repo_refs(name).branches}
    files = {
        branch: {
            entry.path: entry.lfs.sha256 if entry.lfs else entry.blob_id
            for entry in hub.list_repo_tree(name, recursive=True, revision=branch)
            if isinstance(entry, RepoFile) and entry.path != HUB_FILE
        }
        for branch in heads
    }
    if not any(files.values()):
        return ""
    branch = options.revision or "main"
    if not _are_equal(files.get(branch, {}), folder):
        raise _exists(options)
    return heads[branch]


def _are_equal(digests: Mapping[str, str], folder: Path) -> bool:
    """Compare files by the digests of a repository: SHA-256 for large files, and git's digests for others."""
    if set(list_files(folder)) != digests.keys():
        return False
    for name, digest in digests.items():
        digest_of_git = sha1(f"blob {file_size(folder, name)}\0".encode(), usedforsecurity=False)
        digest_of_large = sha256()
        with open_file(folder, name) as file:
            while block := file.read(1 << 20):
                digest_of_git.update(block)
                digest_of_large.update(block)
        if digest not in (digest_of_git.hexdigest(), digest_of_large.hexdigest()):
            return False
    return True


@contextmanager
def _work_folder() -> Iterator[Path]:
    """Yield a folder for the export. Folders of killed processes are removed."""
    cache = user_cache()
    name = temporary_name("push", "tmp")
    work = cache / name
    sweep(cache, "push")
    with writing(work):
        make_folder(cache)
        make_new_folder(cache, name)
        work.chmod(0o700)  # The model may be private.
    try:
        yield work
    finally:
        remove(cache, name)


@contextmanager
def _explain_hub_errors(options: PushOptions, endpoint: str) -> Iterator[None]:
    """Turn an error of the hub, or on the way to it, into one that says what to do.

    The hub's own is not kept as its cause: what it answers may have the token in it, and tracebacks show it.
    """
    from huggingface_hub.errors import HfHubHTTPError

    # The error of its HTTP client, which differs by version.
    client_error: type[Exception] = HfHubHTTPError.__mro__[1]
    try:
        yield
    except HfHubHTTPError as error:
        raise _refusal_error(
            options, error.response.status_code, error.server_message or str(error)
        ) from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"push: the hub ({endpoint}) sent an answer that isogloss cannot read ({one_line(error)}). Check "
            f"its address (HF_ENDPOINT), and push again."
        ) from None
    except (client_error, ConnectionError) as error:
        raise RunError(
            f"push: the Hugging Face hub ({endpoint}) cannot be reached ({one_line(error)}). "
            f"Run the same command again later; nothing is uploaded twice."
        ) from error


def _refusal_error(options: PushOptions, status: int, message: str) -> ConfigError | RunError:
    message = " ".join(message.split())
    if status == 401:
        return ConfigError(f"push: the hub does not accept the login of this machine ({message}). {LOGIN}")
    if status == 403:
        return ConfigError(
            f"push: this login may not write to {options.name} ({message}). Use a token with write access, "
            f"or a name under your own account."
        )
    if status == 409:
        return _exists(options)
    return RunError(f"push: the hub refused {options.name} ({status}: {message}). Fix that, and push again.")


def _exists(options: PushOptions) -> ConfigError:
    return ConfigError(
        f"push: {options.name} exists already. Choose another name, or add a commit to it with --update."
    )
