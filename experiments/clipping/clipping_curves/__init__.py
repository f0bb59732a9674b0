"""Which layers and modules of a trained model tolerate clipping, and at which shots?"""
