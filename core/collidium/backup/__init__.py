"""``collidium backup`` and ``restore``: the database, then files, of which all that it names are checked."""

from collidium.backup.contents import Backup
from collidium.backup.making import make
from collidium.backup.restoring import restore

__all__ = ["Backup", "make", "restore"]
