"""The test kit of the platform and of plugin authors.

Put this into the ``conftest.py`` at the root of your tests to get the fixtures::

    pytest_plugins = ["collidium.testing.plugin"]

:mod:`~collidium.testing.plugin` lists them: temporary databases (SQLite and PostgreSQL) and a real
server. :mod:`~collidium.testing.conformance` checks a task, runner, storage, identity provider or
executor against its contract, with or without pytest. :mod:`~collidium.testing.synthetic` generates large
synthetic events in milliseconds. The fixtures need ``collidium[test]``.
"""
