"""Which algorithm do trained layers follow, layer by layer?"""
