"""Does A2's bound fall as a layer is clipped, and the risk with it?"""
