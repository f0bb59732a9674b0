"""Is there an order of the demonstrations that helps causal models?"""
