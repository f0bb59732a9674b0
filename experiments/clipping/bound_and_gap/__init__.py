"""Does A2's bound lie above the generalisation gap, rank as it does, and fall as a layer is
clipped?"""
