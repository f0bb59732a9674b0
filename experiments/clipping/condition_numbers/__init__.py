"""Are deep layers worse conditioned, do they tolerate more clipping, and do they spread small
disturbances?"""
