"""PLAY: the cluster that a developer runs: the embedded API server in this process, with workloads that are played."""
