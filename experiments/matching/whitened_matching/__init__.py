"""Do whitened gradients choose better than plain ones, and where do they not?"""
