"""What a cluster holds before the first client comes."""
