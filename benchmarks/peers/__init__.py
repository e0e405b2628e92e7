"""The sides of a benchmark, ours included: each runs in a process of its own."""
