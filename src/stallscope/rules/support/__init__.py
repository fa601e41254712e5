"""What several rules need: reading pod templates, environments, affinities and selectors, and wording findings."""
