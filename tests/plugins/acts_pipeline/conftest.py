"""What takes seconds to make and is the same in every process, made once."""

from __future__ import annotations

from functools import cache

from tests.counts import LONG

from collidium_plugins.acts_pipeline.detector import hadrons

if not LONG:  # stages in processes of their own show that each makes the same
    hadrons.ReactionPool = cache(hadrons.ReactionPool)
