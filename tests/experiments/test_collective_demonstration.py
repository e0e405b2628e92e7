"""What the demonstration shows is what the collectives mean, and counted traffic is the models'."""

from collections.abc import Callable

import pytest

from labkit.experiments.collective_demonstration import count_algorithm_traffic, demonstrate
from labkit.ranks.algorithms import ALGORITHMS
from labkit.ranks.pool import RankPool
from labkit.ranks.report import RankError

Pools = Callable[[int], RankPool]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_each_collective_leaves_what_it_should(pool: Pools, ranks: int):
    shown = [{one.op: one for one in mine} for mine in pool(ranks).run(demonstrate)]
    own = [tuple(10 * (rank + 1) + place + 1 for place in range(ranks)) for rank in range(ranks)]
    total = tuple(map(sum, zip(*own, strict=True)))
    for rank, found in enumerate(shown):
        assert found["all_reduce"].before == own[rank]
        assert found["all_reduce"].after == total
        assert found["reduce_scatter"].after == total[rank : rank + 1]
        assert found["all_gather"].after == tuple(mine[0] for mine in own)
        assert found["broadcast"].after == own[0]
        assert found["all_to_all"].after == tuple(mine[rank] for mine in own)


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_the_busiest_rank_sends_what_the_model_says(pool: Pools, ranks: int):
    payload = 4 * ranks * 5
    counted = pool(ranks).run(count_algorithm_traffic, payload)
    for shown in zip(*counted, strict=True):
        model = ALGORITHMS[shown[0].name].cost(0.0, 1.0)
        assert max(one.wire_bytes for one in shown) == round(model.wire_bytes(ranks, payload))
        assert max(one.messages for one in shown) == model.messages(ranks)


def test_a_payload_that_does_not_divide_names_its_neighbours(pool: Pools):
    with pytest.raises(RankError, match=r"25 B do not divide .* take 24 or 32"):
        pool(2).run(count_algorithm_traffic, 25)
