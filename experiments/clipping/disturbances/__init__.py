"""Do ill-conditioned layers spread small disturbances, and does clipping remove them?"""
