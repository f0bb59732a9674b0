"""As a layer is clipped, does A2's bound fall, and the risk with it?"""
