"""What a plugin implements.

One module per contract: :mod:`~collidium.contracts.task`, :mod:`~collidium.contracts.executor`,
:mod:`~collidium.contracts.storage`, :mod:`~collidium.contracts.identity` and
:mod:`~collidium.contracts.runner`. They import nothing of the platform.
"""
