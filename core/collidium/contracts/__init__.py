"""The contracts that plugins implement.

One module per contract: :mod:`~collidium.contracts.task`, :mod:`~collidium.contracts.executor`,
:mod:`~collidium.contracts.storage`, :mod:`~collidium.contracts.identity` and
:mod:`~collidium.contracts.runner`. They import no other module of the platform.
"""
