"""How a call failed on one rank, as the rank itself tells it."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from typing import Literal

from labkit.ranks.stack import inside_call, user_frames, user_traceback
from labkit.ranks.wire import dumps, text_of


@dataclass(frozen=True)
class Failure:
    """How a call failed on one rank, in plain data that any process can unpickle."""

    kind: Literal["raised", "exited"]  # exited: sys.exit
    type_name: str
    message: str
    traceback: str  # "" when none of the frames is the user's
    stack: str  # where in the user's code
    moment: float  # time.monotonic()
    exception: bytes | None  # pickled, if it can be

    @classmethod
    def of(cls, kind: Literal["raised", "exited"], error: BaseException) -> Failure:
        """What to tell about an exception that has left the user's function, or the worker."""
        tb = inside_call(error.__traceback__)
        places = [(f.filename, f.lineno or 0, f.name) for f in traceback.extract_tb(tb)]
        text = user_traceback(error, tb) if tb else ""
        try:
            pickled = bytes(dumps(error.with_traceback(None)))
        except BaseException:
            pickled = None
        return cls(
            kind=kind,
            type_name=type(error).__name__,
            message=text_of(error),
            traceback=text,
            stack=user_frames(places),
            moment=time.monotonic(),
            exception=pickled,
        )
