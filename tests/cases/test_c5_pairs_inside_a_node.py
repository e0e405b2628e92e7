"""Case C5: four RTX 3090, GPUs 0-2 and 1-3 bridged by NVLink, PCIe between the pairs."""

import pytest

from labkit.plan.device_presets import device
from labkit.plan.link_presets import LINKS
from labkit.plan.topology import Topology

BRIDGE, PCIE = LINKS["nvlink-bridge-3090"], LINKS["pcie4"]
BOX = Topology(
    gpus=4,
    gpus_per_node=4,
    inside=PCIE,
    between=LINKS["ethernet-25"],
    pairs={frozenset((0, 2)): BRIDGE, frozenset((1, 3)): BRIDGE},
)
LAYERS, HIDDEN = 64, 5120
WEIGHT_BYTES = 27e9 * 4.5 / 8
"""A 27B model in 4 bits."""
BATCHES = (1, 4, 16, 64)


def collective_seconds(group: tuple[int, ...], batch: int) -> float:
    """Both all-reduces of all layers, for one decode step of `batch` sequences."""
    return 2 * LAYERS * BOX.collective(group).seconds(len(group), batch * HIDDEN * 2)


def step_seconds(group: tuple[int, ...], batch: int) -> float:
    reading = WEIGHT_BYTES / len(group) / device("rtx-3090").memory_bandwidth
    return reading + collective_seconds(group, batch)


def test_two_gpus_are_the_bridged_ones():
    assert BOX.best_groups(2)[0] == (0, 2)
    assert BOX.best_groups(2) == ((0, 2), (1, 3))


@pytest.mark.parametrize("batch", BATCHES)
def test_a_bridged_pair_is_faster_than_one_across(batch):
    assert step_seconds((0, 2), batch) < step_seconds((0, 1), batch)


def test_the_advantage_of_the_bridge_grows_with_batch():
    gains = [step_seconds((0, 1), batch) / step_seconds((0, 2), batch) for batch in BATCHES]
    assert gains == sorted(gains)
    assert gains[-1] > gains[0]


@pytest.mark.parametrize("batch", BATCHES)
def test_four_gpus_give_more_tokens_as_two_pairs_than_as_one_group(batch):
    """Each replica has a batch of its own, as the group of four has."""
    (group,) = BOX.best_groups(4)
    first, second = BOX.best_groups(2)
    assert collective_seconds(first, batch) < collective_seconds(group, batch)
    pairs = batch / step_seconds(first, batch) + batch / step_seconds(second, batch)
    assert pairs > 1.8 * batch / step_seconds(group, batch)


def test_from_some_batch_on_four_gpus_are_even_slower_than_a_bridged_pair():
    slower = [step_seconds((0, 1, 2, 3), b) > step_seconds((0, 2), b) for b in BATCHES]
    assert slower == [False, False, True, True]


def test_the_saved_time_grows_with_batch():
    (group,) = BOX.best_groups(4)
    saved = [
        collective_seconds(group, 2 * batch) - collective_seconds((0, 2), batch)
        for batch in BATCHES
    ]
    assert saved == sorted(saved)
    assert saved[-1] > saved[0] > 0
