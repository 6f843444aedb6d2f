"""What a POST, PUT or PATCH means: the one pipeline that every write but deletion goes through."""
