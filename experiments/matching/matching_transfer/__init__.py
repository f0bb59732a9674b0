"""Do subsets that match gradients on a small model teach larger ones?"""
