"""Does A2's search for a clipping rate improve models on unseen prompts?"""
