"""What is served: the registry of resources, and what a kind has to know about its own objects."""
