"""How does the error of transformers fall with shots and training steps?"""
