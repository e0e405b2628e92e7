"""Exercises judged on real ranks: `check` in a notebook, `labkit grade` over many."""
