"""EXPLORE: the pure machines in every interleaving of a small scope, against the invariants of docs/design.md.

    python -m tests.explore              all of it: what was visited, how fast
    python -m tests.explore queue        one machine

A part that takes seconds is in the suite (test_explore.py).
"""
