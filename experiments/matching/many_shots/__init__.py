"""Do more demonstrations than in training help, normalised and not?"""
