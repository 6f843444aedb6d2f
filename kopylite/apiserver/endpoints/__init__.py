"""Paths and sub-resources that are no stored objects: discovery, version and health, scale, binding, eviction."""
