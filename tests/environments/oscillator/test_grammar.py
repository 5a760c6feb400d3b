"""The grammar of proposals, its classes under relabelling, and their structure."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probebench.kernel.errors import ActionRejectedError
from probebench.wire import oscillator as grammar
from probebench.wire.oscillator import Edges
from probebench.wire.oscillator_structure import SILENT, Structure, cycles, is_silent, structure

TOPOLOGIES = st.sampled_from(grammar.all_topologies())
ORDERS = st.sampled_from(list(permutations(range(3))))

# Circuits by (source, target, effect), each with the class that its textbook names.
REPRESSILATOR = {(0, 1): 2, (1, 2): 2, (2, 0): 2}
TOGGLE = {(0, 1): 2, (1, 0): 2, (0, 2): 1}
POSITIVE_RING = {(0, 1): 1, (1, 2): 1, (2, 0): 1}
CASCADE = {(0, 1): 1, (1, 2): 1}
INCOHERENT_FEED_FORWARD = {(0, 1): 1, (0, 2): 1, (1, 2): 2}


def edges(effects: dict[tuple[int, int], int]) -> Edges:
    return tuple(effects.get((source, target), 0) for target in range(3) for source in range(3))


def relabelled(topology: Edges, order: tuple[int, ...]) -> Edges:
    """Gene i becomes gene order[i]; written apart from the package's table of slots."""
    moved = [0] * 9
    for target, source in product(range(3), repeat=2):
        moved[3 * order[target] + order[source]] = topology[3 * target + source]
    return tuple(moved)


def test_there_are_12024_valid_topologies() -> None:
    by_rule = [
        one
        for one in product((0, 1, 2), repeat=9)
        if 2 <= sum(value > 0 for value in one) <= 6
        and all(any(one[3 * i + k] or one[3 * k + i] for k in range(3)) for i in range(3))
    ]
    assert list(grammar.all_topologies()) == by_rule
    assert len(by_rule) == 12_024


def test_relabelling_leaves_2070_classes() -> None:
    assert len(grammar.all_keys()) == 2_070
    orbits = {
        frozenset(relabelled(one, order) for order in permutations(range(3)))
        for one in grammar.all_topologies()
    }
    assert {"".join(map(str, min(orbit))) for orbit in orbits} == set(grammar.all_keys())


@given(TOPOLOGIES, ORDERS)
def test_a_relabelled_topology_has_the_same_key_dimension_and_structure(
    topology: Edges, order: tuple[int, ...]
) -> None:
    other = relabelled(topology, order)
    assert grammar.key_of(other) == grammar.key_of(topology)
    assert grammar.dimension(other) == grammar.dimension(topology)
    assert structure(other) == structure(topology)


@given(TOPOLOGIES)
def test_the_six_relabellings_are_those_by_hand(topology: Edges) -> None:
    by_hand = [relabelled(topology, order) for order in permutations(range(3))]
    assert sorted(grammar.relabellings(topology)) == sorted(by_hand)
    assert grammar.canonical(topology) == min(by_hand)


def test_a_key_names_its_canonical_form_and_nothing_else() -> None:
    for key in grammar.all_keys():
        assert grammar.key_of(grammar.edges_of(key)) == key
    for wrong in ("00220002", "0022000200", "003200020", "200020001", "000000001", "020002200"):
        with pytest.raises(ValueError, match="topology key"):
            grammar.edges_of(wrong)


def test_dimensions_run_from_13_to_21() -> None:
    dimensions = Counter(grammar.dimension(grammar.edges_of(key)) for key in grammar.all_keys())
    assert sorted(dimensions) == [13, 15, 17, 19, 21]
    assert grammar.dimension(edges(REPRESSILATOR)) == 15


