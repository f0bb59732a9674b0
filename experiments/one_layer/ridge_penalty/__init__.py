"""Which penalty of ridge regression predicts what one trained layer predicts?"""
