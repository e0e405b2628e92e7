"""The grid of ranks: who lies along which axis, and what is refused."""

import pytest
import torch

from labkit.ranks.comm import Comm
from labkit.ranks.mesh import AXES, Mesh


def neighbours(comm: Comm, sizes: dict[str, int]) -> dict[str, tuple]:
    """For each axis: my place, the world ranks with me, and their sum found by talking."""
    mesh = Mesh(comm, **sizes)
    found = {}
    for axis in AXES:
        total = mesh[axis].all_reduce(torch.tensor([comm.rank])).item()
        found[axis] = (mesh.coordinates[axis], mesh[axis].ranks, total)
        assert mesh[axis].name == axis
        assert mesh[axis] is getattr(mesh, axis)
    return found


def test_tp_is_innermost_on_a_two_by_two_grid(pool):
    for rank, found in enumerate(pool(4).run(neighbours, {"pp": 2, "tp": 2})):
        stage, shard = divmod(rank, 2)
        tp_ranks, pp_ranks = (2 * stage, 2 * stage + 1), (shard, shard + 2)
        assert found["tp"] == (shard, tp_ranks, sum(tp_ranks))
        assert found["pp"] == (stage, pp_ranks, sum(pp_ranks))
        assert found["dp"] == found["ep"] == (0, (rank,), rank)


@pytest.mark.parametrize(
    "sizes",
    [
        {"dp": 2, "ep": 2},
        {"pp": 2, "dp": 2},
        {"ep": 2, "tp": 2},
        {"dp": 4},
        {"tp": 4},
    ],
    ids=str,
)
def test_every_axis_order_tiles_four_ranks(pool, sizes):
    everybody = pool(4).run(neighbours, sizes)
    for axis in AXES:
        groups = {found[axis][1] for found in everybody}
        assert sorted(rank for group in groups for rank in group) == [0, 1, 2, 3]
        assert {len(group) for group in groups} == {sizes.get(axis, 1)}
        for rank, found in enumerate(everybody):
            place, ranks, total = found[axis]
            assert ranks[place] == rank
            assert total == sum(ranks)
    places = {tuple(found[axis][0] for axis in AXES) for found in everybody}
    assert len(places) == 4


@pytest.mark.parametrize("axis", AXES)
def test_three_ranks_lie_along_one_axis(pool, axis):
    for rank, found in enumerate(pool(3).run(neighbours, {axis: 3})):
        assert found[axis] == (rank, (0, 1, 2), 3)
        assert all(found[other] == (0, (rank,), rank) for other in AXES if other != axis)


def test_two_meshes_of_different_shapes_live_side_by_side(pool):
    def run(comm: Comm) -> tuple[int, int]:
        wide, deep = Mesh(comm, tp=4), Mesh(comm, pp=4)
        one = torch.ones(1)
        return int(wide.tp.all_reduce(one.clone())), int(deep.tp.all_reduce(one.clone()))

    assert pool(4).run(run) == [(4, 1)] * 4


def test_a_mesh_of_one_needs_no_process_group():
    mesh = Mesh.solo()
    assert mesh.coordinates == dict.fromkeys(AXES, 0)
    assert mesh["tp"].all_reduce(torch.ones(2)).tolist() == [1.0, 1.0]
    assert repr(mesh) == "Mesh(pp 1 x dp 1 x ep 1 x tp 1; rank 0 at pp 0, dp 0, ep 0, tp 0)"


def test_sizes_that_do_not_multiply_to_the_ranks_are_refused_with_a_proposal(pool):
    def refusals(comm: Comm) -> list[str]:
        messages = []
        for sizes in ({"tp": 2}, {"pp": 2, "tp": 3}, {"tp": 5}, {"tp": 0}):
            try:
                Mesh(comm, **sizes)
            except ValueError as error:
                messages.append(str(error))
        return messages

    for two, six, five, zero in pool(4).run(refusals):
        assert two == (
            "a mesh of pp 1 x dp 1 x ep 1 x tp 2 has 2 places, and there are 4 ranks; "
            "use tp=4 or ep=2 or dp=2 or pp=2, or start 2 ranks"
        )
        assert six.endswith("has 6 places, and there are 4 ranks; use tp=2, or start 6 ranks")
        assert five.endswith("has 5 places, and there are 4 ranks; use tp=4, or start 5 ranks")
        assert zero == "axis tp of a mesh has size 0; the smallest is 1"


def test_an_unknown_axis_is_named():
    with pytest.raises(KeyError, match="no axis 'sp'; its axes are pp, dp, ep, tp"):
        Mesh.solo()["sp"]
