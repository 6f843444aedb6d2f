"""Calls that the server itself makes: to webhooks of admission and of conversion."""
