"""Which layers and parts of a trained model tolerate clipping, and at which shots?"""
