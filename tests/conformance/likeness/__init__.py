"""Likeness: the same request scripts against the embedded server and a real kube-apiserver, answers compared."""
