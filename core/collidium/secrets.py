"""Encryption of users' secrets in the database, with keys from the settings or the data directory."""

from __future__ import annotations

import base64
import hashlib
import hmac
from binascii import Error as NotBase64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from collidium.errors import ConfigurationError
from collidium.files.data_directory import make_secret_file

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Name of the key file in the data directory.
FILE: Final = "secret-key"
_KEY_BYTES: Final = 32
#: Settings that all machines of a service must share, in the order of fingerprints.
SHARED: Final = ("PLATFORM_SECRET_KEY", "ADMIN_TOKEN", "PLATFORM_STORAGE", "PLATFORM_HUB_URL")
#: Hexadecimal digits per setting: enough to find a mistake, too few to find a secret.
_DIGITS: Final = 4
#: Constant, so that all processes derive the same key from a text.
_SALT: Final = b"collidium"


class LostKey(ConfigurationError):
    """A value was encrypted with a key that this process does not have."""


class Secrets:
    """Encrypts and decrypts short texts with one or more keys, which can be rotated.

    Values are Fernet tokens: AES-128-CBC, signed with HMAC-SHA256.
    """

    __slots__ = ("_first", "_keys")

    def __init__(self, keys: Sequence[str]) -> None:
        """The first key encrypts, all keys decrypt. Blocks: key derivation is slow on purpose."""
        fernet_keys = [_fernet_key(key) for key in keys]
        self._keys = MultiFernet([Fernet(key) for key in fernet_keys])
        self._first = fernet_keys[0]

    def fingerprint(self, settings: Settings) -> str:
        """Return short hashes of the settings :data:`SHARED`; with SQLite, of the key alone."""
        storage = f"{settings.storage} {settings.storage_s3_url} {settings.storage_hub_repo}"
        token = settings.admin_token.get_secret_value() if settings.admin_token else ""
        values = ("", "", "") if settings.sqlite_file else (token, storage, settings.hub_url)
        digests = [hmac.digest(self._first, value.encode(), "sha256").hex() for value in values]
        return "".join(digest[:_DIGITS] for digest in (hashlib.sha256(self._first).hexdigest(), *digests))

    def keyed_hash(self, text: str) -> str:
        """Return a hash of a text, in hexadecimal, that only a server with the first key can compute."""
        return hmac.digest(self._first, text.encode(), "sha256").hex()

    def encrypt(self, text: str) -> str:
        """Encrypt a text; the result differs each time."""
        return self._keys.encrypt(text.encode()).decode("ascii")

    def decrypt(self, value: str) -> str:
        """Decrypt a value. Raises :class:`LostKey` if its key is missing or it was changed."""
        try:
            return self._keys.decrypt(value.encode()).decode()
        except InvalidToken:
            raise LostKey(
                "an encrypted value cannot be decrypted with the keys of this server: add its key to "
                "PLATFORM_SECRET_KEY, after the current one"
            ) from None


def open_secrets(settings: Settings) -> Secrets:
    """Load the keys from the settings, or from the data directory, where a key is created once.

    Blocks. Raises ConfigurationError if the keys are invalid or cannot be read.
    """
    if settings.secret_key is not None:
        return Secrets(_keys(settings.secret_key.get_secret_value(), "PLATFORM_SECRET_KEY"))
    path = settings.data_dir / FILE
    try:
        make_secret_file(path, Fernet.generate_key().decode("ascii"))
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the secret key cannot be read: {error}") from error
    return Secrets(_keys(text, str(path)))


def differing_settings(one: str, other: str) -> tuple[str, ...]:
    """Return the settings that differ between two fingerprints; only the key, if that differs."""
    starts = range(0, _DIGITS * len(SHARED), _DIGITS)
    names = [
        name
        for name, start in zip(SHARED, starts, strict=True)
        if one[start : start + _DIGITS] != other[start : start + _DIGITS]
    ]
    return tuple(names[:1] if names[:1] == [SHARED[0]] else names)


def _keys(text: str, where: str) -> list[str]:
    keys = [key.strip() for key in text.split(",")]
    if not all(keys):
        raise ConfigurationError(f"{where}: a key is missing; write one, or several separated by commas")
    return keys


def _fernet_key(text: str) -> bytes:
    """Return a Fernet key unchanged, or derive one from any other text (scrypt, RFC 7914)."""
    try:
        if len(base64.b64decode(text, altchars=b"-_", validate=True)) == _KEY_BYTES:
            return text.encode("ascii")
    except (NotBase64, ValueError):
        pass  # a passphrase
    derived = Scrypt(salt=_SALT, length=_KEY_BYTES, n=2**14, r=8, p=1).derive(text.encode())
    return base64.urlsafe_b64encode(derived)
