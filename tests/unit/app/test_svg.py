"""Axes that can be read, and points where their values belong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probebench.app.markup import Element
from probebench.app.svg import HEIGHT, WIDTH, linear_ticks, log_ticks, plot_figure, table_of
from probebench.kernel.page import Level, Plot, Series

POSITIVE = st.floats(min_value=1e-6, max_value=1e6)


def plot(*, log_y: bool, count: int = 3) -> Plot:
    values = [100.0, 10.0, 1.0][:count] + [1.0] * (count - 3)
    return Plot(
        alt="three values",
        x_label="exposure",
        y_label="WFE / nm",
        unit="nm",
        x_ticks=[(i, str(i)) for i in range(count)],
        series=[Series("measured", list(enumerate(values))), Series("final", [(0, 5.0)])],
        levels=[Level("floor", 1.0)],
        log_y=log_y,
    )


def heights(drawn: Element) -> list[float]:
    circles = [c for c in drawn.iter("circle") if c.get("cy") != "6.0"]
    return [HEIGHT - float(c.get("cy", "nan")) for c in circles]


def test_a_larger_value_is_drawn_higher() -> None:
    first, second, third = heights(plot_figure(plot(log_y=False)))
    assert first > second > third


def test_on_a_logarithmic_axis_equal_ratios_are_equal_distances() -> None:
    first, second, third = heights(plot_figure(plot(log_y=True)))
    assert first - second == pytest.approx(second - third, abs=0.2)


def test_a_level_lies_at_the_height_of_a_point_of_its_value() -> None:
    drawn = plot_figure(plot(log_y=True))
    level = next(line for line in drawn.iter("line") if "level-0" in line.get("class", ""))
    assert HEIGHT - float(level.get("y1", "nan")) == pytest.approx(heights(drawn)[2])


def test_everything_is_drawn_inside_the_picture() -> None:
    for count in (1, 3, 200):
        drawn = plot_figure(plot(log_y=False, count=count))
        for circle in drawn.iter("circle"):
            assert 0 <= float(circle.get("cx", "nan")) <= WIDTH
            assert 0 <= float(circle.get("cy", "nan")) <= HEIGHT


def test_labels_of_many_exposures_are_thinned_and_the_last_is_kept() -> None:
    texts = [text.text for text in plot_figure(plot(log_y=False, count=200)).iter("text")]
    assert "199" in texts
    assert len(texts) < 30


def test_the_same_numbers_can_be_read_as_a_table() -> None:
    columns, rows = table_of(plot(log_y=True))
    assert list(columns) == ["exposure", "of", "WFE / nm"]
    assert rows == [
        ("0", "measured", "100.00"),
        ("1", "measured", "10.00"),
        ("2", "measured", "1.00"),
        ("0", "final", "5.00"),
        ("", "floor", "1.00"),
    ]


@given(POSITIVE)
def test_linear_ticks_go_from_zero_to_beyond_the_value(high: float) -> None:
    values = [value for value, _ in linear_ticks(high)]
    assert values[0] == 0
    assert values[-1] >= high * (1 - 1e-6)
    assert 4 <= len(values) <= 12


@given(POSITIVE, POSITIVE)
def test_logarithmic_ticks_enclose_the_values(first: float, second: float) -> None:
    low, high = sorted((first, second))
    values = [value for value, _ in log_ticks(low, high)]
    assert values == sorted(values)
    assert values[0] <= low
    assert high <= values[-1]
    assert values[0] < values[-1]
