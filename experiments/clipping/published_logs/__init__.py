"""What do the logs beside A2's code say of its figures 1 and 4, counted again?"""
