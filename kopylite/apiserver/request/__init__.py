"""What is asked: the request and its target, options, selectors, and the forms that bodies come and go in."""
