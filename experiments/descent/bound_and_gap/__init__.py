"""Does A2's bound lie above the generalisation gap, and rank as it does?"""
