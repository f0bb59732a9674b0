"""Does training find the learning curve of a layer's rule, and does it last on longer prompts?"""
