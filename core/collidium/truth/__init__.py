"""Truth that operators imported: its versions, inputs of models, sketches, and the seeds of draws.

Which versions challenges score against is known above
(:mod:`collidium.challenges.truth_in_use`).
"""
