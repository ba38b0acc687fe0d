"""From a channel and a seed to the particles of an event: Pythia, a particle gun, and pileup overlaid."""
