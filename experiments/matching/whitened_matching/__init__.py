"""Do whitened gradients choose demonstrations better than plain ones, and where do they not?"""
