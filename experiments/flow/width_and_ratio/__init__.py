"""Does the width of a model change how much depth amplifies the ratio of two flows?"""
