"""Every setting, declared once: type, default, and a line of help.

Settings come from the environment or a ``.env`` file, prefix ``PLATFORM_``; the fixed names without the
prefix are ``ADMIN_TOKEN`` (the operators' secret) and, for clients, ``HF_TOKEN``.
"""

from collidium.settings.general import default_data_dir
from collidium.settings.loading import CLIENT_NAMES, PREFIX, Settings, forget_secrets, load
from collidium.settings.values import (
    GIBIBYTE,
    MASK,
    MEBIBYTE,
    as_written,
    sqlite_path,
    without_password,
)

__all__ = [
    "CLIENT_NAMES",
    "GIBIBYTE",
    "MASK",
    "MEBIBYTE",
    "PREFIX",
    "Settings",
    "as_written",
    "default_data_dir",
    "forget_secrets",
    "load",
    "sqlite_path",
    "without_password",
]
