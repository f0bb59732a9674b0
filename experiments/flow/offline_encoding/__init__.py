"""What do demonstrations encoded once for all queries save, and what do they lose?"""
