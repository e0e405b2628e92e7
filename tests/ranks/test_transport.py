"""What carries the collectives of a group: who chooses, who may say, and what it answers."""

from __future__ import annotations

import pytest
import torch

from labkit.ranks import shared_handshake
from labkit.ranks.comm import Comm
from labkit.ranks.mesh import Mesh
from labkit.ranks.placement import environment, place_collectives
from labkit.ranks.pool import RankPool
from labkit.ranks.trace import TracedComm
from labkit.ranks.transport_choice import check_transport, told_by

CPUS = ("cpu", "cpu")
GPUS = ("cuda:0", "cuda:1")


def name_of(comm: Comm) -> str | None:
    return None if comm.transport is None else comm.transport.name


def test_ranks_on_one_host_share_memory_unless_told_otherwise(pool, monkeypatch):
    monkeypatch.delenv("LABKIT_COLLECTIVES", raising=False)

    def chosen(comm: Comm) -> tuple:
        return name_of(comm), comm.transport_reason, repr(comm)

    for rank, (name, reason, text) in enumerate(pool(2).run(chosen)):
        assert name == "shared memory"
        assert reason == "its 2 ranks run on one host"
        assert text == f"Comm('world', rank {rank} of 2, cpu, shared memory)"


def test_a_group_of_one_has_no_transport():
    solo = Comm.solo()
    assert solo.transport is None
    assert solo.transport_reason == "a group of one sends nothing"
    assert repr(solo) == "Comm('solo', rank 0 of 1, cpu)"
    assert solo.over("gloo").all_reduce(torch.ones(2)).tolist() == [1.0, 1.0]


def test_over_gives_the_same_ranks_another_transport_and_leaves_the_group_alone(pool):
    def run(comm: Comm) -> list:
        results = []
        for name in ("gloo", "shared-memory"):
            other = comm.over(name)
            total = other.all_reduce(torch.tensor([comm.rank + 1.0])).item()
            out = other.send_recv(
                torch.tensor([comm.rank]), 1 - comm.rank, torch.tensor([9]), 1 - comm.rank
            )
            results.append((name_of(other), other.ranks, total, out.item()))
        return [*results, name_of(comm)]

    for rank, (gloo, shared, own) in enumerate(pool(2).run(run)):
        assert gloo == ("gloo", (0, 1), 3.0, 1 - rank)
        assert shared == ("shared memory", (0, 1), 3.0, 1 - rank)
        assert own == "shared memory"


def test_a_traced_group_stays_traced_over_another_transport(pool):
    def run(comm: Comm) -> list[str]:
        traced = TracedComm(comm)
        traced.over("gloo").all_reduce(torch.ones(2))
        traced.all_reduce(torch.ones(2))
        return [event.op for event in traced.trace.events]

    assert pool(2).run(run) == [["all_reduce", "all_reduce"]] * 2


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("mpi", "no transport is called 'mpi'; there are gloo, shared memory, nccl, symmetric"),
        ("nccl", "nccl cannot carry the collectives of tensors that live on cpu; gloo or shared"),
    ],
)
def test_what_cannot_be_had_is_refused_with_what_can(pool, name, sentence):
    def run(comm: Comm) -> str:
        try:
            comm.over(name)
        except ValueError as error:
            return str(error)
        return "no error"

    for message in pool(2).run(run):
        assert message.startswith(sentence)


def test_ranks_that_ask_for_different_transports_all_hear_of_it(pool):
    def run(comm: Comm) -> str:
        try:
            comm.over("gloo" if comm.rank else "shared memory")
        except ValueError as error:
            return str(error)
        return "no error"

    first, second = pool(2).run(run)
    assert first == "over got different transports on different ranks; here: shared memory"
    assert second.endswith("here: gloo")


def test_a_pool_a_mesh_and_the_environment_can_tell(monkeypatch):
    def everything(comm: Comm) -> tuple:
        inherited, told = Mesh(comm, tp=2), Mesh(comm, tp=2, collectives="shared memory")
        return name_of(comm), name_of(inherited.tp), told.explain(), inherited.explain()

    told_gloo = (
        "pp: 1 rank (a group of one sends nothing)\n"
        "dp: 1 rank (a group of one sends nothing)\n"
        "ep: 1 rank (a group of one sends nothing)\n"
        "tp: 2 ranks over gloo (it was asked for)"
    )
    told_shared = told_gloo.replace(
        "over gloo (it was asked for)",
        "over shared memory (it was asked for, and its 2 ranks run on one host)",
    )
    expected = [("gloo", "gloo", told_shared, told_gloo)] * 2
    with RankPool(2, backend="gloo", collectives="gloo") as pool:
        assert pool.run(everything) == expected
    monkeypatch.setenv("LABKIT_COLLECTIVES", "gloo")
    with RankPool(2, backend="gloo") as pool:
        assert pool.run(everything) == expected


def test_torch_compares_collectives_over_gloo_only(monkeypatch):
    monkeypatch.setenv("LABKIT_COLLECTIVES", "shared memory")
    assert place_collectives(None, True, CPUS) == "gloo"
    assert place_collectives("gloo", True, CPUS) == "gloo"
    with pytest.raises(ValueError, match="over gloo only; leave it out, or leave out collectives"):
        RankPool(2, backend="gloo", collectives="shared memory", check_collectives=True)


def test_a_pool_refuses_a_wrong_name_before_any_rank_starts(monkeypatch):
    with pytest.raises(ValueError, match="no transport is called 'glo'"):
        RankPool(2, backend="gloo", collectives="glo")
    assert place_collectives("symmetric_memory", False, GPUS) == "symmetric memory"
    with pytest.raises(ValueError, match="tensors that live on cuda; nccl or symmetric memory can"):
        place_collectives("gloo", False, GPUS)
    monkeypatch.setenv("LABKIT_COLLECTIVES", "carrier pigeon")
    with pytest.raises(ValueError, match="LABKIT_COLLECTIVES: no transport is called 'carrier"):
        RankPool(2, backend="gloo")


def test_the_environment_names_a_transport_in_any_spelling():
    assert told_by({}) is None
    assert told_by({"LABKIT_COLLECTIVES": " "}) is None
    assert told_by({"LABKIT_COLLECTIVES": "Shared_Memory"}) == "shared memory"
    assert check_transport("nccl", "cuda") == "nccl"
    assert environment(1, False, "gloo")["LABKIT_COLLECTIVES"] == "gloo"


def test_where_one_rank_cannot_share_memory_all_take_gloo_and_say_why(pool):
    def run(comm: Comm, what: str) -> tuple:
        if comm.rank == 1:
            shared_handshake.host_id = lambda: "elsewhere"
            if what == "system":
                shared_handshake.why_no_segments = lambda: "this system has no such thing"
        again = comm.split([(0, 1)], "again")
        try:
            comm.over("shared memory")
        except ValueError as error:
            return name_of(again), again.transport_reason, str(error)
        return name_of(again), again.transport_reason, "no error"

    with RankPool(2, backend="gloo") as own:
        hosts = own.run(run, "host")
        system = own.run(run, "system")
    several = "its ranks run on several hosts, or in containers that do not see each other"
    for name, reason, error in hosts:
        assert (name, reason) == ("gloo", several)
        assert error == f"shared memory cannot be had here: {several}; gloo can"
    for name, reason, _ in system:
        assert (name, reason) == ("gloo", "this system has no such thing")
