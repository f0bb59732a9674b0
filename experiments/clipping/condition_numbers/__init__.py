"""Are deep layers worse conditioned, and do they tolerate more clipping?"""
