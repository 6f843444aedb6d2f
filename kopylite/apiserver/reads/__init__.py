"""What a GET means: objects, pages of a list, and watches, in the form that was asked for."""
