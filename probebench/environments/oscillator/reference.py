"""Hidden: the circuits that are known, and the vectors of exact truth.

None of this reaches a request, and no reference is ever put into an archive;
one that an arm proposes by itself is archived like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

# The truth set is one for all studies, so that regret can be compared among
# them; its seed is the SHA-256 of "probebench oscillator truth", cut to 128 bits.
TRUTH_SEED = "cdc564b3f417af6bd24be61b9415d4da"
TRUTH_VECTORS = 4096


@dataclass(frozen=True)
class Reference:
    """A circuit of the literature.

    prototype_score: on the truth vectors of another implementation; None
        where the structure excludes oscillation, so that the score is 0.
    """

    name: str
    key: str
    prototype_score: float | None


REFERENCES = (
    Reference("repressilator", "002200020", 0.188),
    Reference("Goodwin oscillator", "001100020", 0.177),
    Reference("repressilator with self-activation", "002200021", 0.131),
    Reference("Goodwin oscillator with self-activation", "001100021", 0.118),
    Reference("negative 2-cycle with reporter", "001001020", 0.081),
    Reference("AC-DC circuit", "002200220", 0.067),
    Reference("activator-inhibitor with reporter", "001001021", 0.062),
    Reference("dual feedback with reporter", "001021021", 0.023),
)
