"""What a DELETE means: preconditions, grace, finalizers, propagation."""
