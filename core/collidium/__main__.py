"""``python -m collidium``: the command, for wherever the script ``collidium`` is not on the path."""

from collidium.cli import main

if __name__ == "__main__":
    main()
