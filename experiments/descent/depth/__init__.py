"""Do L trained layers do better than L steps of gradient descent?"""
