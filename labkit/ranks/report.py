"""Errors of a call."""


class RankError(RuntimeError):
    """A rank failed."""


class RankTimeout(RankError, TimeoutError):
    """A call took too long."""
