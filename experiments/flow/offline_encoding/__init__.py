"""Demonstrations encoded once for all queries: what does it save, and what does it lose?"""