@pytest.mark.parametrize(
    ("proposal", "code"),
    [
        ([0, 0, 2, 2, 0, 0, 0, 2], "wrong_length"),
        ([0, 0, 2, 2, 0, 0, 0, 2, 0, 0], "wrong_length"),
        ([0, 0, 2, 2, 0, 0, 0, 2, "0"], "wrong_type"),
        ([0, 0, 2, 2, 0, 0, 0, True, 0], "wrong_type"),
        ([0, 0, 2, 2, 0, 0, 0, 2.0, 0], "wrong_type"),
        ([0, 0, 2, 2, 0, 0, 0, None, 0], "wrong_type"),
        ([0, 0, 2, 2, 0, 0, 0, 3, 0], "unknown_effect"),
        ([0, 0, 2, 2, 0, 0, 0, -1, 0], "unknown_effect"),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0], "too_few_edges"),
        ([0, 0, 0, 2, 0, 0, 0, 0, 0], "too_few_edges"),
        ([1, 1, 1, 1, 1, 1, 1, 0, 0], "too_many_edges"),
        ([1, 2, 0, 0, 0, 0, 0, 0, 0], "isolated_gene"),
        ([1, 0, 0, 0, 1, 0, 0, 0, 0], "isolated_gene"),
    ],
)
def test_a_proposal_outside_the_grammar_is_rejected_by_code(
    proposal: list[object], code: str
) -> None:
    with pytest.raises(ActionRejectedError) as caught:
        grammar.check_edges(proposal)
    assert caught.value.code == code


def test_a_gene_with_a_self_loop_alone_is_not_isolated() -> None:
    assert grammar.check_edges([1, 0, 0, 0, 1, 0, 0, 0, 1]) == (1, 0, 0, 0, 1, 0, 0, 0, 1)


@given(st.lists(st.integers(0, 2), min_size=9, max_size=9))
def test_what_is_accepted_is_what_is_enumerated(proposal: list[int]) -> None:
    valid = tuple(proposal) in set(grammar.all_topologies())
    assert grammar.is_valid(tuple(proposal)) == valid
    if valid:
        assert grammar.check_edges(proposal) == tuple(proposal)
    else:
        with pytest.raises(ActionRejectedError):
            grammar.check_edges(proposal)


# -- structure ----------------------------------------------------------------


def test_the_eight_structural_classes_have_their_counts() -> None:
    counts = Counter(structure(grammar.edges_of(key)) for key in grammar.all_keys())
    assert counts == {
        Structure.ACYCLIC: 18,
        Structure.POSITIVE_ONLY: 340,
        Structure.NEGATIVE_SELF: 411,
        Structure.NEGATIVE_SELF_WITH_POSITIVE: 320,
        Structure.NEGATIVE_2: 141,
        Structure.NEGATIVE_2_WITH_POSITIVE: 527,
        Structure.NEGATIVE_3: 56,
        Structure.NEGATIVE_3_WITH_POSITIVE: 257,
    }
    assert sum(counts[one] for one in SILENT) == 769


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        (REPRESSILATOR, Structure.NEGATIVE_3),
        (REPRESSILATOR | {(0, 0): 1}, Structure.NEGATIVE_3_WITH_POSITIVE),
        (REPRESSILATOR | {(0, 0): 2}, Structure.NEGATIVE_3),
        (TOGGLE, Structure.POSITIVE_ONLY),
        (POSITIVE_RING, Structure.POSITIVE_ONLY),
        (CASCADE, Structure.ACYCLIC),
        (INCOHERENT_FEED_FORWARD, Structure.ACYCLIC),
        ({(0, 1): 1, (1, 0): 2, (1, 2): 1}, Structure.NEGATIVE_2),
        (CASCADE | {(0, 0): 2}, Structure.NEGATIVE_SELF),
        # A positive cycle counts where it shares a component with the self-loop.
        (CASCADE | {(0, 0): 2, (2, 2): 1}, Structure.NEGATIVE_SELF),
        (TOGGLE | {(0, 0): 2}, Structure.NEGATIVE_SELF_WITH_POSITIVE),
        (TOGGLE | {(2, 2): 2}, Structure.NEGATIVE_SELF),
    ],
)
def test_circuits_with_a_name_have_their_class(
    effects: dict[tuple[int, int], int], expected: Structure
) -> None:
    assert structure(edges(effects)) is expected
    assert is_silent(edges(effects)) == (expected in SILENT)


def test_a_cycle_has_the_sign_of_its_edges_product() -> None:
    (ring,) = cycles(edges(REPRESSILATOR))
    assert (ring.genes, ring.negative) == ((0, 1, 2), True)
    (ring,) = cycles(edges({(0, 2): 2, (2, 1): 2, (1, 0): 1}))
    assert (ring.genes, ring.negative) == ((0, 2, 1), False)
    assert [one.genes for one in cycles((1,) * 9)] == [
        (0,),
        (1,),
        (2,),
        (0, 1),
        (0, 2),
        (1, 2),
        (0, 1, 2),
        (0, 2, 1),
    ]
