"""The commands, in the order of `kopylite --help`, each with its line there: to show them, none has to be imported."""

from __future__ import annotations

COMMANDS = {
    "init": "write a new project: operator, tests, image, manifests",
    "run": "run an operator",
    "sweep": "find the crash, the stale read and the lost event before production does",
    "manifests": "write the manifests of an operator, with the least rights",
    "doctor": "find out what is wrong with a cluster, or an operator in it, and what mends it",
    "finalizers": "list what waits for finalizers, and remove one that nobody will",
    "apiserver": "serve a Kubernetes API from this process, with no cluster",
    "crd": "print the CustomResourceDefinitions of your classes",
    "webhooks": "print the webhook configurations of an operator",
    "models": "print pydantic models for foreign CRDs",
    "migrate": "move an operator over from kopf",
}
# Those that run until a signal comes; an early one is as good as a late one.
SERVING = ("run", "apiserver")
