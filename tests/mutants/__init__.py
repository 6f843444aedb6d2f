"""Mutation tests: `make mutants ROOM=workqueue`. See docs/testing.md."""
