"""Do demonstrations that match the pool's gradients teach best?"""
