"""Files that claim more bytes than the disk holds: a copy of such a file fills the disk."""

from __future__ import annotations

import os
from typing import Final

#: Unit of ``st_blocks``, whatever the file system.
_BLOCK_BYTES: Final = 512
#: How many times its bytes on disk a file may be long: some file systems compress.
_COMPRESSION: Final = 8
#: Smaller files are never sparse: some file systems keep them without a block.
_SMALL: Final = 1024**2


def is_sparse(told: os.stat_result) -> bool:
    """Return whether a file is mostly holes."""
    return told.st_size > _SMALL + _COMPRESSION * _BLOCK_BYTES * told.st_blocks
