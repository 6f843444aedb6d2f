"""GENERATE: Python source with pydantic models, from somebody else's CustomResourceDefinition."""
