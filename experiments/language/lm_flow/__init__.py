"""Does depth amplify the ratio of two demonstrations' flows in a language model?"""
