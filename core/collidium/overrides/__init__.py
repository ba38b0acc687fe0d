"""Changes to other people's libraries, one module per library, and the use of what they keep private.

Each module says what it changes, why, the issue upstream, and when it can go. Its ``TESTED`` has the versions
it was tested with: the first is the lower bound in ``pyproject.toml``, and the minor version after the last
is the upper bound. The modules import nothing else of the platform, and are imported where they are needed.
"""
