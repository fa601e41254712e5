"""The vocabulary: where text stands, what a job is, where it may run, who talks to whom. Pure data, no judgement."""
