"""Does clipping a trained model change more than one number of its answers, and does one number
gain as much?"""
