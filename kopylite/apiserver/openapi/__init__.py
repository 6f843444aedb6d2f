"""The documents under /openapi, made from what is served."""
