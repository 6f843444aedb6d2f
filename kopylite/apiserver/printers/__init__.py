"""What `kubectl get` shows: Tables, and the columns of built-in kinds."""
