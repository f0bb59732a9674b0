"""Does the mean of n numbers approach zero | like 1 / √n?"""
