"""Differences between what was expected and what came back: found, placed, and not given away."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict, namedtuple
from typing import Any

import numpy
import pytest
import torch

from course.grading.comparison import difference
from course.grading.plain_data import MAX_ITEMS, Foreign, plain

Pair = namedtuple("Pair", "rank index")


class Colour(enum.IntEnum):
    RED = 3


class EqualToAll:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class NumberEqualToAll(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = int.__hash__


class TensorEqualToAll(torch.Tensor):
    def __eq__(self, other: object) -> Any:
        return True

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return torch.zeros(3)


def found(expected: Any, returned: Any, tolerance: float = 1e-9) -> str:
    """The key of the difference, or "" when there is none; as the judge compares."""
    wrong = difference(plain(expected), plain(returned), tolerance)
    return wrong.key if wrong else ""


def text(expected: Any, returned: Any) -> str:
    wrong = difference(plain(expected), plain(returned), 1e-9)
    assert wrong is not None
    return wrong.text


@pytest.mark.parametrize(
    ("expected", "returned"),
    [
        (3, 3),
        (3.0, 3),
        (0.3, 0.1 + 0.2),
        (math.nan, math.nan),
        (math.inf, math.inf),
        (True, True),
        (None, None),
        ("sum", "sum"),
        ((1, 2), Pair(1, 2)),
        ((2, 3), torch.Size([2, 3])),
        (3, Colour.RED),
        (3, numpy.int64(3)),
        (3.5, numpy.float64(3.5)),
        ({"a": [1.0]}, OrderedDict(a=[1])),
        ({1, 2}, {2, 1}),
        ([range(2), range(2, 4)], [range(2), range(2, 4)]),
        (range(0), range(5, 5)),
        (torch.ones(3), torch.ones(3, requires_grad=True)),
        (torch.ones(3, 2), torch.ones(2, 3).T),
        (torch.ones(2, 3), torch.ones(1, 3).expand(2, 3)),
        (torch.tensor([math.nan, 1.0]), torch.tensor([math.nan, 1.0])),
        (torch.ones(0, 4), torch.ones(0, 4)),
        (torch.ones(3), torch.nn.Parameter(torch.ones(3))),
    ],
)
def test_what_is_right_is_taken(expected: Any, returned: Any):
    assert found(expected, returned) == ""


@pytest.mark.parametrize(
    ("expected", "returned", "key"),
    [
        (3, 4, "values-differ"),
        (3, 3.0, "wrong-type"),
        (1, True, "wrong-type"),
        (True, 1, "wrong-type"),
        (1.0, True, "wrong-type"),
        (3.0, math.nan, "values-differ"),
        (math.nan, 3.0, "values-differ"),
        (math.inf, -math.inf, "values-differ"),
        (3.0, 10**400, "wrong-type"),
        (3, None, "returns-nothing"),
        (None, 3, "wrong-type"),
        ([1], (1,), "wrong-type"),
        ((1,), [1], "wrong-type"),
        ([0, 1], range(2), "wrong-type"),
        (range(2), [0, 1], "wrong-type"),
        ([range(2)], [[0, 1]], "wrong-type"),
        ([1, 2], [1], "wrong-length"),
        ([1, 2], [1, 2, 3], "wrong-length"),
        ({"a": 1}, {}, "wrong-shape"),
        ({"a": 1}, {"a": 1, "b": 2}, "wrong-shape"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "values-differ"),
        (range(3), range(4), "values-differ"),
        (torch.ones(3), 1.0, "wrong-type"),
        (1.0, torch.tensor(1.0), "wrong-type"),
        (torch.ones(3), numpy.ones(3), "wrong-type"),
        (torch.ones(3), [1.0] * 3, "wrong-type"),
        (torch.ones(3), torch.ones(3, 1), "wrong-shape"),
        (torch.ones(3), torch.ones(3, dtype=torch.float64), "wrong-dtype"),
        (torch.ones(3).long(), torch.ones(3), "wrong-dtype"),
        (torch.tensor([True]), torch.tensor([1]), "wrong-dtype"),
        (torch.ones(3), torch.tensor([1.0, math.nan, 1.0]), "values-differ"),
        (torch.tensor([math.nan]), torch.tensor([0.0]), "values-differ"),
        (torch.ones(3), torch.ones(3).to_sparse(), "wrong-type"),
        (torch.ones(3), torch.ones(3, device="meta"), "wrong-device"),
        (torch.ones(3), torch.empty(1).expand(1 << 26), "wrong-shape"),
        (3, EqualToAll(), "wrong-type"),
        (3, NumberEqualToAll(4), "values-differ"),
        ([3], [NumberEqualToAll(4)], "values-differ"),
        (torch.ones(3), torch.zeros(3).as_subclass(TensorEqualToAll), "wrong-type"),
        ([1], (i for i in [1]), "wrong-type"),
        ([1], [0] * (MAX_ITEMS + 1), "wrong-type"),
        ("a", "a" * (MAX_ITEMS + 1), "wrong-type"),
        ([3], [1 << 100_000], "wrong-type"),
    ],
)
def test_what_is_wrong_has_its_key(expected: Any, returned: Any, key: str):
    assert found(expected, returned) == key


def test_a_list_that_holds_itself_is_refused_and_ends():
    loop: list[Any] = []
    loop.append(loop)
    assert found([[1]], loop) == "wrong-type"


def test_the_first_wrong_element_is_named_with_shape_dtype_and_magnitude():
    expected = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    returned = expected.clone()
    returned[1, 0] += 0.25
    returned[1, 2] -= 0.5
    told = text(expected, returned)
    assert "shape (2, 3)" in told
    assert "dtype float64" in told
    assert "2 of 6 elements" in told
    assert "[1, 0]" in told
    assert "difference is 0.5" in told


def test_nan_among_the_wrong_elements_is_named():
    told = text(torch.ones(3), torch.tensor([1.0, math.nan, 2.0]))
    assert "NaN" in told
    assert "[1]" in told


def test_the_place_in_nested_containers_is_named():
    assert "[1]['x']" in text([0, {"x": 2}], [0, {"x": 5}])


@pytest.mark.parametrize(
    ("expected", "returned"),
    [
        (7_654_321, 1),
        (7654.321, 1.0),
        ("7654321", "x"),
        ([7_654_321], [1]),
        ((1, 7_654_321), (1, 2)),
        ({"bytes": 7_654_321}, {"bytes": 1}),
        (range(7_654_321), range(2)),
        (torch.full((3,), 7654.321), torch.zeros(3)),
        (torch.full((3,), 7_654_321), torch.zeros(3, dtype=torch.int64)),
        (7_654_321, None),
        (7_654_321, "x"),
    ],
)
def test_the_expected_value_is_not_told(expected: Any, returned: Any):
    assert "7654" not in text(expected, returned).replace("_", "")


def test_plain_data_shares_no_memory_with_its_source():
    source = {"x": torch.zeros(3), "ids": [[1]]}
    copied = plain(source)
    source["x"].add_(1)
    source["ids"][0].append(2)  # type: ignore[attr-defined]
    assert copied["x"].tolist() == [0.0] * 3
    assert copied["ids"] == [[1]]


def test_values_of_other_classes_stay_behind():
    assert plain({"a": EqualToAll()}) == {"a": Foreign("an EqualToAll")}


@pytest.mark.parametrize(
    "returned",
    [
        [range(0, 10**12)] * 4,
        [range(0, -(10**12), -1)] * 4,
        [range(10**30)] * 4,
        [range(9_000_000)] * 4,
        [range(1 << 5000, 1 << 5000)] * 4,
    ],
)
def test_ranges_that_nobody_could_go_through_stay_behind(returned: list[range]):
    assert any(isinstance(part, Foreign) for part in plain(returned))
    assert "range" in text([range(3)] * 4, plain(returned))


def test_a_range_with_steps_is_told_its_step():
    found = difference([range(3)], [range(0, 10, 4)], 0.0)
    assert found is not None
    assert "its step is not right" in found.text


def test_an_array_in_place_of_a_tensor_is_told_how_to_make_one():
    found = difference(torch.ones(2), plain(numpy.ones(2)), 0.0)
    assert found is not None
    assert found.text.endswith("NumPy array, and a tensor is wanted (torch.from_numpy makes one)")
