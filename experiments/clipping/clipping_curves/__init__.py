"""Which layers and modules of a trained model bear clipping, at which shots?"""
