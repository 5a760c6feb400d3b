"""How circuits are integrated and judged, in numbers."""

from __future__ import annotations

from typing import NamedTuple


class Method(NamedTuple):
    """Integration and verdict.  Times are in units of a typical decay.

    They reach the compiled kernel as arguments: a constant of another module
    would be compiled in, and numba's cache would not notice that it changed.

    step: of the classical Runge-Kutta method of fourth order.
    initial_level: of every mRNA and protein.
    block_steps: steps of a block; transients and windows are whole blocks.
    transient_blocks, window_blocks: what is left out, and what is judged.
    rest_range: a protein that stays within this fraction of its level for a
        block is at rest; one at rest in the last block does not oscillate.
    early_exit: leave a circuit after the first block in which all its proteins
        rest; this saves time and, as measured, changes no verdict.
    min_contrast: of (max - min) / (max + min) over the window.
    min_swing: of max - min over the window.
    min_cycles: in the window, from one upward crossing of the mid-level
        (max + min) / 2 to the next.
    min_amplitude_ratio: of the last cycle's swing over the first's.
    max_period_cv: of the periods' coefficient of variation.
    """

    step: float = 0.25
    initial_level: float = 0.5
    block_steps: int = 200
    transient_blocks: int = 6
    window_blocks: int = 6
    rest_range: float = 1e-4
    early_exit: bool = True
    min_contrast: float = 0.05
    min_swing: float = 0.005
    min_cycles: int = 4
    min_amplitude_ratio: float = 0.9
    max_period_cv: float = 0.1

    @property
    def transient_time(self) -> float:
        """Time before the window: 300."""
        return self.step * self.block_steps * self.transient_blocks

    @property
    def window_steps(self) -> int:
        """Samples that are judged, one after each step: 1200."""
        return self.block_steps * self.window_blocks


METHOD = Method()
