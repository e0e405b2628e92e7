"""What a call refuses before anything is sent, in words that say what to do instead."""

from collections.abc import Callable
from functools import partial

import pytest

from labkit.ranks.arguments import check_function
from labkit.ranks.comm import Comm
from labkit.ranks.pool import RankPool


def step(comm: Comm, size: int, scale: float = 1.0) -> float:
    return comm.size * size * scale


async def later(comm: Comm) -> None:
    pass


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "said"),
    [
        (5, (), {}, "want a function first, not 5"),
        (later, (), {}, "later is an async function"),
        (partial(later), (), {}, "async function"),
        (lambda: 1, (), {}, "is called with a comm first.*too many positional"),
        (step, (), {}, r"step\(comm.*missing a required argument: 'size'"),
        (step, (1,), {"sacle": 2.0}, "unexpected keyword argument 'sacle'"),
    ],
)
def test_a_call_that_cannot_fit_is_refused(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        check_function(function, args, kwargs)


@pytest.mark.parametrize("function", [step, partial(step, scale=2.0), print, max])
def test_what_fits_or_cannot_be_known_passes(function: Callable[..., object]) -> None:
    check_function(function, (3,), {})


def test_pool_inside_a_rank_function_is_named(pool: Callable[[int], RankPool]) -> None:
    ranks = pool(1)
    with pytest.raises(TypeError, match="use its comm, not the pool"):
        ranks.run(lambda comm: ranks.size)
    assert ranks.run(lambda comm: comm.size) == [1]


def test_reference_used_as_if_it_were_here_says_where_it_is(
    pool: Callable[[int], RankPool],
) -> None:
    kept = pool(1).put(lambda comm: [1, 2])
    with pytest.raises(AttributeError, match=r"lives on the ranks.*lambda comm, x: x\.count"):
        kept.count  # noqa: B018
