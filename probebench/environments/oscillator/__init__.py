"""Proposing gene-circuit topologies that oscillate."""
