"""The ``collidium`` command, also as ``python -m collidium``."""

import sys

from collidium.runtime.interrupts import Importing


def main() -> None:
    """Run the command and exit."""
    # httpx imports its own command in two thirds of its time; it goes without, as where rich is missing.
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None stands for what is not imported
    with Importing():
        from collidium.cli import main as run
    run()


if __name__ == "__main__":
    main()
