"""``python -m collidium`` is the ``collidium`` command of this very Python."""

from collidium.cli import main

if __name__ == "__main__":
    main()
