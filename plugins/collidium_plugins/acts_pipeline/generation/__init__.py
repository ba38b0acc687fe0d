"""Event generation: Pythia or a particle gun, with pileup overlaid."""
