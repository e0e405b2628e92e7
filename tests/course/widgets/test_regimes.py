"""The regimes explorer: three regimes, each reached by a slider and named in words."""

import pytest

from course.widgets.regime_view import (
    BANDWIDTHS,
    LABELS,
    LAW,
    POSITIONS,
    SIZES,
    START,
    at,
    headline,
    steps,
    view,
)
from course.widgets.regimes import TABLE_SIZES, RegimeExplorer, reach_table, sizes_table
from labkit.plan.tradeoff import Regime, trade_off


def test_start_is_the_trade_off_of_the_planner():
    assert at(START) == trade_off(8e-3, 8, 40 * 2**20, 50e9, compute_scaling=1.0)


def test_every_regime_is_one_slider_away_from_the_start():
    reached = {
        at({**START, name: index}).regime
        for name, values in POSITIONS.items()
        for index in range(len(values))
    }
    assert reached == set(Regime)


@pytest.mark.parametrize("regime", Regime)
def test_regime_is_named_and_explained_where_it_is_reached(regime: Regime):
    choices = [{**START, "scaling": s, "bandwidth": b} for s in range(11) for b in range(9)]
    [choice, *_] = [choice for choice in choices if at(choice).regime is regime]
    shown = view(choice)
    assert shown.headline.lower() == f"{regime.value}.".lower()
    assert regime.sentence in shown.sentences
    assert shown.is_good == (regime is Regime.SLOW_LINK_PAYS)


def test_bars_are_the_steps_and_the_longest_fills_its_track():
    for scaling in range(len(POSITIONS["scaling"])):
        choice = {**START, "scaling": scaling}
        ends = [cells[0].bars[-1].left + cells[0].bars[-1].width for _, cells in view(choice).rows]
        totals = [compute + collectives for _, compute, collectives in steps(choice)]
        assert max(ends) == pytest.approx(100)
        assert ends == pytest.approx([100 * total / max(totals) for total in totals])


def test_split_on_the_fast_link_alone_is_never_longer_than_on_the_slow_one():
    for bandwidth in range(len(BANDWIDTHS)):
        (_, slow, fast) = steps({**START, "bandwidth": bandwidth})
        assert sum(fast[1:]) <= sum(slow[1:])


def test_sizes_on_paper_span_the_slider_and_hold_its_start():
    assert [row[0] for row in sizes_table().rows] == list(TABLE_SIZES)
    assert {SIZES[0], SIZES[START["tp"]], SIZES[-1]} <= set(TABLE_SIZES)


def test_reach_table_tells_the_regime_of_every_size_and_has_all_three():
    [(_, reached, regime)] = [row for row in reach_table().rows if row[0] == LABELS["tp"]]
    assert reached == f"{SIZES[0]} to {SIZES[-1]}"
    assert {at({**START, "tp": tp}).regime.value for tp in range(len(SIZES))} == {regime}
    assert {row[-1] for row in reach_table().rows} == {regime.value for regime in Regime}


def test_paper_carries_the_conclusion():
    html, text = RegimeExplorer().static()
    for shown in (html, text):
        assert headline(at(START)) in shown
        assert LAW in shown
        assert all(regime.value in shown for regime in Regime)
        assert "Hop latency is left out" in shown


def test_picture_says_its_numbers_in_words():
    [(data, _)] = RegimeExplorer().pictures()
    assert "8 GPUs, 50 GB/s: 1 ms compute + 1.47 ms all-reduces = 2.47 ms" in data["text/plain"]
