"""The ``collidium`` command, also as ``python -m collidium``."""

from collidium.overrides import httpx
from collidium.runtime.interrupts import Importing


def main() -> None:
    """Run the command and exit."""
    httpx.skip_command()
    with Importing():
        from collidium.cli import main as run
    run()


if __name__ == "__main__":
    main()
