"""Why is there a best clipping rate, and can the spectrum tell it unsearched?"""
