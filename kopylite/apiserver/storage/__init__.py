"""What is kept: objects under one resourceVersion counter, their recent history, and the data file."""
