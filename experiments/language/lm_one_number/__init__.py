"""Does clipping a language model change more than one number of its answers, and does one number
gain as much: a threshold, a temperature, contextual calibration?"""
