"""Are deep layers worse conditioned, and do they bear more clipping?"""
