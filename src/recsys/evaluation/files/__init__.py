"""What is kept of an evaluation: results as JSON, folders of values per user, hashes of what was read."""
