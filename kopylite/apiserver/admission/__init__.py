"""Who may still say no, or add something, between the rules of a kind and the store: admission plug-ins."""
