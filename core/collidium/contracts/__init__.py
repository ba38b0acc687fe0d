"""The contracts that plugins implement.

One module per contract: :mod:`~collidium.contracts.task`, with :mod:`~collidium.contracts.model` for the
models that a task takes, :mod:`~collidium.contracts.executor`,
:mod:`~collidium.contracts.storage`, :mod:`~collidium.contracts.identity`,
:mod:`~collidium.contracts.runner` and :mod:`~collidium.contracts.pipeline`. They import no other module of
the platform.
"""

from typing import Final

#: Field of the Open Data Detector along z in the tracker, and that of the built-in pipeline's events: circles
#: through 72 tracks of hosted events give 3.02 T in the median.
FIELD_TESLA: Final = 3.0
