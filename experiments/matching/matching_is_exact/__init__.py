"""How many matched checkpoints equal the whole pool, and to which models?"""
