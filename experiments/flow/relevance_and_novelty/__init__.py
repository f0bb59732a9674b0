"""Beside the others in a prompt, does a demonstration help by its relevance times its novelty?"""
