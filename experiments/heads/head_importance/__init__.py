"""Do all heads of the first layer matter, and one head of each later layer?"""
