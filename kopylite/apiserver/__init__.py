"""PRETEND: an API server in the process, the one that kubectl and operators expect."""
