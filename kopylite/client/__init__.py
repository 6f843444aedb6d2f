"""TALK: to the API server, as whoever the configuration says, one request a step."""
