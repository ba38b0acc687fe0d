"""What the platform's own tests stand on, shipped for plugin authors.

Put this into the ``conftest.py`` at the root of your tests to get the fixtures::

    pytest_plugins = ["collidium.testing.plugin"]

:mod:`~collidium.testing.plugin` lists them: throwaway databases (SQLite and PostgreSQL) and a real
server. :mod:`~collidium.testing.conformance` checks a task, runner, storage, identity provider or
executor against its contract; it needs no pytest. :mod:`~collidium.testing.synthetic` makes large
synthetic events in milliseconds. The fixtures need ``collidium[test]``.
"""
