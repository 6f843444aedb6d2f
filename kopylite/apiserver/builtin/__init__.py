"""The built-in kinds: their structure, defaults, validation and strategies. `strategies` is the way in."""
