"""Is what a demonstration gives its relevance times its novelty, or their sum?"""
