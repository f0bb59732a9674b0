"""Is a demonstration's help its relevance times its novelty beside others?"""
