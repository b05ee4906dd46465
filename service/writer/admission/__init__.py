"""Admission by public cost: rate limits, memory, and time slots."""
