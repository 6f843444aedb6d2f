"""Patches: the four ways to say a change, and who owns which field afterwards. Pure."""
