"""Is what clipping gains on two-class prompts more than a shift of label bias?"""
