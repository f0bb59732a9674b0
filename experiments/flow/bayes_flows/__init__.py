"""Does depth amplify up to the Bayes rule's flows, no further, and which stacks do the opposite?"""
