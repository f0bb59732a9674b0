"""Does one trained layer of linear attention do as well as one step of gradient descent?"""

# The question, in one sentence, and nothing else: list, report and the pages of results read it.
