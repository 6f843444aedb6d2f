"""CustomResourceDefinitions: their rules, how they come to be served, and the objects that they define."""
