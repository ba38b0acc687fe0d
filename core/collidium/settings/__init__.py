"""The settings, each with its type, default and a line of help.

They are read from environment variables or a ``.env`` file, with the prefix ``PLATFORM_``. Names without the
prefix are ``ADMIN_TOKEN`` and, for clients, ``HF_TOKEN``. All problems are reported at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import SecretStr, ValidationError
from pydantic_settings import SettingsConfigDict

from collidium.errors import ConfigurationError
from collidium.settings.general import SQLITE_FILE, GeneralSettings, MailSettings, default_data_dir
from collidium.settings.runners import RunnerSettings
from collidium.settings.scoring import ScoringSettings
from collidium.settings.simulations import SimulationSettings
from collidium.settings.values import (
    GIBIBYTE,
    MASK,
    MEBIBYTE,
    as_written,
    sqlite_path,
    without_password,
)
from collidium.settings.web import DisplaySettings, WebSettings

__all__ = [
    "CLIENT_NAMES",
    "GIBIBYTE",
    "MASK",
    "MEBIBYTE",
    "PREFIX",
    "RENAMED",
    "SQLITE_FILE",
    "Settings",
    "as_written",
    "default_data_dir",
    "forget_secrets",
    "load",
    "sqlite_path",
    "without_password",
]
PREFIX: Final = "PLATFORM_"
#: Variables with the prefix that only clients read.
CLIENT_NAMES: Final = frozenset({"PLATFORM_BACKEND"})
#: Settings by their former names, which hold until the next release.
RENAMED: Final = {"PLATFORM_PLATFORM_TAG": "PLATFORM_TAG"}
#: The value of secrets in ``deploy/collidium.env.example``, which must be replaced. Length is not
#: checked: tests, courses and old installations have short ones.
_EXAMPLE: Final = "CHANGE-ME"
_HOW_TO_MAKE: Final = "python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one"


class Settings(
    WebSettings,
    DisplaySettings,
    RunnerSettings,
    MailSettings,
    SimulationSettings,
    ScoringSettings,
    GeneralSettings,
):
    """The settings of the platform. :func:`load` reads them."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=".env", extra="ignore", frozen=True, validate_default=True
    )

    @property
    def pays_on_public_truth(self) -> bool:
        """Whether new bests are paid where everybody can read the truth."""
        chosen = self.rewards_on_public_truth
        return self.run_mode == "mock" if chosen is None else chosen

    @property
    def public_hub(self) -> str:
        """The hub's URL for users."""
        return self.hub_url or f"{self.public_url or self.base_url}/hub"

    def missing_to_share(self) -> list[str]:
        """Return the settings that are missing for PostgreSQL, which several machines may share.

        Each machine would otherwise create its own secrets and hub.
        """
        if self.sqlite_file:
            return []
        wanted = {
            "PLATFORM_SECRET_KEY": (self.secret_key is not None, _HOW_TO_MAKE),
            "ADMIN_TOKEN": (self.admin_token is not None, _HOW_TO_MAKE),  # empty: no first operator
            "PLATFORM_HUB_URL": ("hub_url" in self.model_fields_set, "the hub's address, or `local`"),
        }
        missing = [f"{name} is not set ({how})" for name, (is_set, how) in wanted.items() if not is_set]
        public = (self.secret_key, self.admin_token, self.metrics_token)
        if any(secret and secret.get_secret_value() == _EXAMPLE for secret in public):
            missing.append(f"a secret is still {_EXAMPLE} ({_HOW_TO_MAKE})")
        return missing


def load(**overrides: object) -> Settings:
    """Read the settings. ``overrides`` (by field names) take precedence over environment and file.

    Raises :class:`~collidium.errors.ConfigurationError` with all unknown names and invalid values.
    """
    renamed, problems = _by_new_names()
    settings = None
    try:
        settings = Settings(**(renamed | overrides))  # type: ignore[arg-type]  # checked by pydantic
    except ValidationError as error:
        problems += [_problem(item["loc"], item["msg"]) for item in error.errors(include_input=False)]
    problems += [f"{name}: no such setting" for name in _unknown_names()]
    if settings is None or problems:
        raise ConfigurationError(
            "settings: " + "; ".join(problems), errors=[{"detail": problem} for problem in problems]
        )
    return settings


def _by_new_names() -> tuple[dict[str, object], list[str]]:
    """The values of settings under their former names, by field, and the problems of these."""
    given = {name.upper(): value for name, value in {**_env_file(), **os.environ}.items()}
    values: dict[str, object] = {}
    problems = []
    for old, new in RENAMED.items():
        if old in given and given.get(new, given[old]) != given[old]:
            problems.append(f"{old}: it is called {new} now, which has another value")
        elif old in given:
            values[new.removeprefix(PREFIX).lower()] = given[old]
    return values, problems


def forget_secrets() -> None:
    """Remove secrets from the environment after reading them, so that child processes do not inherit them."""
    secret = {"PLATFORM_DATABASE_URL", *_secret_names()}
    for name in [name for name in os.environ if name.upper() in secret]:
        del os.environ[name]


def _secret_names() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        if field.annotation == SecretStr | None:
            yield str(field.validation_alias or PREFIX + name.upper())


def _problem(location: tuple[int | str, ...], message: str) -> str:
    # Messages about several settings have no location and name the settings themselves.
    return f"{_variable(location)}: {message}" if location else message.removeprefix("Value error, ")


def _variable(location: tuple[int | str, ...]) -> str:
    name = str(location[0])
    return name if name.isupper() else PREFIX + name.upper()


def _unknown_names() -> list[str]:
    known = {PREFIX + name.upper() for name in Settings.model_fields} | CLIENT_NAMES | RENAMED.keys()
    names = os.environ.keys() | _env_file().keys()
    return sorted(name for name in names if name.startswith(PREFIX) and name.upper() not in known)


def _env_file() -> dict[str, str | None]:
    from dotenv import dotenv_values

    return dict(dotenv_values(".env")) if Path(".env").is_file() else {}
