"""What does clipping do to the accuracy of trained in-context classifiers?"""
