"""The cache's adapter: sealed values in Redis or Valkey."""
